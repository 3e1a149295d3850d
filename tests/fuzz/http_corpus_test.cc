// Every input of the HTTP corpus, and inputs made of them, through what the fuzz targets call.
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tests/fuzz/corpus_files.h"
#include "tests/fuzz/http_stream.h"

namespace ordo::fuzz {
namespace {

TEST(HttpFuzzCorpus, OfClientsMeansTheSameWholeAndInPieces) {
  const auto inputs = corpus("http");
  EXPECT_GE(inputs.size(), 10u);
  for (const std::string& input : inputs)
    check_http_stream(input);
}

TEST(HttpFuzzCorpus, OfMessagesMeansTheSameWholeAndInPieces) {
  const auto inputs = corpus("messages");
  EXPECT_GE(inputs.size(), 5u);
  for (const std::string& input : inputs)
    check_messages(input);
}

class HttpFuzzSeeds : public testing::TestWithParam<unsigned> {};

TEST_P(HttpFuzzSeeds, ChangedInputsMeanTheSameWholeAndInPieces) {
  std::mt19937 random(GetParam());
  const auto clients = corpus("http");
  const auto messages = corpus("messages");
  for (int i = 0; i < 100; ++i) {
    check_http_stream(mutated(clients, random));
    check_messages(mutated(messages, random));
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, HttpFuzzSeeds, testing::Range(0u, 20u));

}  // namespace
}  // namespace ordo::fuzz

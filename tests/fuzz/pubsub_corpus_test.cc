// Every input of the corpus of Pub/Sub requests, and inputs made of them, through what the fuzz
// targets call.
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fuzz/corpus_files.h"
#include "tests/fuzz/pubsub_requests.h"

namespace ordo::fuzz {
namespace {

TEST(PubsubFuzzCorpus, OfGrpcRequestsIsReadAsProtobufReadsIt) {
  const auto inputs = corpus("pubsub");
  EXPECT_GE(inputs.size(), 15u);
  for (const std::string& input : inputs)
    check_pubsub_request(input);
}

TEST(PubsubFuzzCorpus, OfFiltersIsAnsweredOneWayOrTheOther) {
  const auto inputs = corpus("filters");
  EXPECT_GE(inputs.size(), 15u);
  for (const std::string& input : inputs)
    check_filter(input);
}

TEST(PubsubFuzzCorpus, OfRestRequestsIsARequestOrExplained) {
  const auto inputs = corpus("rest");
  EXPECT_GE(inputs.size(), 20u);
  for (const std::string& input : inputs)
    check_rest_request(input);
}

class PubsubFuzzSeeds : public testing::TestWithParam<unsigned> {};

TEST_P(PubsubFuzzSeeds, ChangedInputsKeepTheLaws) {
  std::mt19937 random(GetParam());
  const auto requests = corpus("pubsub");
  const auto filters = corpus("filters");
  const auto rest = corpus("rest");
  for (int i = 0; i < 200; ++i) {
    check_pubsub_request(mutated(requests, random));
    check_filter(mutated(filters, random));
    check_rest_request(mutated(rest, random));
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, PubsubFuzzSeeds, testing::Range(0u, 20u));

}  // namespace
}  // namespace ordo::fuzz

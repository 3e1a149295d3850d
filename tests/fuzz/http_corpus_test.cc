// Every input of the HTTP corpus, and inputs made of them, through what the fuzz targets call.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fuzz/http_stream.h"

namespace ordo::fuzz {
namespace {

std::vector<std::string> corpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(ORDO_FUZZ_CORPUS) / folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// A piece is cut out, doubled or taken from another input, or some bytes are changed.
std::string mutated(const std::vector<std::string>& inputs, std::mt19937& random) {
  std::string text = inputs[random() % inputs.size()];
  const std::string& other = inputs[random() % inputs.size()];
  for (unsigned changes = 1 + random() % 4; changes > 0 && !text.empty(); --changes) {
    const std::size_t from = random() % text.size();
    const std::size_t size = random() % 64;
    switch (random() % 4) {
      case 0:
        text.erase(from, size);
        break;
      case 1:
        text.insert(from, text.substr(from, size));
        break;
      case 2:
        if (!other.empty()) text.insert(from, other.substr(random() % other.size(), size));
        break;
      default:
        text[from] = static_cast<char>(random());
        break;
    }
  }
  return text;
}

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

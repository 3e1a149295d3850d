// Every input of the corpus, through the function that the fuzz targets call.
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "tests/fuzz/request_stream.h"

namespace ordo::fuzz {
namespace {

std::size_t replay(order_tcp::Encoding encoding, const std::string& folder) {
  std::size_t count = 0;
  const std::filesystem::path corpus = std::filesystem::path(ORDO_FUZZ_CORPUS) / folder;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    check_request_stream(encoding, bytes);
    ++count;
  }
  return count;
}

TEST(FuzzCorpus, OfTextRequestsMeansTheSameWholeAndByteByByte) {
  EXPECT_GE(replay(order_tcp::Encoding::text, "text"), 10u);
}

TEST(FuzzCorpus, OfBinaryRequestsMeansTheSameWholeAndByteByByte) {
  EXPECT_GE(replay(order_tcp::Encoding::binary, "binary"), 10u);
}

}  // namespace
}  // namespace ordo::fuzz

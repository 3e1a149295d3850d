#include "ordo/app/line_reader.h"

#include <fcntl.h>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "ordo/app/unique_fd.h"

namespace ordo::app {
namespace {

UniqueFd file_with(const std::string& text) {
  UniqueFd file(::memfd_create("lines", MFD_CLOEXEC));
  EXPECT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
  return file;
}

std::vector<std::string> read_all(LineReader& reader) {
  std::vector<std::string> lines;
  while (true) {
    std::string_view line;
    switch (reader.next(line)) {
      case LineReader::Next::line:
        lines.emplace_back(line);
        break;
      case LineReader::Next::cut:
        lines.push_back("CUT:" + std::string(line));
        break;
      case LineReader::Next::more:
        EXPECT_EQ(reader.fill(), 0);
        break;
      case LineReader::Next::end:
        return lines;
    }
  }
}

std::vector<std::string> lines_of(const std::string& text, LineReader::Options options = {}) {
  const UniqueFd file = file_with(text);
  LineReader reader(file.get(), options);
  return read_all(reader);
}

using Lines = std::vector<std::string>;

TEST(LineReaderTest, AnEmptyInputHasNoLines) {
  EXPECT_EQ(lines_of(""), Lines{});
}

TEST(LineReaderTest, ALastLineWithoutSeparatorIsALine) {
  EXPECT_EQ(lines_of("a\nb"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("a\nb\n"), (Lines{"a", "b"}));
}

TEST(LineReaderTest, EmptyLinesAreLines) {
  EXPECT_EQ(lines_of("\n\nx\n"), (Lines{"", "", "x"}));
}

TEST(LineReaderTest, NulSeparatesWhenAskedAndPassesOtherwise) {
  const std::string text("a\0b\nc\0", 6);
  EXPECT_EQ(lines_of(text, {.separator = '\0'}), (Lines{"a", "b\nc"}));
  EXPECT_EQ(lines_of(text), (Lines{std::string("a\0b", 3), std::string("c\0", 2)}));
}

TEST(LineReaderTest, ALineOverTheLimitIsCutAndTheNextIsWhole) {
  const LineReader::Options options{.separator = '\n', .line_bytes_max = 4};
  EXPECT_EQ(lines_of("1234\n12345\nok\n", options), (Lines{"1234", "CUT:1234", "ok"}));
  EXPECT_EQ(lines_of("a\n" + std::string(300'000, 'x') + "\nok", options),
            (Lines{"a", "CUT:xxxx", "ok"}));
  EXPECT_EQ(lines_of(std::string(300'000, 'x'), options), (Lines{"CUT:xxxx"}));
}

TEST(LineReaderTest, ALineOfAHundredMegabytesComesWhole) {
  const std::string big(100'000'000, 'y');
  const UniqueFd file = file_with("a\n" + big + "\nb\n");
  LineReader reader(file.get(), {});
  const Lines lines = read_all(reader);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[1] == big);
  EXPECT_EQ(lines[2], "b");
}

class LineReaderSeed : public testing::TestWithParam<unsigned> {};

// Goal: whatever the lengths, joining the lines gives the input back.
TEST_P(LineReaderSeed, LinesJoinedAreTheInput) {
  std::mt19937 random(GetParam());
  std::string text;
  for (int i = 0; i < 200; ++i) {
    const std::size_t length = random() % 10 == 0 ? random() % 200'000 : random() % 100;
    for (std::size_t k = 0; k < length; ++k) {
      const char byte = static_cast<char>(random());
      text.push_back(byte == '\n' ? '\0' : byte);
    }
    text.push_back('\n');
  }
  std::string joined;
  for (const std::string& line : lines_of(text))
    joined += line + '\n';
  EXPECT_TRUE(joined == text) << "seed " << GetParam();
}
INSTANTIATE_TEST_SUITE_P(Seeds, LineReaderSeed, testing::Range(0u, 5u));

}  // namespace
}  // namespace ordo::app

#include "ordo/core/log.h"

#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ordo {
namespace {

using namespace std::chrono_literals;

std::string logged(std::string_view text) {
  testing::internal::CaptureStderr();
  log_line(text);
  return testing::internal::GetCapturedStderr();
}

TEST(LogTest, ALineEndsWithOneNewline) {
  EXPECT_EQ(logged("hello"), "hello\n");
  EXPECT_EQ(logged(""), "\n");
}

TEST(LogTest, TextCannotForgeALineOrMoveTheCursor) {
  EXPECT_EQ(logged("a\nb\r\tc"), "a\\nb\\r\\tc\n");
  EXPECT_EQ(logged("\x1b[2J\x7f"), "\\x1b[2J\\x7f\n");
  EXPECT_EQ(logged(std::string_view("a\0b", 3)), "a\\x00b\n");
  EXPECT_EQ(logged("\xc2\x9b"
                   "31m"),
            "\\xc2\\x9b31m\n");
}

TEST(LogTest, TextInOtherScriptsStaysReadable) {
  EXPECT_EQ(logged("gr\xc3\xbc\xc3\x9f dich \xe2\x82\xac"),
            "gr\xc3\xbc\xc3\x9f dich \xe2\x82\xac\n");
  EXPECT_EQ(logged("\xc2\xa0|\xc2"), "\xc2\xa0|\xc2\n");
}

TEST(LogTest, ALineTooLongIsCutAndSaysSo) {
  const std::string line = logged(std::string(kLogLineBytesMax + 5, 'x'));
  EXPECT_EQ(line, std::string(kLogLineBytesMax, 'x') + "... (5 bytes more)\n");
  EXPECT_EQ(printable("abcdef", 3), "abc... (3 bytes more)");
  EXPECT_EQ(printable("abc", 3), "abc");
}

TEST(LogTest, AJsonLineIsOneObjectWhateverTheTextIs) {
  const WallTime time{std::chrono::milliseconds(1'763'239'825'007)};
  EXPECT_EQ(json_log_line("a \"b\"\n\\c", time),
            R"({"time":"2025-11-15T20:50:25.007Z","message":"a \"b\"\\n\\c"})");
  EXPECT_EQ(json_log_line("caf\xc3\xa9", time),
            "{\"time\":\"2025-11-15T20:50:25.007Z\",\"message\":\"caf\xc3\xa9\"}");
  EXPECT_EQ(json_log_line("\xff", time),
            R"({"time":"2025-11-15T20:50:25.007Z","message":"\\xff"})");
}

TEST(RateLimitTest, OnePassesPerIntervalAndTheOthersAreCounted) {
  ManualClock clock;
  RateLimit limit(clock, 1s);
  EXPECT_EQ(limit.allow(), 0u);
  EXPECT_EQ(limit.allow(), std::nullopt);
  clock.advance(999ms);
  EXPECT_EQ(limit.allow(), std::nullopt);
  EXPECT_EQ(limit.suppressed_count(), 2u);
  clock.advance(1ms);
  EXPECT_EQ(limit.allow(), 2u);
  EXPECT_EQ(limit.suppressed_count(), 0u);
  clock.advance(10s);
  EXPECT_EQ(limit.allow(), 0u);
}

TEST(RateLimitTest, AnIntervalOfZeroHoldsNothingBack) {
  ManualClock clock;
  RateLimit limit(clock, 0s);
  EXPECT_EQ(limit.allow(), 0u);
  EXPECT_EQ(limit.allow(), 0u);
}

TEST(RateLimitTest, EveryEventOfManyThreadsIsPassedOrCounted) {
  ManualClock clock;
  RateLimit limit(clock, 1s);
  std::vector<std::future<std::uint64_t>> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.push_back(std::async(std::launch::async, [&] {
      std::uint64_t accounted = 0;
      for (int event = 0; event < 1000; ++event) {
        if (event % 100 == 0) clock.advance(1s);
        if (auto suppressed = limit.allow()) accounted += 1 + *suppressed;
      }
      return accounted;
    }));
  }
  std::uint64_t accounted = 0;
  for (auto& thread : threads) {
    accounted += thread.get();
  }
  EXPECT_EQ(accounted + limit.suppressed_count(), 4000u);
}

TEST(RateLimitDeathTest, ANegativeIntervalIsAProgrammerError) {
  ManualClock clock;
  EXPECT_DEATH(RateLimit(clock, -1s), "interval >=");
}

}  // namespace
}  // namespace ordo

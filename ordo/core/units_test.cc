#include "ordo/core/units.h"

#include <chrono>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace ordo {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST(DurationTest, ReadsEveryUnit) {
  EXPECT_EQ(*parse_duration("7ns"), 7ns);
  EXPECT_EQ(*parse_duration("7us"), 7us);
  EXPECT_EQ(*parse_duration("250ms"), 250ms);
  EXPECT_EQ(*parse_duration("10s"), 10s);
  EXPECT_EQ(*parse_duration("5m"), 5min);
  EXPECT_EQ(*parse_duration("2h"), 2h);
  EXPECT_EQ(*parse_duration("3d"), 72h);
}

TEST(DurationTest, ReadsFractionsExactly) {
  EXPECT_EQ(*parse_duration("1.5h"), 90min);
  EXPECT_EQ(*parse_duration("0.1s"), 100ms);
  EXPECT_EQ(*parse_duration(".5s"), 500ms);
  EXPECT_EQ(*parse_duration("1.s"), 1s);
  EXPECT_EQ(*parse_duration("1.000000001s"), 1'000'000'001ns);
  EXPECT_EQ(*parse_duration("1.50000000000000000000000000s"), 1500ms);
}

TEST(DurationTest, ReadsSeveralUnitsFromLargeToSmall) {
  EXPECT_EQ(*parse_duration("1h30m"), 90min);
  EXPECT_EQ(*parse_duration("1d2h3m4s5ms6us7ns"), 26h + 3min + 4s + 5ms + 6us + 7ns);
}

TEST(DurationTest, ZeroNeedsNoUnit) {
  EXPECT_EQ(*parse_duration("0"), 0ns);
  EXPECT_EQ(*parse_duration("0s"), 0ns);
}

TEST(DurationTest, TheLongestDurationIsReadAndOneMoreIsRefused) {
  EXPECT_EQ(*parse_duration("9223372036854775807ns"), nanoseconds::max());
  EXPECT_FALSE(parse_duration("9223372036854775808ns"));
  EXPECT_FALSE(parse_duration("9223372036s999999999ns"));
  EXPECT_FALSE(parse_duration("106752d"));
  EXPECT_FALSE(parse_duration("99999999999999999999999999999999999999999999999999h"));
}

TEST(DurationTest, WhatIsNoDurationIsRefused) {
  for (const char* text : {"",          " ",
                           "s",         "10",
                           "-1s",       "+1s",
                           "1 s",       "1s ",
                           " 1s",       "1.5.5s",
                           "1e3s",      "1S",
                           "1sec",      "1s1h",
                           "1s1s",      "1h30",
                           "0.1ns",     ".s",
                           ".",         "1,5s",
                           "0x10s",     "1.0000000000000000001s",
                           "inf",       "nan",
                           "1\xc2\xb5s"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(DurationTest, ARefusalSaysWhatWasGivenAndWhatIsAllowed) {
  const Result<nanoseconds> result = parse_duration("10 parsecs\n");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(result.error().message,
            "not a duration: \"10 parsecs\\n\" (the unit is missing); allowed is a number with a "
            "unit of ns, us, ms, s, m, h, d, such as 250ms, 1.5h, 1h30m or 0");
}

TEST(DurationTest, ARefusalOfAHugeTextIsShort) {
  EXPECT_LT(parse_duration(std::string(1'000'000, 'x')).error().message.size(), 300u);
}

TEST(DurationTest, PrintsTheShortestExactForm) {
  EXPECT_EQ(format_duration(0ns), "0s");
  EXPECT_EQ(format_duration(250ms), "250ms");
  EXPECT_EQ(format_duration(1500us), "1.5ms");
  EXPECT_EQ(format_duration(2500ms), "2.5s");
  EXPECT_EQ(format_duration(90min), "1h30m");
  EXPECT_EQ(format_duration(61s), "1m1s");
  EXPECT_EQ(format_duration(60s + 1ns), "1m1ns");
  EXPECT_EQ(format_duration(1s + 1ns), "1.000000001s");
  EXPECT_EQ(format_duration(48h), "2d");
}

TEST(SizeTest, ReadsPowersOf1000And1024) {
  EXPECT_EQ(*parse_size("0"), 0u);
  EXPECT_EQ(*parse_size("512"), 512u);
  EXPECT_EQ(*parse_size("512B"), 512u);
  EXPECT_EQ(*parse_size("10k"), 10'000u);
  EXPECT_EQ(*parse_size("10KB"), 10'000u);
  EXPECT_EQ(*parse_size("10Ki"), 10'240u);
  EXPECT_EQ(*parse_size("64MiB"), 64u << 20);
  EXPECT_EQ(*parse_size("64mib"), 64u << 20);
  EXPECT_EQ(*parse_size("1.5GiB"), 3u << 29);
  EXPECT_EQ(*parse_size("2T"), 2'000'000'000'000u);
  EXPECT_EQ(*parse_size("1P"), 1'000'000'000'000'000u);
  EXPECT_EQ(*parse_size("15EiB"), std::uint64_t{15} << 60);
}

TEST(SizeTest, TheLargestSizeIsReadAndOneMoreIsRefused) {
  EXPECT_EQ(*parse_size("18446744073709551615"), kMost);
  EXPECT_FALSE(parse_size("18446744073709551616"));
  EXPECT_FALSE(parse_size("16EiB"));
  EXPECT_FALSE(parse_size("15.9999999999999999999EiB"));
}

TEST(SizeTest, WhatIsNoSizeIsRefused) {
  for (const char* text : {"", "k", "-1", "1 k", "1kk", "1.5", "0.3KiB", "10x", "1k1", "1Bi", "1e3",
                           "KiB", "1_000", "1,000", "1iB"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

TEST(SizeTest, ARefusalSaysWhatWasGivenAndWhatIsAllowed) {
  EXPECT_EQ(parse_size("64MegaB").error().message,
            "not a size: \"64MegaB\" (the unit is unknown); allowed is a number with no unit, k, "
            "M, G, T, P, E (powers of 1000) or KiB, MiB, GiB, TiB, PiB, EiB (powers of 1024), "
            "such as 512, 10k or 64MiB");
}

TEST(SizeTest, PrintsInTheLargestUnitThatDivides) {
  EXPECT_EQ(format_size(0), "0");
  EXPECT_EQ(format_size(1023), "1023");
  EXPECT_EQ(format_size(10'000), "10k");
  EXPECT_EQ(format_size(64u << 20), "64MiB");
  EXPECT_EQ(format_size(1'000'000), "1M");
  EXPECT_EQ(format_size(kMost), "18446744073709551615");
}

TEST(UnitsDeathTest, PrintingANegativeDurationIsAProgrammerError) {
  EXPECT_DEATH(format_duration(-1ns), "duration >=");
}

// Goal: reading what was printed gives the same value. Method: values of all magnitudes, round
// ones among them; the seed names the failing run.
class UnitsSeed : public testing::TestWithParam<std::uint32_t> {};

TEST_P(UnitsSeed, WhatIsPrintedReadsBackTheSame) {
  constexpr std::uint64_t kRound[] = {1, 1000, 1024, 60'000'000'000, 3'600'000'000'000};
  std::mt19937_64 random(GetParam());
  for (int i = 0; i < 2000; ++i) {
    std::uint64_t value = random() >> (random() % 64);
    const std::uint64_t round = kRound[random() % std::size(kRound)];
    if (value < kMost / round) value *= round;
    const nanoseconds duration(static_cast<std::int64_t>(value >> 1));
    ASSERT_EQ(*parse_size(format_size(value)), value);
    ASSERT_EQ(*parse_duration(format_duration(duration)), duration) << format_duration(duration);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, UnitsSeed, testing::Range(0u, 10u));

}  // namespace
}  // namespace ordo

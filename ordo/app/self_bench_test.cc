#include "ordo/app/self_bench.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <unistd.h>

#include <gtest/gtest.h>

#include "ordo/core/clock.h"

namespace ordo::app {
namespace {

TEST(SelfBenchTest, ThePictureHasABarForEachRowAndCountsEveryValue) {
  Histogram latency;
  for (std::uint64_t i = 1; i <= 100; ++i)
    latency.record(i * 1'000);
  const std::string picture = bench_picture(latency, 4);
  EXPECT_EQ(std::count(picture.begin(), picture.end(), '\n'), 4);
  EXPECT_NE(picture.find('#'), std::string::npos);
  EXPECT_EQ(bench_picture(Histogram(), 4), "");
  Histogram one;
  one.record(5'000);
  EXPECT_NE(bench_picture(one, 3).find("# 1\n"), std::string::npos);
}

TEST(SelfBenchTest, MeasuresAllPartsInOrderAndLeavesNothingBehind) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("self-bench-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const Result<BenchReport> report =
      run_self_bench({.part_time = std::chrono::milliseconds(50), .folder = folder.string()});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->publish_latency.count(), 0u);
  EXPECT_GT(report->batched, 0u);
  EXPECT_EQ(report->consumed, report->batched + report->publish_latency.count());
  EXPECT_EQ(report->misordered, 0u);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST(SelfBenchTest, StoppedItLeavesNothingBehind) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("self-bench-stop-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  // In the first part, and in the second.
  for (const auto stop_after : {std::chrono::milliseconds(0), std::chrono::milliseconds(25)}) {
    BenchOptions options{.part_time = std::chrono::milliseconds(20), .folder = folder.string()};
    std::optional<TimePoint> began;
    options.stops = [&] {
      const TimePoint now = system_clock().now();
      if (!began) began = now;
      return now - *began >= stop_after;
    };
    const Result<BenchReport> report = run_self_bench(options);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::cancelled);
    EXPECT_TRUE(std::filesystem::is_empty(folder));
  }
  std::filesystem::remove_all(folder);
}

TEST(SelfBenchTest, AFolderThatCannotBeMadeIsAnError) {
  EXPECT_FALSE(run_self_bench({.folder = "/nowhere/at/all"}));
}

}  // namespace
}  // namespace ordo::app

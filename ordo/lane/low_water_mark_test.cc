#include "ordo/lane/low_water_mark.h"

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace ordo {
namespace {

using Intervals = std::vector<LowWaterMark::Interval>;

void start(LowWaterMark& done, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t position = begin; position < end; ++position) {
    ASSERT_TRUE(done.start(position));
  }
}

TEST(LowWaterMarkTest, RisesWithWorkThatEndsInOrderAndKeepsNothing) {
  LowWaterMark done(10);
  EXPECT_EQ(done.mark(), 10u);
  for (std::uint64_t position = 10; position < 20; ++position) {
    EXPECT_TRUE(done.start(position));
    EXPECT_EQ(done.head(), position);
    EXPECT_TRUE(done.complete(position));
    EXPECT_EQ(done.mark(), position + 1);
    EXPECT_EQ(done.interval_count(), 0u);
  }
  EXPECT_FALSE(done.head());
}

TEST(LowWaterMarkTest, WaitsForTheLowestPositionInFlight) {
  LowWaterMark done;
  start(done, 0, 5);
  done.complete(1);
  done.complete(3);
  done.complete(4);
  EXPECT_EQ(done.mark(), 0u);
  EXPECT_EQ(done.completed_above(), (Intervals{{1, 2}, {3, 5}}));
  done.complete(0);
  EXPECT_EQ(done.mark(), 2u);
  EXPECT_EQ(done.head(), 2u);
  done.complete(2);
  EXPECT_EQ(done.mark(), 5u);
  EXPECT_EQ(done.in_flight_count(), 0u);
}

TEST(LowWaterMarkTest, OneSlowPositionCostsOneIntervalHoweverMuchFollows) {
  LowWaterMark done;
  start(done, 0, 10'000);
  for (std::uint64_t position = 9'999; position > 0; --position) {
    done.complete(position);
    EXPECT_EQ(done.interval_count(), 1u);
  }
  done.complete(0);
  EXPECT_EQ(done.mark(), 10'000u);
  EXPECT_EQ(done.interval_count(), 0u);
}

TEST(LowWaterMarkTest, FillingAGapJoinsItsNeighbours) {
  LowWaterMark done;
  start(done, 0, 6);
  done.complete(2);
  done.complete(4);
  EXPECT_EQ(done.interval_count(), 2u);
  done.complete(3);
  EXPECT_EQ(done.completed_above(), (Intervals{{2, 5}}));
}

TEST(LowWaterMarkTest, PositionsPassedOverCountAsCompleted) {
  LowWaterMark done(100);
  EXPECT_TRUE(done.start(110));
  EXPECT_EQ(done.mark(), 110u) << "nothing lies between 100 and 110";
  EXPECT_TRUE(done.start(120));
  EXPECT_TRUE(done.is_completed(115));
  EXPECT_FALSE(done.is_completed(120));
  done.complete(120);
  EXPECT_EQ(done.mark(), 110u);
  EXPECT_FALSE(done.complete(115));
  done.complete(110);
  EXPECT_EQ(done.mark(), 121u);
}

TEST(LowWaterMarkTest, CompletingTwiceDoesNoHarm) {
  LowWaterMark done;
  start(done, 0, 3);
  EXPECT_TRUE(done.complete(1));
  EXPECT_FALSE(done.complete(1));
  EXPECT_TRUE(done.complete(0));
  EXPECT_FALSE(done.complete(0));
  EXPECT_EQ(done.in_flight_count(), 1u);
}

TEST(LowWaterMarkTest, AfterARestartOnlyWhatWasNotCompletedIsStartedAgain) {
  LowWaterMark before;
  start(before, 0, 8);
  for (const std::uint64_t position : {0u, 2u, 3u, 6u}) {
    before.complete(position);
  }
  auto after = LowWaterMark::restore(before.mark(), before.completed_above());
  ASSERT_TRUE(after);
  std::vector<std::uint64_t> started;
  for (std::uint64_t position = after->mark(); position < 8; ++position) {
    if (after->start(position)) started.push_back(position);
  }
  EXPECT_EQ(started, (std::vector<std::uint64_t>{1, 4, 5, 7}));
  for (const std::uint64_t position : started) {
    EXPECT_TRUE(after->complete(position));
  }
  EXPECT_EQ(after->mark(), 8u);
}

TEST(LowWaterMarkTest, TheMarkMayPassPositionsNotYetReadAgainAfterARestart) {
  auto done = LowWaterMark::restore(5, {{6, 9}});
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->start(5));
  EXPECT_TRUE(done->complete(5));
  EXPECT_EQ(done->mark(), 9u);
  for (const std::uint64_t position : {6u, 7u, 8u}) {
    EXPECT_FALSE(done->start(position));
  }
  EXPECT_TRUE(done->start(9));
}

TEST(LowWaterMarkTest, RestoringWhatWeCannotHaveWrittenIsAnError) {
  EXPECT_TRUE(LowWaterMark::restore(5, {}));
  EXPECT_TRUE(LowWaterMark::restore(5, {{6, 7}, {8, 9}}));
  EXPECT_FALSE(LowWaterMark::restore(5, {{5, 7}}));
  EXPECT_FALSE(LowWaterMark::restore(5, {{3, 4}}));
  EXPECT_FALSE(LowWaterMark::restore(5, {{7, 7}}));
  EXPECT_FALSE(LowWaterMark::restore(5, {{8, 7}}));
  EXPECT_FALSE(LowWaterMark::restore(5, {{6, 7}, {7, 9}}));
  EXPECT_FALSE(LowWaterMark::restore(5, {{8, 9}, {6, 7}}));
  const auto result = LowWaterMark::restore(5, {{3, 4}});
  EXPECT_EQ(result.error().code, ErrorCode::data_loss);
  EXPECT_EQ(result.error().message,
            "completed positions 3 to 4 must not be empty and must lie above 5");
}

TEST(LowWaterMarkTest, TheLargestPositionServes) {
  constexpr std::uint64_t kLast = LowWaterMark::kPositionEnd - 1;
  LowWaterMark done(kLast);
  EXPECT_TRUE(done.start(kLast));
  EXPECT_TRUE(done.complete(kLast));
  EXPECT_EQ(done.mark(), LowWaterMark::kPositionEnd);
}

TEST(LowWaterMarkDeathTest, StartingBackwardsIsAProgrammerError) {
  LowWaterMark done;
  start(done, 0, 3);
  EXPECT_DEATH(static_cast<void>(done.start(2)), "position >= frontier_");
  EXPECT_DEATH(static_cast<void>(done.start(LowWaterMark::kPositionEnd)), "kPositionEnd");
}

TEST(LowWaterMarkDeathTest, CompletingWhatWasNotStartedIsAProgrammerError) {
  LowWaterMark done;
  EXPECT_DEATH(done.complete(0), "position < frontier_");
}

// Goal: the mark is always the lowest position in flight, through restarts and gaps, and the
// intervals are as few as they can be. Method: random calls against the set of what is in flight;
// the seed names the failing run.
class LowWaterMarkSchedule : public testing::TestWithParam<std::uint32_t> {};

TEST_P(LowWaterMarkSchedule, AgreesWithThePlainModelAtEveryStep) {
  std::mt19937 random(GetParam());
  const std::uint64_t gap_max = 1 + random() % 4;
  LowWaterMark done;
  std::set<std::uint64_t> in_flight;
  std::uint64_t next = 0;

  for (int step = 0; step < 3'000; ++step) {
    const auto dice = random() % 100;
    if (dice < 50 && in_flight.size() < 50) {
      next += random() % gap_max;
      ASSERT_TRUE(done.start(next));
      in_flight.insert(next++);
    } else if (dice < 99 && !in_flight.empty()) {
      auto place = in_flight.begin();
      std::advance(place, static_cast<std::ptrdiff_t>(random() % in_flight.size()));
      ASSERT_TRUE(done.complete(*place));
      ASSERT_FALSE(done.complete(*place));
      in_flight.erase(place);
    } else if (dice == 99) {  // A restart: read all again from the mark.
      auto restored = LowWaterMark::restore(done.mark(), done.completed_above());
      ASSERT_TRUE(restored);
      for (std::uint64_t position = restored->mark(); position < next; ++position) {
        ASSERT_EQ(restored->start(position), in_flight.contains(position)) << "step " << step;
      }
      done = *restored;
    }
    ASSERT_EQ(done.mark(), in_flight.empty() ? next : *in_flight.begin()) << "at step " << step;
    ASSERT_EQ(done.in_flight_count(), in_flight.size());
    ASSERT_LE(done.interval_count(), in_flight.size());
    const std::uint64_t probe = next == 0 ? 0 : random() % next;
    if (next > 0) {
      ASSERT_EQ(done.is_completed(probe), !in_flight.contains(probe));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, LowWaterMarkSchedule, testing::Range(0u, 50u));

}  // namespace
}  // namespace ordo

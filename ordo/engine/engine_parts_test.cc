// The parts of the engine that need no threads: counts of ids, lanes and their turns, marks.
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/core/hash.h"
#include "ordo/engine/caller.h"
#include "ordo/engine/id_counts.h"
#include "ordo/engine/task_lanes.h"

namespace ordo::engine {
namespace {

class IdCountsModel : public testing::TestWithParam<unsigned> {};

// Goal: whatever comes and goes, the counts are those of a map. Method: random ids, few enough
// to meet again and to collide in a table that is as full as it can be.
TEST_P(IdCountsModel, CountsAreThoseOfAMap) {
  std::mt19937 random(GetParam());
  constexpr std::size_t kIds = 24;
  constexpr std::size_t kLimit = 3;
  IdCounts counts(kIds);
  std::map<CorrelationId, std::size_t> model;
  for (int step = 0; step < 5'000; ++step) {
    const auto id = static_cast<CorrelationId>(1 + random() % 60);
    if (random() % 2 == 0) {
      if (model.count(id) == 0 && model.size() == kIds) continue;
      const bool fits = model[id] < kLimit;
      ASSERT_EQ(counts.try_add(id, hash_of(id), kLimit), fits);
      model[id] += fits ? 1 : 0;
    } else if (model.count(id) > 0) {
      counts.remove(id, hash_of(id));
      if (--model[id] == 0) model.erase(id);
    }
    for (CorrelationId each = 1; each <= 60; ++each) {
      const auto found = model.find(each);
      ASSERT_EQ(counts.count_of(each), found == model.end() ? 0 : found->second);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, IdCountsModel, testing::Range(0u, 10u));

Arrival<int> arrival(int task, CorrelationId id) {
  return {task, id, TimePoint{}};
}

// Which tasks a turn of at most `count_max` of each kind takes, each ended at once.
std::vector<int> turn_of(TaskLanes<int>& lanes, std::size_t count_max) {
  std::vector<int> taken;
  lanes.begin_turn(count_max);
  while (const InTurn<int> turn = lanes.take(TimePoint{})) {
    taken.push_back(turn.held->task);
    lanes.end(turn.place, TimePoint{});
  }
  return taken;
}

TEST(TaskLanesTest, TheTwoKindsTakeTurnsWhileBothAreReady) {
  TaskLanes<int> lanes(100);
  for (int n = 0; n < 4; ++n)
    lanes.add(arrival(n, 1 + n));
  for (int n = 10; n < 14; ++n)
    lanes.add(arrival(n, 0));
  EXPECT_EQ(turn_of(lanes, 64), (std::vector<int>{10, 0, 11, 1, 12, 2, 13, 3}));
}

TEST(TaskLanesTest, ATurnTakesNoMoreThanItMayOfEachKind) {
  TaskLanes<int> lanes(100);
  for (int n = 0; n < 5; ++n)
    lanes.add(arrival(n, 1 + n));
  for (int n = 10; n < 13; ++n)
    lanes.add(arrival(n, -1));
  EXPECT_EQ(turn_of(lanes, 2), (std::vector<int>{10, 0, 11, 1}));
  EXPECT_EQ(turn_of(lanes, 2), (std::vector<int>{12, 2, 3}));
  EXPECT_EQ(turn_of(lanes, 2), (std::vector<int>{4}));
}

TEST(TaskLanesTest, AnIdWithManyTasksGoesBehindTheOthers) {
  TaskLanes<int> lanes(100);
  for (int n = 0; n < 3; ++n)
    lanes.add(arrival(n, 7));
  lanes.add(arrival(10, 8));
  lanes.add(arrival(20, 9));
  EXPECT_EQ(turn_of(lanes, 64), (std::vector<int>{0, 10, 20, 1, 2}));
}

TEST(TaskLanesTest, AnUncorrelatedTaskWaitsForNoneInFlight) {
  TaskLanes<int> lanes(100);
  lanes.add(arrival(1, 7));
  lanes.add(arrival(2, 7));
  lanes.add(arrival(3, 0));
  lanes.add(arrival(4, 0));
  lanes.begin_turn(64);
  std::vector<InTurn<int>> in_flight;
  while (const InTurn<int> turn = lanes.take(TimePoint{}))
    in_flight.push_back(turn);
  EXPECT_EQ(in_flight.size(), 3u);  // The second of id 7 waits; the uncorrelated do not.
  EXPECT_EQ(lanes.in_flight_count(), 3u);
  for (const InTurn<int>& turn : in_flight)
    lanes.end(turn.place, TimePoint{});
  EXPECT_EQ(turn_of(lanes, 64), (std::vector<int>{2}));
  EXPECT_EQ(lanes.lane_count(), 0u);
}

std::vector<std::size_t> marks_of(Caller& caller) {
  std::vector<std::size_t> marks;
  caller.take_marks([&](std::size_t partition) { marks.push_back(partition); });
  return marks;
}

TEST(CallerTest, MarksAreTakenOnceAndKeptForEachEngine) {
  Caller caller;
  const std::shared_ptr<const void> alive = std::make_shared<char>();
  caller.switch_to(1'001, alive);
  caller.mark(0);
  caller.mark(255);
  caller.switch_to(1'002, alive);
  EXPECT_TRUE(marks_of(caller).empty());
  caller.mark(64);
  caller.switch_to(1'001, alive);
  EXPECT_EQ(marks_of(caller), (std::vector<std::size_t>{0, 255}));
  EXPECT_TRUE(marks_of(caller).empty());
  caller.switch_to(1'002, alive);
  EXPECT_EQ(marks_of(caller), (std::vector<std::size_t>{64}));
}

TEST(CallerTest, MarksOfAnEngineThatIsGoneAreForgotten) {
  Caller caller;
  const std::shared_ptr<const void> alive = std::make_shared<char>();
  std::shared_ptr<const void> short_lived = std::make_shared<char>();
  caller.switch_to(2'001, short_lived);
  caller.mark(3);
  short_lived.reset();
  caller.switch_to(2'002, alive);
  caller.switch_to(2'001, alive);
  EXPECT_TRUE(marks_of(caller).empty());
}

}  // namespace
}  // namespace ordo::engine

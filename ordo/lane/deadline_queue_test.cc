#include "ordo/lane/deadline_queue.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/core/id.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;

using Queue = DeadlineQueue<std::string>;

constexpr TimePoint kStart = TimePoint{} + 1h;

TEST(DeadlineQueueTest, TheEarliestDeadlineExpiresFirst) {
  Queue queue;
  queue.add("late", kStart + 3s);
  queue.add("early", kStart + 1s);
  queue.add("middle", kStart + 2s);
  EXPECT_EQ(queue.next_deadline(), kStart + 1s);
  EXPECT_EQ(queue.pop_expired(kStart + 1h), "early");
  EXPECT_EQ(queue.pop_expired(kStart + 1h), "middle");
  EXPECT_EQ(queue.pop_expired(kStart + 1h), "late");
  EXPECT_EQ(queue.pop_expired(kStart + 1h), std::nullopt);
}

TEST(DeadlineQueueTest, NothingExpiresBeforeItsDeadline) {
  Queue queue;
  queue.add("a", kStart);
  EXPECT_EQ(queue.pop_expired(kStart - 1ns), std::nullopt);
  EXPECT_EQ(queue.pop_expired(kStart), "a");
}

TEST(DeadlineQueueTest, EqualDeadlinesExpireInTheOrderOfAdding) {
  Queue queue;
  for (int i = 0; i < 100; ++i) {
    queue.add(std::to_string(i), kStart);
  }
  queue.update("0", kStart);  // As if added again.
  for (int i = 1; i < 100; ++i) {
    EXPECT_EQ(queue.pop_expired(kStart), std::to_string(i));
  }
  EXPECT_EQ(queue.pop_expired(kStart), "0");
}

TEST(DeadlineQueueTest, AnUpdateMovesADeadlineBothWays) {
  Queue queue;
  queue.add("a", kStart + 1s);
  queue.add("b", kStart + 2s);
  queue.update("a", kStart + 3s);
  EXPECT_EQ(queue.next_deadline(), kStart + 2s);
  queue.update("a", kStart);
  EXPECT_EQ(queue.next_deadline(), kStart);
  EXPECT_EQ(queue.deadline_of("a"), kStart);
  EXPECT_EQ(queue.count(), 2u);
}

TEST(DeadlineQueueTest, SettingAddsOrUpdates) {
  Queue queue;
  EXPECT_TRUE(queue.set("a", kStart));
  EXPECT_FALSE(queue.set("a", kStart + 1s));
  EXPECT_EQ(queue.deadline_of("a"), kStart + 1s);
}

TEST(DeadlineQueueTest, ACancelledIdDoesNotExpire) {
  Queue queue;
  queue.add("a", kStart);
  EXPECT_TRUE(queue.cancel("a"));
  EXPECT_FALSE(queue.cancel("a"));
  EXPECT_FALSE(queue.contains("a"));
  EXPECT_EQ(queue.pop_expired(TimePoint::max()), std::nullopt);
  EXPECT_EQ(queue.next_deadline(), std::nullopt);
  EXPECT_TRUE(queue.empty());
  queue.add("a", kStart);  // And may come again.
  EXPECT_EQ(queue.pop_expired(kStart), "a");
}

TEST(DeadlineQueueTest, TheFirstAndTheLastTimeThereIsAreDeadlines) {
  Queue queue;
  queue.add("never", TimePoint::max());
  queue.add("always", TimePoint::min());
  EXPECT_EQ(queue.pop_expired(TimePoint::min()), "always");
  EXPECT_EQ(queue.pop_expired(TimePoint::max() - 1ns), std::nullopt);
  EXPECT_EQ(queue.pop_expired(TimePoint::max()), "never");
}

TEST(DeadlineQueueTest, IdsOfAnyKindServe) {
  using LeaseId = Id<struct LeaseIdTag>;
  DeadlineQueue<LeaseId> queue;
  queue.add(LeaseId(7), kStart);
  EXPECT_EQ(queue.pop_expired(kStart), LeaseId(7));
}

TEST(DeadlineQueueTest, AClearedQueueIsAsNew) {
  Queue queue;
  queue.add("a", kStart);
  queue.clear();
  EXPECT_TRUE(queue.empty());
  queue.add("a", kStart);
  EXPECT_EQ(queue.count(), 1u);
}

TEST(DeadlineQueueDeathTest, AddingTwiceIsAProgrammerError) {
  Queue queue;
  queue.add("a", kStart);
  EXPECT_DEATH(queue.add("a", kStart), "kNoIndex");
}

TEST(DeadlineQueueDeathTest, UpdatingWhatIsNotThereIsAProgrammerError) {
  Queue queue;
  EXPECT_DEATH(queue.update("a", kStart), "kNoIndex");
}

// Goal: every id expires once, in the order of deadlines and then of adding, unless cancelled.
// Method: random calls against a list that is kept sorted; the seed names the failing run.
class DeadlineQueueSchedule : public testing::TestWithParam<std::uint32_t> {};

TEST_P(DeadlineQueueSchedule, AgreesWithThePlainModelAtEveryStep) {
  struct Entry {
    TimePoint deadline;
    int id;
  };
  std::mt19937 random(GetParam());
  DeadlineQueue<int> queue;
  std::vector<Entry> model;
  TimePoint now;

  auto put = [&](int id, TimePoint deadline) {
    const auto after =
        std::upper_bound(model.begin(), model.end(), deadline,
                         [](TimePoint time, const Entry& entry) { return time < entry.deadline; });
    model.insert(after, Entry{deadline, id});
  };
  auto remove = [&](int id) {
    return std::erase_if(model, [&](const Entry& entry) { return entry.id == id; }) > 0;
  };
  for (int step = 0; step < 5'000; ++step) {
    const int id = static_cast<int>(random() % 200);
    const TimePoint deadline = now + std::chrono::nanoseconds(random() % 50);
    switch (random() % 4) {
      case 0:
      case 1: {
        const bool was_there = remove(id);
        put(id, deadline);
        ASSERT_EQ(queue.set(id, deadline), !was_there);
        break;
      }
      case 2:
        ASSERT_EQ(queue.cancel(id), remove(id));
        break;
      default:
        now += std::chrono::nanoseconds(random() % 4);
        while (!model.empty() && model.front().deadline <= now) {
          ASSERT_EQ(queue.pop_expired(now), model.front().id) << "at step " << step;
          model.erase(model.begin());
        }
        ASSERT_EQ(queue.pop_expired(now), std::nullopt);
        break;
    }
    ASSERT_EQ(queue.count(), model.size());
    if (!model.empty()) {
      ASSERT_EQ(queue.next_deadline(), model.front().deadline);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, DeadlineQueueSchedule, testing::Range(0u, 50u));

}  // namespace
}  // namespace ordo

// Goal: whatever the schedule, KeyedQueue does what its plain description says: order within
// every key, one in flight, round robin, retries in place, parking, limits, nothing lost.
// Method: random calls against a model of lists and maps that is too slow to be wrong; after each
// step both must agree. The seed names the failing run.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/lane/keyed_queue.h"

namespace ordo {
namespace {

struct ModelLane {
  std::deque<int> items;
  LaneState state = LaneState::ready;
  bool parks_after_turn = false;
  unsigned attempt = 0;
  TimePoint head_since;
};

struct ModelTurn {
  int key;
  int item;
  unsigned attempt;

  friend bool operator==(const ModelTurn&, const ModelTurn&) = default;
};

// One list for each state, in the order in which lanes leave it.
class Model {
 public:
  Model(std::size_t item_count_max, std::size_t lane_item_count_max)
      : item_count_max_(item_count_max),
        lane_item_count_max_(lane_item_count_max) {}

  Admission push(int key, int item, TimePoint now) {
    if (item_count() >= item_count_max_) return Admission::full;
    if (!lanes.contains(key)) {
      lanes[key];
      ready.push_back(key);
    }
    ModelLane& lane = lanes[key];
    if (lane.items.size() >= lane_item_count_max_) return Admission::key_full;
    if (lane.items.empty()) lane.head_since = now;
    lane.items.push_back(item);
    return Admission::admitted;
  }

  std::optional<ModelTurn> take() {
    if (ready.empty()) return std::nullopt;
    const int key = ready.front();
    ready.pop_front();
    ModelLane& lane = lanes[key];
    lane.state = LaneState::in_flight;
    return ModelTurn{key, lane.items.front(), ++lane.attempt};
  }

  void finish(int key, TimePoint now) {
    pop(lanes[key], now);
    settle(key);
  }

  void give_back(int key, TimePoint due) {
    if (lanes[key].parks_after_turn) return settle(key);
    lanes[key].state = LaneState::delayed;
    const auto after =
        std::upper_bound(delayed.begin(), delayed.end(), due,
                         [](TimePoint time, const auto& entry) { return time < entry.first; });
    delayed.insert(after, {due, key});
  }

  std::size_t wake(TimePoint now) {
    std::size_t count = 0;
    for (; !delayed.empty() && delayed.front().first <= now; ++count) {
      const int key = delayed.front().second;
      delayed.erase(delayed.begin());
      make_ready(key);
    }
    return count;
  }

  std::optional<int> drop_head(int key, TimePoint now) {
    if (!lanes.contains(key) || lanes[key].items.empty()) return std::nullopt;
    ModelLane& lane = lanes[key];
    const int item = lane.items.front();
    pop(lane, now);
    if (lane.state == LaneState::parked) return item;
    if (lane.items.empty()) {
      leave(key);
      lanes.erase(key);
    } else if (lane.state == LaneState::delayed) {
      leave(key);
      make_ready(key);
    }
    return item;
  }

  bool park(int key) {
    if (lanes.contains(key)) {
      ModelLane& lane = lanes[key];
      if (lane.state == LaneState::parked || lane.parks_after_turn) return false;
      if (lane.state == LaneState::in_flight) return lane.parks_after_turn = true;
      leave(key);
    }
    lanes[key].state = LaneState::parked;
    parked.push_back(key);
    return true;
  }

  bool resume(int key) {
    if (!lanes.contains(key)) return false;
    ModelLane& lane = lanes[key];
    if (std::exchange(lane.parks_after_turn, false)) return true;
    if (lane.state != LaneState::parked) return false;
    leave(key);
    settle(key);
    return true;
  }

  void settle(int key) {
    ModelLane& lane = lanes[key];
    if (std::exchange(lane.parks_after_turn, false)) {
      lane.state = LaneState::parked;
      parked.push_back(key);
    } else if (lane.items.empty()) {
      lanes.erase(key);
    } else {
      make_ready(key);
    }
  }

  std::size_t item_count() const {
    std::size_t count = 0;
    for (const auto& [key, lane] : lanes) {
      count += lane.items.size();
    }
    return count;
  }

  std::map<int, ModelLane> lanes;
  std::deque<int> ready;
  std::vector<int> parked;
  std::vector<std::pair<TimePoint, int>> delayed;

 private:
  static void pop(ModelLane& lane, TimePoint now) {
    lane.items.pop_front();
    lane.attempt = 0;
    lane.head_since = now;
  }

  void make_ready(int key) {
    lanes[key].state = LaneState::ready;
    ready.push_back(key);
  }

  void leave(int key) {
    std::erase(ready, key);
    std::erase(parked, key);
    std::erase_if(delayed, [&](const auto& entry) { return entry.second == key; });
  }

  const std::size_t item_count_max_;
  const std::size_t lane_item_count_max_;
};

std::string name_of(int key) {
  return "key-of-more-than-sixteen-bytes-" + std::to_string(key);
}
int key_of(const std::string& name) {
  return std::stoi(name.substr(name.rfind('-') + 1));
}

class KeyedQueueSchedule : public testing::TestWithParam<std::uint32_t> {
 protected:
  using Queue = KeyedQueue<std::string, int>;

  int any_key() { return static_cast<int>(random() % key_count); }

  void step() {
    now += std::chrono::nanoseconds(random() % 3);
    switch (random() % 10) {
      case 0:
      case 1:
      case 2: {
        const int key = any_key();
        ASSERT_EQ(queue.push(name_of(key), next_item, now), model.push(key, next_item, now));
        ++next_item;
        break;
      }
      case 3:
      case 4:
        take();
        break;
      case 5:
      case 6:
        end_a_turn();
        break;
      case 7:
        ASSERT_EQ(queue.wake(now), model.wake(now));
        break;
      case 8: {
        const int key = any_key();
        if (random() % 2 == 0) {
          ASSERT_EQ(queue.park(name_of(key), now), model.park(key));
        } else {
          ASSERT_EQ(queue.resume(name_of(key)), model.resume(key));
        }
        break;
      }
      default: {
        const int key = any_key();
        if (turns.contains(key)) break;
        ASSERT_EQ(queue.drop_head(name_of(key), now), model.drop_head(key, now));
        break;
      }
    }
  }

  void take() {
    std::optional<ModelTurn> turn;
    if (auto taken = queue.take(now)) {
      turn = ModelTurn{key_of(taken->key), taken->item, taken->attempt};
      ASSERT_TRUE(turns.emplace(turn->key, taken->lane).second) << "two in flight of one key";
    }
    ASSERT_EQ(turn, model.take());
  }

  void end_a_turn() {
    if (turns.empty()) return;
    auto place = std::next(turns.begin(), static_cast<std::ptrdiff_t>(random() % turns.size()));
    const auto [key, lane] = *place;
    turns.erase(place);
    const TimePoint due = now + std::chrono::nanoseconds(random() % 20);
    switch (random() % 5) {
      case 0:
        queue.finish(lane, now);
        return model.finish(key, now);
      case 1:
        queue.finish(name_of(key), now);
        return model.finish(key, now);
      case 2:
        queue.give_back(lane);
        return model.settle(key);
      case 3:
        queue.give_back(lane, due);
        return model.give_back(key, due);
      default:
        queue.give_back(name_of(key), due);
        return model.give_back(key, due);
    }
  }

  void expect_same_counts() {
    ASSERT_EQ(queue.item_count(), model.item_count());
    ASSERT_EQ(queue.key_count(), model.lanes.size());
    ASSERT_EQ(queue.ready_count(), model.ready.size());
    ASSERT_EQ(queue.parked_count(), model.parked.size());
    ASSERT_EQ(queue.delayed_count(), model.delayed.size());
    ASSERT_EQ(queue.in_flight_count(), turns.size());
    ASSERT_EQ(queue.next_due().has_value(), !model.delayed.empty());
    if (queue.next_due()) {
      ASSERT_EQ(*queue.next_due(), model.delayed.front().first);
    }
  }

  void expect_same_lane(int key) {
    const auto info = queue.lane(name_of(key));
    ASSERT_EQ(info.has_value(), model.lanes.contains(key));
    if (!info) return;
    const ModelLane& lane = model.lanes[key];
    ASSERT_EQ(info->state, lane.state);
    ASSERT_EQ(info->item_count, lane.items.size());
    ASSERT_EQ(info->attempt, lane.attempt);
    ASSERT_EQ(info->head == nullptr, lane.items.empty());
    if (info->head == nullptr) return;
    ASSERT_EQ(*info->head, lane.items.front());
    ASSERT_EQ(info->head_since, lane.head_since);
  }

  void expect_same_contents() {
    std::map<int, std::deque<int>> left;
    queue.for_each_item(
        [&](const std::string& name, int item) { left[key_of(name)].push_back(item); });
    std::size_t lane_count = 0;
    queue.for_each_lane([&](const Queue::LaneInfo& info) {
      ++lane_count;
      ASSERT_EQ(left[key_of(info.key)], model.lanes[key_of(info.key)].items);
    });
    ASSERT_EQ(lane_count, model.lanes.size());
    std::vector<int> parked;
    queue.for_each_parked([&](const auto& info) { parked.push_back(key_of(info.key)); });
    ASSERT_EQ(parked, model.parked);
  }

  std::mt19937 random{GetParam()};
  const std::uint32_t key_count = 1 + static_cast<std::uint32_t>(random() % 40);
  const std::size_t item_count_max = 1 + random() % 200;
  const std::size_t lane_item_count_max =
      random() % 2 == 0 ? 1 + random() % 8 : std::numeric_limits<std::size_t>::max();
  Queue queue{item_count_max, lane_item_count_max};
  Model model{item_count_max, lane_item_count_max};
  std::map<int, LaneHandle> turns;  // In flight.
  TimePoint now;
  int next_item = 0;
};

TEST_P(KeyedQueueSchedule, AgreesWithThePlainModelAtEveryStep) {
  for (int steps = 0; steps < 3'000; ++steps) {
    step();
    if (HasFatalFailure()) FAIL() << "at step " << steps;
    expect_same_counts();
    expect_same_lane(any_key());
    if (steps % 64 == 0) expect_same_contents();
    if (HasFatalFailure()) FAIL() << "after step " << steps;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, KeyedQueueSchedule, testing::Range(0u, 100u));

}  // namespace
}  // namespace ordo

// What one entity may cost the others in waiting time: nothing that shows.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/core/clock.h"
#include "ordo/dispatcher.h"
#include "tests/support/gates.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::eventually;
using testing_support::Gates;
using testing_support::Watchdog;
using Duration = std::chrono::nanoseconds;

constexpr int kOthers = 99;
constexpr int kWaves = 20;

struct Probe {
  Duration* wait = nullptr;  // From dispatch to handler; null in the hot entity.
  TimePoint since;
};

// The p99 of the others' waiting times over some waves of one event each, with entity 0 stuck in
// its handler and its queue full, or without it. The handlers of the others take `work`.
Duration p99_of_the_others(bool is_hot, Duration work) {
  Gates<> gates;
  Clock& clock = system_clock();
  std::vector<Duration> waits(kOthers * (kWaves + 1));
  std::atomic<std::size_t> handled = 0;
  Dispatcher<int, Probe> d(
      [&](int, const Probe& probe) {
        if (probe.wait == nullptr) {
          gates.enter(0);
          return;
        }
        const TimePoint begin = clock.now();
        *probe.wait = begin - probe.since;
        while (clock.now() < begin + work) {
        }
        ++handled;
      },
      {.threads = 4, .max_queued_per_key = 10});
  while (is_hot && d.dispatch(0, Probe{}) == Dispatched::admitted) {
  }
  EXPECT_TRUE(!is_hot || gates.await(0));
  std::size_t count = 0;
  for (int wave = 0; wave <= kWaves; ++wave) {
    for (int key = 1; key <= kOthers; ++key) {
      if (is_hot && key % 10 == 0) {
        EXPECT_EQ(d.dispatch(0, Probe{}), Dispatched::key_full);
      }
      EXPECT_EQ(d.dispatch(key, Probe{&waits[count++], clock.now()}), Dispatched::admitted);
    }
    EXPECT_TRUE(eventually([&] { return handled == count; }));
  }
  gates.open_all();
  EXPECT_TRUE(d.shutdown(30s).empty());
  waits.erase(waits.begin(), waits.begin() + kOthers);  // The first wave warms up.
  const auto place = waits.begin() + static_cast<std::ptrdiff_t>(waits.size() * 99 / 100);
  std::nth_element(waits.begin(), place, waits.end());
  return *place;
}

Duration median(std::vector<Duration> values) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

// Goal: one hot slow entity with a full queue leaves the p99 of 99 others under twice that of an
// undisturbed run. Method: rounds of both kinds in turn, and the median of each kind, as what else
// runs on the machine disturbs both. Ends as soon as it holds.
void expect_under_twice_the_undisturbed(Duration work) {
  constexpr std::size_t kRoundsMin = 5;
  constexpr std::size_t kRoundsMax = 501;
  std::vector<Duration> quiet_rounds;
  std::vector<Duration> hot_rounds;
  Duration quiet{0};
  Duration hot{0};
  do {
    quiet_rounds.push_back(p99_of_the_others(false, work));
    hot_rounds.push_back(p99_of_the_others(true, work));
    quiet = median(quiet_rounds);
    hot = median(hot_rounds);
  } while (hot_rounds.size() < kRoundsMin || (hot >= 2 * quiet && hot_rounds.size() < kRoundsMax));
  EXPECT_LT(hot.count(), 2 * quiet.count());
  testing::Test::RecordProperty("p99_ns_undisturbed", std::to_string(quiet.count()));
  testing::Test::RecordProperty("p99_ns_beside_a_hot_entity", std::to_string(hot.count()));
}

TEST(DispatcherLatencyTest, TheOthersP99BesideAHotSlowEntityStaysUnderTwiceTheUndisturbed) {
  Watchdog watchdog("DispatcherLatencyTest");
  expect_under_twice_the_undisturbed(5us);
}

TEST(DispatcherLatencyTest, TheOthersP99StaysUnderTwiceTheUndisturbedIfTheyHaveNothingToDoEither) {
  Watchdog watchdog("DispatcherLatencyTest");
  expect_under_twice_the_undisturbed(0us);
}

}  // namespace
}  // namespace ordo

// Memory: no allocation per publish beyond the frame, none at all when nobody takes it.
// A program of its own, because it counts every operator new there is.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/support/allocations.h"
#include "ordo/bus.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.

constexpr std::uint64_t kFrames = 5'000;

std::vector<Subscription<int>> subscribe_all(Bus<int>& bus) {
  std::vector<Subscription<int>> subscriptions;
  for (unsigned index = 0; index < 16; ++index)
    subscriptions.push_back(bus.subscribe(std::to_string(index), static_cast<Priority>(index / 4),
                                          {.overflow = static_cast<Overflow>(index % 4)}));
  return subscriptions;
}

TEST(BusMemoryTest, APublishAllocatesItsFrameAndNothingElse) {
  Bus<int> bus;
  auto subscriptions = subscribe_all(bus);
  const std::uint64_t before = bench::allocation_count();
  for (std::uint64_t n = 0; n < kFrames; ++n) {
    bus.publish(1);
    for (auto& subscription : subscriptions)
      subscription.try_pop();
  }
  EXPECT_EQ(bench::allocation_count() - before, kFrames);
}

TEST(BusMemoryTest, WaitingAndEvictingAllocateNothing) {
  Bus<int> bus({.critical_timeout = 1us});
  auto subscriptions = subscribe_all(bus);
  const TimePoint soon = system_clock().now() + 1ms;
  for (std::uint64_t n = 0; n < 100; ++n)
    bus.publish(1, soon);
  const std::uint64_t before = bench::allocation_count();
  for (std::uint64_t n = 0; n < 100; ++n)
    bus.publish(1, system_clock().now() + 10us);
  EXPECT_LE(bench::allocation_count() - before, 100U);
}

TEST(BusMemoryTest, AFrameThatNobodyTakesIsNotMade) {
  Bus<int> bus({.critical_timeout = 0ns});
  auto critical = bus.subscribe("critical", Priority::critical);
  auto best = bus.subscribe("best", Priority::best_effort);
  for (std::uint64_t n = 0; n < 100; ++n)
    bus.publish(1);
  const std::uint64_t before = bench::allocation_count();
  for (std::uint64_t n = 0; n < kFrames; ++n)
    bus.publish(1);
  EXPECT_EQ(bench::allocation_count(), before);
  EXPECT_EQ(bus.stats().published, 100 + kFrames);
}

}  // namespace
}  // namespace ordo

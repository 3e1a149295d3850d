// The overload picture: who loses how much when the machine has less than is asked for.
#include <array>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "bench/bus/heats.h"
#include "bench/support/usage.h"
#include "ordo/bus.h"

namespace ordo::bench {
namespace {

constexpr std::array<const char*, 4> kNames = {"critical", "high", "normal", "best_effort"};
constexpr double kFramesPerSecond = 10'000;
// Longer than a time slice: a critical worker that waits for a core is not given up.
constexpr std::chrono::milliseconds kCriticalTimeout{20};
// For the two that matter 26 ms of frames, so that what fills a queue is the load, and not that its
// worker waits for a core. Less for the others: what they have queued is still worked on when they
// are shed already.
constexpr std::array<std::size_t, 4> kCapacities = {256, 256, 64, 64};

std::uint64_t thread_cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

// Uses so much processor time, however long that takes.
void burn(std::uint64_t ns) {
  const std::uint64_t end = thread_cpu_ns() + ns;
  while (thread_cpu_ns() < end) {
  }
}

}  // namespace

Measures measure_overload(double load, std::size_t milliseconds) {
  // Each frame costs each of the four the same; all together `load` times the machine.
  const auto burn_ns = static_cast<std::uint64_t>(load * machine_processors() * 1e9 /
                                                  kFramesPerSecond / kNames.size());
  Bus<std::uint64_t> bus({.critical_timeout = kCriticalTimeout});
  std::vector<Subscription<std::uint64_t>> subscriptions;
  for (std::size_t i = 0; i < kNames.size(); ++i)
    subscriptions.push_back(
        bus.subscribe(kNames[i], static_cast<Priority>(i), {.capacity = kCapacities[i]}));
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    workers.emplace_back([&, i] {
      while (subscriptions[i].pop())
        burn(burn_ns);
    });
  }
  const std::uint64_t begin = now_ns();
  const auto count =
      static_cast<std::uint64_t>(kFramesPerSecond * static_cast<double>(milliseconds) / 1000);
  for (std::uint64_t n = 0; n < count; ++n) {
    const auto due =
        begin + static_cast<std::uint64_t>(static_cast<double>(n) * 1e9 / kFramesPerSecond);
    const std::uint64_t now = now_ns();
    if (due > now) std::this_thread::sleep_for(std::chrono::nanoseconds(due - now));
    bus.publish(n);
  }
  const BusStats stats = bus.stats();
  for (auto& subscription : subscriptions)
    subscription.unsubscribe();
  for (std::thread& worker : workers)
    worker.join();

  Measures measures;
  measures.set("load", load);
  std::uint64_t accounted = 0;
  for (const char* name : kNames) {
    const SubscriberStats& part = stats.subscribers.at(name);
    accounted += part.sent + part.dropped;
    measures.set(std::string("dropped_") + name,
                 100.0 * static_cast<double>(part.dropped) / static_cast<double>(count));
  }
  measures.set("errors", accounted == count * kNames.size() ? 0 : 1);
  return measures;
}

}  // namespace ordo::bench

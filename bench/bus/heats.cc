#include "bench/bus/heats.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/usage.h"

namespace ordo::bench {
namespace {

constexpr std::size_t kBurst = 32;

// Empties the queues as the mode says, and counts.
class Consumers {
 public:
  Consumers(FanOut& bus, std::string_view mode, std::size_t subscribers) : bus_(bus) {
    if (mode == "polled") threads_.emplace_back([this, subscribers] { poll(subscribers); });
    if (mode == "threads") {
      for (std::size_t i = 0; i < subscribers; ++i) {
        threads_.emplace_back([this, i] {
          while (bus_.pop(i))
            count_.fetch_add(1, std::memory_order_relaxed);
        });
      }
    }
  }
  Consumers(const Consumers&) = delete;
  Consumers& operator=(const Consumers&) = delete;
  ~Consumers() {
    done_ = true;
    bus_.close();
    for (std::thread& thread : threads_)
      thread.join();
  }

  void await(std::uint64_t count) const {
    while (count_.load(std::memory_order_relaxed) < count)
      std::this_thread::yield();
  }

 private:
  void poll(std::size_t subscribers) {
    while (!done_.load(std::memory_order_relaxed)) {
      std::size_t found = 0;
      for (std::size_t i = 0; i < subscribers; ++i)
        found += bus_.drain(i);
      if (found != 0) count_.fetch_add(found, std::memory_order_relaxed);
    }
  }

  FanOut& bus_;
  std::atomic<bool> done_ = false;
  std::atomic<std::uint64_t> count_ = 0;
  std::vector<std::thread> threads_;
};

struct Sums {
  std::uint64_t publishes = 0;
  std::uint64_t sent = 0;
  std::uint64_t ns = 0;
  std::vector<double> bursts{};  // ns per publish of each.
};

void burst(FanOut& bus, const Payload& payload, Sums& sums) {
  const std::uint64_t begin = now_ns();
  for (std::size_t n = 0; n < kBurst; ++n)
    sums.sent += bus.publish(payload);
  const std::uint64_t took = now_ns() - begin;
  sums.ns += took;
  sums.publishes += kBurst;
  sums.bursts.push_back(static_cast<double>(took) / kBurst);
}

}  // namespace

Measures measure_publish(const BusContender& contender, std::string_view mode,
                         std::size_t subscribers, std::size_t milliseconds) {
  const std::unique_ptr<FanOut> bus = contender.make(subscribers);
  const Payload payload;
  Sums sums;
  std::uint64_t lost = 0;
  if (mode == "full") {
    for (std::size_t n = 0; n < 2 * kCapacity; ++n)
      bus->publish(payload);
  }
  {
    const Consumers consumers(*bus, mode, subscribers);
    const std::uint64_t end = now_ns() + milliseconds * 1'000'000;
    std::uint64_t warm = 3;
    while (now_ns() < end || sums.publishes == 0 || warm > 0) {
      burst(*bus, payload, sums);
      if (mode == "alone") {
        std::uint64_t drained = 0;
        for (std::size_t i = 0; i < subscribers; ++i)
          drained += bus->drain(i);
        if (drained != kBurst * subscribers) ++lost;
      } else if (mode != "full") {
        consumers.await(sums.sent);
      }
      if (warm > 0 && --warm == 0) {
        sums.ns = sums.publishes = 0;
        sums.bursts.clear();
      }
    }
  }
  Measures measures;
  const bool fits = mode == "full" ? sums.sent == 0 : sums.sent % subscribers == 0;
  measures.set("ns_per_publish",
               static_cast<double>(sums.ns) / static_cast<double>(sums.publishes));
  measures.set("p50_ns", percentile(sums.bursts, 0.5));
  measures.set("publishes", static_cast<double>(sums.publishes));
  measures.set("errors", static_cast<double>(lost + (fits ? 0 : 1)));
  return measures;
}

}  // namespace ordo::bench

// FanOut: what every contender of bench_bus does: one frame to many bounded queues.
//
//   std::unique_ptr<FanOut> bus = make_fan_out("ordo", 10);
//   std::size_t sent = bus->publish(payload);
//   std::size_t count = bus->drain(3);       // all that waits for subscriber 3, without waiting
//   while (bus->pop(3)) {}                   // one by one, waiting, until close()
//
// Threads: publish() has one caller; drain() and pop() one at a time per subscriber.
// Bounds:  kCapacity frames per subscriber; what does not fit is dropped.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ordo::bench {

inline constexpr std::size_t kCapacity = 128;  // A power of two, as rings like it.

struct Payload {
  std::array<std::uint64_t, 8> words{};
};

class FanOut {
 public:
  FanOut() = default;
  FanOut(const FanOut&) = delete;
  FanOut& operator=(const FanOut&) = delete;
  virtual ~FanOut() = default;

  // How many subscribers got it.
  virtual std::size_t publish(const Payload& payload) = 0;
  virtual std::size_t drain(std::size_t subscriber) = 0;
  // False when closed and empty.
  virtual bool pop(std::size_t subscriber) = 0;
  virtual void close() = 0;
};

struct BusContender {
  std::string_view name;
  std::string_view title;
  std::unique_ptr<FanOut> (*make)(std::size_t subscribers);  // nullptr: not of this program.
};

// ours.cc
std::unique_ptr<FanOut> make_ordo(std::size_t subscribers);        // Mixed priorities.
std::unique_ptr<FanOut> make_ordo_equal(std::size_t subscribers);  // All of one priority.

// rivals.cc
std::unique_ptr<FanOut> make_rings(std::size_t subscribers);  // A bare loop over rings.
std::unique_ptr<FanOut> make_locks(std::size_t subscribers);  // A mutex and a deque for each.

// signals.cc
std::unique_ptr<FanOut> make_signals(std::size_t subscribers);  // Boost.Signals2, slots push.

}  // namespace ordo::bench

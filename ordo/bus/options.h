// What users of the bus choose and what they are told: priorities, policies, options, accounts.
//
//   Bus<Frame> bus({.critical_timeout = std::chrono::milliseconds(2)});
//   auto pose = bus.subscribe("pose", Priority::best_effort, {.capacity = 8});
//
// Values that make no sense end in std::invalid_argument, which names the field.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "ordo/core/clock.h"

namespace ordo {

// Who loses first under overload: the greatest number.
enum class Priority : std::uint8_t { critical = 0, high = 1, normal = 2, best_effort = 3 };

// What happens to a frame when the subscriber's own queue is full.
enum class Overflow : std::uint8_t {
  drop_newest,  // It is dropped; for a critical subscriber publish() waits first.
  drop_oldest,  // The oldest frame of the queue makes room for it.
  latest,       // The same with a queue of one frame, whatever the capacity says.
  block,        // publish() waits for room, until its deadline if it has one.
};

// From the share of frames dropped within the health window.
enum class Health : std::uint8_t {
  unknown,    // No frames.
  healthy,    // Less than 50 % dropped.
  degraded,   // Less than 90 %.
  saturated,  // 90 % or more.
};

// Above which load the frames of a priority are shed. Critical ones never are.
struct Watermarks {
  double high = 0.90;
  double normal = 0.80;
  double best_effort = 0.70;
};

template <class Frame>
struct BusOptions {
  // Above zero and at most 1 each, and not lower for a higher priority.
  Watermarks watermarks{};
  // Once shed, a subscriber gets frames again when the load is this far below its watermark.
  double hysteresis = 0.10;
  // The longest time one publish() waits for all full critical queues together. Zero: not at all.
  std::chrono::nanoseconds critical_timeout = std::chrono::milliseconds(1);
  // How far back health() looks.
  std::chrono::nanoseconds health_window = std::chrono::seconds(10);
  // A budget for the bytes of all queued frames, a shared frame counted once. Zero: none.
  std::size_t bytes_max = 0;
  // How many bytes a frame has; required with bytes_max. May be called by several threads at once.
  std::function<std::size_t(const Frame&)> frame_bytes = nullptr;
  // A load from 0 to 1 that the user knows of, asked at every publish(), by its thread.
  std::function<double()> load = nullptr;
  // Where the time comes from; the system's clock unless set.
  Clock* clock = nullptr;
};

struct SubscribeOptions {
  // The most frames that wait for this subscriber. 1 to 1,048,576.
  std::size_t capacity = 64;
  Overflow overflow = Overflow::drop_newest;
};

// What one publish() did, at the moment it returned.
struct PublishResult {
  std::size_t sent = 0;     // Subscribers whose queue took the frame.
  std::size_t dropped = 0;  // Subscribers who did not get it.
  bool closed = false;      // The bus was closed: nobody got it, and nothing was counted.
};

struct SubscriberStats {
  Priority priority = Priority::normal;
  std::uint64_t sent = 0;              // Taken into its queue and not dropped from it again.
  std::uint64_t dropped = 0;           // Shed, dropped or pushed out by a newer frame.
  std::uint64_t critical_dropped = 0;  // The same as dropped, if it is critical; else zero.
  std::uint64_t received = 0;          // Popped: sent = received + queued.
  std::uint64_t queued = 0;
  Health health = Health::unknown;
};

// Those who have unsubscribed, all together.
struct DepartedStats {
  std::uint64_t subscribers = 0;
  std::uint64_t sent = 0;
  std::uint64_t dropped = 0;
  std::uint64_t critical_dropped = 0;
  std::uint64_t discarded = 0;  // Sent, and still queued when they left.
};

// Exact while nobody publishes; during a publish() its frame may be half counted. For subscribers
// that were there all the time: sent + dropped = published, each. The totals are those of the
// subscribers listed; what was counted for others is in `departed`.
struct BusStats {
  std::uint64_t published = 0;
  std::uint64_t sent = 0;
  std::uint64_t dropped = 0;
  std::uint64_t critical_dropped = 0;
  std::map<std::string, SubscriberStats> subscribers{};
  DepartedStats departed{};
};

}  // namespace ordo

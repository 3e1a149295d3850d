// Channel: a bounded queue between any number of threads, for items that are worth a lock.
//
//   Channel<Message> channel({.items_max = 1024, .bytes_max = 64 << 20});
//   channel.push(std::move(message), message_bytes);    // waits while full
//   std::vector<Message> batch;
//   while (channel.pop_some(batch, 256) > 0) handle(batch);   // waits while empty; 0 = the end
//   channel.close();
//
// Use a ring (mpsc_ring.h) where one thread consumes and a hundred nanoseconds matter.
//
// Threads: any, all calls. The lock is a leaf: no foreign code runs under it but the items' moves.
// Bounds:  items_max items and, if given, bytes_max bytes as stated by the pushers. An item larger
//          than bytes_max can never enter and is refused as too_large.
// Cost:    one lock per call, so per batch; no wake-up call unless somebody waits.
// Waiting pushers are served in no particular order; under a byte limit a small item may overtake
// a large one that does not fit yet.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "ordo/core/check.h"
#include "ordo/core/clock.h"

namespace ordo {

struct ChannelLimits {
  std::size_t items_max = 1024;  // At least 1.
  std::size_t bytes_max = 0;     // 0: bytes are not limited.
};

enum class ChannelPush : std::uint8_t {
  admitted,   // The item is in; it will come out.
  full,       // No room, now or until the deadline. The item stays with the caller, as below.
  closed,     // No item is taken in any more.
  too_large,  // More bytes than bytes_max.
};

template <class T>
class Channel {
 public:
  explicit Channel(ChannelLimits limits, Clock& clock = system_clock())
      : limits_(limits),
        clock_(clock) {
    ORDO_CHECK(limits.items_max > 0);
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Waits for room. The item is moved from only when `admitted`. Never returns `full`.
  ChannelPush push(T&& item, std::size_t bytes = 0) {
    return push_until(TimePoint::max(), std::move(item), bytes);
  }

  // Does not wait.
  ChannelPush try_push(T&& item, std::size_t bytes = 0) {
    std::unique_lock lock(mutex_);
    return admit(lock, std::move(item), bytes);
  }

  // Waits for room until `deadline` of the channel's clock.
  ChannelPush push_until(TimePoint deadline, T&& item, std::size_t bytes = 0) {
    std::unique_lock lock(mutex_);
    bool late = false;
    while (true) {
      // NOLINTNEXTLINE(bugprone-use-after-move): what is not admitted is not taken.
      const ChannelPush answer = admit(lock, std::move(item), bytes);
      if (answer != ChannelPush::full || late) return answer;
      ++pushers_waiting_;
      late = clock_.wait_until(lock, not_full_, deadline);
      --pushers_waiting_;
    }
  }

  // The oldest item; waits for one. Nothing means closed and drained.
  std::optional<T> pop() { return pop_until(TimePoint::max()); }

  // The oldest item, or nothing when there is none now.
  std::optional<T> try_pop() {
    std::unique_lock lock(mutex_);
    return take_one(lock);
  }

  // As pop(), until `deadline` of the channel's clock. Nothing: none came, or the end (ended()).
  std::optional<T> pop_until(TimePoint deadline) {
    std::unique_lock lock(mutex_);
    wait_for_items(lock, deadline);
    return take_one(lock);
  }

  // Appends up to `max` of the oldest items to `out`; waits for the first. Returns how many;
  // 0 means closed and drained.
  // REQUIRES: max > 0.
  std::size_t pop_some(std::vector<T>& out, std::size_t max) {
    return pop_some_until(TimePoint::max(), out, max);
  }

  // As pop_some(), until `deadline` of the channel's clock; 0 also when no item came until then.
  std::size_t pop_some_until(TimePoint deadline, std::vector<T>& out, std::size_t max) {
    ORDO_CHECK(max > 0);
    std::unique_lock lock(mutex_);
    wait_for_items(lock, deadline);
    return take_some(lock, out, max);
  }

  // Appends all items there are now to `out`, without waiting. Returns how many.
  std::size_t try_pop_all(std::vector<T>& out) {
    std::unique_lock lock(mutex_);
    return take_some(lock, out, items_.size());
  }

  // No more items are taken in; every waiting call returns; what is in can still be popped.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    not_empty_.notify_all();
    not_full_.notify_all();
  }

  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  // Closed and drained: nothing will ever come out any more.
  bool ended() const {
    const std::lock_guard lock(mutex_);
    return closed_ && items_.empty();
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }
  std::size_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct Entry {
    T item;
    std::size_t bytes;
  };
  using Lock = std::unique_lock<std::mutex>;

  ChannelPush admit(Lock& lock, T&& item, std::size_t bytes) {
    if (closed_) return ChannelPush::closed;
    if (limits_.bytes_max > 0 && bytes > limits_.bytes_max) return ChannelPush::too_large;
    if (items_.size() >= limits_.items_max) return ChannelPush::full;
    if (limits_.bytes_max > 0 && bytes > limits_.bytes_max - bytes_) return ChannelPush::full;
    items_.push_back(Entry{std::move(item), bytes});
    bytes_ += bytes;
    const bool wake = poppers_waiting_ > 0;
    lock.unlock();
    if (wake) not_empty_.notify_one();
    return ChannelPush::admitted;
  }

  void wait_for_items(Lock& lock, TimePoint deadline) {
    ++poppers_waiting_;
    while (items_.empty() && !closed_) {
      if (clock_.wait_until(lock, not_empty_, deadline)) break;
    }
    --poppers_waiting_;
  }

  std::optional<T> take_one(Lock& lock) {
    if (items_.empty()) return std::nullopt;
    std::optional<T> out(std::move(items_.front().item));
    bytes_ -= items_.front().bytes;
    items_.pop_front();
    announce_room(lock, 1);
    return out;
  }

  std::size_t take_some(Lock& lock, std::vector<T>& out, std::size_t max) {
    const std::size_t count = std::min(max, items_.size());
    if (count == 0) return 0;
    out.reserve(out.size() + count);
    for (std::size_t i = 0; i < count; ++i) {
      out.push_back(std::move(items_.front().item));
      bytes_ -= items_.front().bytes;
      items_.pop_front();
    }
    announce_room(lock, count);
    return count;
  }

  // One pusher for each freed place. Under a byte limit the pusher that happens to be woken may
  // not fit while another would, so all of them look again.
  void announce_room(Lock& lock, std::size_t count) {
    const std::size_t pushers = std::min(count, pushers_waiting_);
    lock.unlock();
    if (pushers == 0) return;
    if (limits_.bytes_max > 0 || pushers > 1) {
      not_full_.notify_all();
    } else {
      not_full_.notify_one();
    }
  }

  const ChannelLimits limits_;
  Clock& clock_;

  mutable std::mutex mutex_;  // Guards all below.
  std::condition_variable not_empty_;
  std::condition_variable not_full_;
  std::deque<Entry> items_;
  std::size_t bytes_ = 0;
  std::size_t pushers_waiting_ = 0;
  std::size_t poppers_waiting_ = 0;
  bool closed_ = false;
};

}  // namespace ordo

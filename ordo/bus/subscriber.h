// Subscriber: one subscriber's place in the log, its counters, and where it sleeps.
//
// Its queue is what is marked for its seat in the log from `cursor` on. When the log is about to
// come round to its cursor, a publisher moves what is left into the backlog, a ring of its own with
// `capacity` places: a slow subscriber holds up nobody and keeps no more than its capacity.
//
// Counting without writing. Claiming a position of the log reserves a place in every queue at once;
// a subscriber that does not get the frame has the place given back by `skipped`. So
//   fill     = tail - skipped - popped                  (skipped starts at the tail it joined at)
//   sent     = tail - skipped - evicted
//   dropped  = skipped - passed + evicted + what was dropped for all at once (Roster)
// and sending to a subscriber writes nothing of its own. `passed` are positions that were no frame
// offered to it: what another publisher, having waited, sent to others only.
//
// Threads: publishers write the counters of their half, whoever pops those of the other, under the
//          short lock; take(), spill(), evict() and leave() by any thread.
// Bounds:  capacity frames.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "ordo/bus/frame.h"
#include "ordo/bus/frame_log.h"
#include "ordo/bus/health_window.h"
#include "ordo/bus/options.h"
#include "ordo/runtime/atomics.h"
#include "ordo/runtime/short_lock.h"

namespace ordo::bus {

class Subscriber {
 public:
  Subscriber(std::string id, Priority priority, const SubscribeOptions& options, std::size_t seat,
             const FrameLog& log);
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  const std::string& id() const { return id_; }
  Priority priority() const { return priority_; }
  Overflow overflow() const { return overflow_; }
  std::size_t capacity() const { return capacity_; }
  std::size_t seat() const { return seat_; }

  // Its queue begins at `tail`. Called until the tail it joins at is certain.
  void begin_at(std::uint64_t tail);
  std::uint64_t begin() const { return begin_.load(std::memory_order_relaxed); }

  // Frames in its queue, and places given away for it, if `tail` is the next position.
  std::uint64_t fill(std::uint64_t tail) const {
    const std::uint64_t gone = counted();
    return tail > gone ? tail - gone : 0;
  }
  // Changes whenever fill() of the same tail does.
  std::uint64_t counted() const {
    return skipped.load(std::memory_order_relaxed) + popped.load(std::memory_order_acquire);
  }

  struct Taken {
    FrameNode* frame = nullptr;  // Its ownership goes to the caller.
    bool blocked = false;        // Nothing, since a frame that was claimed is not yet written.
  };
  // The oldest frame of its queue below `limit`; nothing after leave(). Without a limit `blocked`
  // says nothing: whether more was claimed than written is known by those who know the tail.
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
  Taken take(std::uint64_t limit);
  // Whether it is too early to sleep: there is a frame, or one of the positions below `tail`, which
  // is the end of the log, is not yet written. What lies behind that may be a frame, and was
  // announced to those who slept then.
  bool may_have_frame(std::uint64_t tail);

  // How many have to be popped or evicted in all before the frame of `tail`, the next position, has
  // a place. Asked before the position is claimed: later `skipped` may count positions behind it.
  std::uint64_t pops_needed(std::uint64_t tail) const {
    const std::uint64_t gone = skipped.load(std::memory_order_relaxed) + capacity_;
    return tail + 1 > gone ? tail + 1 - gone : 0;
  }
  // Makes room for `position`, which the caller has claimed and not yet written: hands its oldest
  // frames to drop(FrameNode*) until `needed` are gone. False when it has to be called again, since
  // one that was claimed earlier is not yet written. Also after leave(): who claimed a place for it
  // before that must not let it grow.
  template <class Drop>
  bool evict(std::uint64_t position, std::uint64_t needed, Drop&& drop) {
    std::lock_guard lock(lock_);
    while (popped.load(std::memory_order_relaxed) < needed) {
      bool blocked = false;
      FrameNode* frame = take_oldest(position, &blocked);
      if (frame == nullptr) return !blocked;
      evicted.store(evicted.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      drop(frame);
    }
    return true;
  }

  // Moves what is left below `target` from the log to the backlog.
  // REQUIRES: all positions below target are published.
  void spill(std::uint64_t target);

  // From now on take() gives nothing.
  void leave();
  bool has_left() const { return left_.load(std::memory_order_acquire); }
  // Hands every frame still queued to drop(FrameNode*), and lets the log come round for ever.
  // REQUIRES: leave() was called, and all positions below `end` are published.
  template <class Drop>
  void discard(std::uint64_t end, Drop&& drop) {
    std::lock_guard lock(lock_);
    while (FrameNode* frame = take_oldest(end, nullptr))
      drop(frame);
    cursor_.store(kNoLimit, std::memory_order_release);
  }

  // Publishers' half.
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> skipped{0};
  std::atomic<std::uint64_t> passed{0};
  std::atomic<std::uint64_t> pending{0};  // Frames a publisher waits with for room here.
  std::atomic<std::uint64_t> dropped_for_all{0};
  std::atomic<bool> shedding{false};

  // The half of whoever pops; written under the lock.
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> popped{0};  // Evicted ones included.
  std::atomic<std::uint64_t> evicted{0};

  // Where its callers sleep: guarded by `mutex`.
  std::mutex mutex;
  std::condition_variable woken;
  std::size_t sleeper_count = 0;
  std::uint64_t wake_count = 0;

  HealthWindow health_window;  // Guarded by the bus's lock of the health windows.

 private:
  FrameNode* take_oldest(std::uint64_t limit, bool* blocked);
  // Moves the cursor to the next frame for this seat. False when there is none below `limit`.
  bool seek(std::uint64_t limit, bool* blocked);

  const std::string id_;
  const Priority priority_;
  const Overflow overflow_;
  const std::size_t capacity_;
  const std::size_t seat_;
  const FrameLog& log_;
  std::atomic<std::uint64_t> begin_{0};
  std::atomic<bool> left_{false};

  ShortLock lock_;
  std::atomic<std::uint64_t> cursor_{0};  // Written under the lock.
  std::unique_ptr<FrameNode*[]> backlog_;
  std::size_t backlog_first_ = 0;
  std::size_t backlog_count_ = 0;
};

}  // namespace ordo::bus

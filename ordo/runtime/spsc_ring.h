// SpscRing: a bounded queue from one thread to one other, without locks.
//
//   SpscRing<Task> ring(1024);
//   ring.push(task);                                     // producer; false once closed
//   ring.consume(64, [](Task& task) { run(task); });     // consumer; 0 once closed and drained
//   ring.close();                                        // anybody
//
// Invariants.
//   1. head counts the items published, tail the items released; tail <= head <= tail + capacity.
//   2. Position p lives in slot p mod capacity. Slots of [tail, head) hold an item and belong to
//      the consumer; the others are raw memory and belong to the producer.
//   3. Only the producer writes head, after the item (release); only the consumer writes tail,
//      after it destroyed the item (release). Each reads the other's counter with acquire.
//   4. Closing is exact: a push that returned true is consumed, one that returned false is not.
//      The producer marks `pushing` before it looks at `closed` (light_fence); close() sets
//      `closed`, then (heavy_fence) waits until no push is under way, and only then `sealed`.
//      Once sealed, head does not move any more, so sealed and tail == head means the end.
//
// Threads: one producer (the push functions), one consumer (the consume and pop functions); close()
//          and the questions: any thread, except from inside an item's constructor.
// Bounds:  `capacity` items, exactly; a power of two.
// Cost:    no read-modify-write and no fence for a push or a batch; between two cores, the cache
//          line that travels (runtime_bench.cc). No allocation after construction.
// Errors:  items move without throwing (checked when compiled). If the consumer's function
//          throws, the item it was given and those before it are consumed, the rest stay, and
//          the exception goes to the caller.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "ordo/core/check.h"
#include "ordo/runtime/atomics.h"
#include "ordo/runtime/ring_calls.h"
#include "ordo/runtime/wait_strategy.h"

namespace ordo {

template <class T, template <class> class Wait = BlockWait, class Atomics = StdAtomics>
class SpscRing : public RingCalls<SpscRing<T, Wait, Atomics>, T> {
  friend class RingCalls<SpscRing, T>;
  static_assert(std::is_nothrow_move_constructible_v<T>);
  static_assert(std::is_nothrow_destructible_v<T>);

 public:
  // REQUIRES: capacity is a power of two.
  explicit SpscRing(std::size_t capacity)
      : mask_(capacity - 1),
        slots_(std::make_unique<Slot[]>(capacity)) {
    ORDO_CHECK(capacity > 0 && (capacity & mask_) == 0);
  }
  SpscRing(const SpscRing&) = delete;
  SpscRing& operator=(const SpscRing&) = delete;
  ~SpscRing() {
    const std::uint64_t head = head_.load(std::memory_order_acquire);
    for (std::uint64_t p = tail_.load(std::memory_order_acquire); p != head; ++p)
      std::destroy_at(item(p));
  }

  // push(), push_n(), try_pop() and pop() are those of RingCalls.

  // Adds an item behind the others. Returns false, and takes nothing, when full or closed.
  template <class U>
  [[nodiscard]] bool try_push(U&& value) {
    static_assert(std::is_nothrow_constructible_v<T, U&&>, "move it in, or copy it first");
    if (!enter()) return false;
    const std::size_t room = free_slots(1);
    if (room > 0) {
      std::construct_at(item(next_push_), std::forward<U>(value));
      publish(1);
    }
    leave();
    if (room > 0) not_empty_.wake_one();
    return room > 0;
  }

  // Adds as many of the `count` items from `first` on as there is room for now; returns how many.
  // The consumer sees them at once. Use std::make_move_iterator to move them.
  template <std::input_iterator Iterator>
  [[nodiscard]] std::size_t try_push_n(Iterator first, std::size_t count) {
    return push_some(first, count);
  }

  // Calls function(T&) on up to `max` items in place, oldest first, and removes them. Returns how
  // many; 0 when the ring is empty.
  template <class Function>
  std::size_t try_consume(std::size_t max, Function&& function) {
    if (next_pop_ == head_seen_) {
      head_seen_ = head_.load(std::memory_order_acquire);
      if (next_pop_ == head_seen_) return 0;
    }
    const std::size_t count = std::min<std::size_t>(max, head_seen_ - next_pop_);
    const std::size_t chunk = release_chunk();
    for (std::size_t done = 0; done < count;) {
      Release release{*this};  // Also when function throws.
      for (const std::size_t end = std::min(count, done + chunk); done < end; ++done) {
        Remove remove{*this};
        function(*item(next_pop_));
      }
    }
    return count;
  }

  // As try_consume(), but waits for the first item. 0 means closed and drained.
  // REQUIRES: max > 0.
  template <class Function>
  std::size_t consume(std::size_t max, Function&& function) {
    ORDO_CHECK(max > 0);
    if (const std::size_t count = try_consume(max, function)) return count;
    while (!drained()) {
      not_empty_.wait([this] { return has_items() || drained(); }, pace_.pauses());
      if (const std::size_t count = try_consume(max, function)) {
        pace_.got(count);
        return count;
      }
    }
    return 0;
  }

  // Whether no item waits. For the consumer.
  bool empty() const { return !has_items(); }

  // Closed, and nothing will ever come out any more. For the consumer.
  bool drained() const { return sealed_.load(std::memory_order_acquire) && !has_items(); }

  // No more items are taken in; waiting calls return; what was taken in can still be consumed.
  // When it returns, no push will succeed any more. May be called again.
  void close() {
    closed_.store(true, std::memory_order_seq_cst);
    Atomics::heavy_fence();
    while (pushing_.load(std::memory_order_acquire))
      Atomics::yield();
    sealed_.store(true, std::memory_order_release);
    not_empty_.wake_all();
    not_full_.wake_all();
  }

  bool closed() const { return closed_.load(std::memory_order_acquire); }
  std::size_t capacity() const { return mask_ + 1; }

  // How many items wait; exact for the two threads that use the ring, a hint for others.
  std::size_t size() const {
    const std::uint64_t tail = tail_.load(std::memory_order_acquire);
    return static_cast<std::size_t>(head_.load(std::memory_order_acquire) - tail);
  }

 private:
  template <class Word>
  using Atomic = typename Atomics::template Atomic<Word>;

  struct Slot {
    alignas(T) std::byte bytes[sizeof(T)];
  };

  // Destroys the item at the consumer's position and moves on, however its scope is left.
  struct Remove {
    SpscRing& ring;
    ~Remove() {
      std::destroy_at(ring.item(ring.next_pop_));
      ++ring.next_pop_;
    }
  };

  // Gives the slots consumed so far back to the producer, however its scope is left.
  struct Release {
    SpscRing& ring;
    ~Release() {
      ring.tail_.store(ring.next_pop_, std::memory_order_release);
      ring.not_full_.wake_one();
    }
  };

  T* item(std::uint64_t position) {
    return std::launder(reinterpret_cast<T*>(slots_[position & mask_].bytes));
  }

  // Slots go back in parts, so that a full ring does not make the two sides take turns.
  std::size_t release_chunk() const { return std::max<std::size_t>(1, capacity() / 4); }

  bool enter() {
    pushing_.store(true, std::memory_order_relaxed);
    Atomics::light_fence();
    if (!closed_.load(std::memory_order_acquire)) [[likely]]
      return true;
    leave();
    return false;
  }
  void leave() { pushing_.store(false, std::memory_order_release); }

  // Room for new items. Reads the consumer's counter only when the last reading is not enough.
  std::size_t free_slots(std::size_t wanted) {
    std::size_t room = capacity() - static_cast<std::size_t>(next_push_ - tail_seen_);
    if (room < wanted) {
      tail_seen_ = tail_.load(std::memory_order_acquire);
      room = capacity() - static_cast<std::size_t>(next_push_ - tail_seen_);
    }
    return room;
  }

  void publish(std::size_t count) {
    next_push_ += count;
    head_.store(next_push_, std::memory_order_release);
  }

  template <class Iterator>
  std::size_t push_some(Iterator& first, std::size_t count) {
    static_assert(std::is_nothrow_constructible_v<T, std::iter_reference_t<Iterator>>,
                  "move the items in (std::make_move_iterator), or copy them first");
    if (!enter()) return 0;
    const std::size_t fitting = std::min(count, free_slots(count));
    for (std::size_t i = 0; i < fitting; ++i, ++first)
      std::construct_at(item(next_push_ + i), *first);
    if (fitting > 0) publish(fitting);
    leave();
    if (fitting > 0) not_empty_.wake_one();
    return fitting;
  }

  void wait_for_room() {
    not_full_.wait([this] { return free_slots(1) > 0 || closed(); });
  }
  bool has_items() const { return head_.load(std::memory_order_acquire) != next_pop_; }

  // Written rarely, read by both.
  const std::size_t mask_;
  const std::unique_ptr<Slot[]> slots_;
  Atomic<bool> closed_{false};
  Atomic<bool> sealed_{false};

  // The producer's own.
  alignas(kCacheLineBytes) Atomic<bool> pushing_{false};
  std::uint64_t next_push_ = 0;  // head, as the producer knows it.
  std::uint64_t tail_seen_ = 0;  // tail, as the producer last read it.

  // The consumer's own.
  alignas(kCacheLineBytes) std::uint64_t next_pop_ = 0;  // tail, as the consumer knows it.
  std::uint64_t head_seen_ = 0;                          // head, as the consumer last read it.
  LookPace pace_{};

  alignas(kCacheLineBytes) Atomic<std::uint64_t> head_{0};
  alignas(kCacheLineBytes) Atomic<std::uint64_t> tail_{0};
  Wait<Atomics> not_empty_;
  Wait<Atomics> not_full_;
};

}  // namespace ordo

// MpscRing: a bounded queue from many threads to one, without locks.
//
//   MpscRing<Task> ring(1024);
//   if (!ring.try_push(std::move(task))) reject_busy();  // any thread
//   ring.consume(64, [](Task& task) { run(task); });     // the one consumer
//   ring.close();                                        // anybody
//
// Invariants.
//   1. head counts the positions claimed, tail the items released; tail <= head <= tail + capacity.
//      A producer claims [h, h + n) by moving head from h to h + n (compare-and-swap), and only
//      with h + n <= tail + capacity, so a slot it gets is raw memory and its alone.
//   2. Position p lives in slot p mod capacity. Its item is published by storing p + 1 into the
//      slot's sequence (release) after the item was written. The consumer takes position p only
//      when it reads p + 1 there (acquire): a claimed, unwritten slot is never seen.
//   3. Only the consumer writes tail, after it destroyed the items (release). tail_hint is an
//      older tail, shared by the producers on the line they already own; being older it only
//      makes them think the ring is fuller, and then they read tail itself.
//   4. Order is the order of claims: each producer's items stay in its order.
//   5. `closed` is a bit of head, so a claim either precedes the closing, and is consumed, or
//      fails. closed and tail == head means the end; a claim not yet published delays it.
//
// Threads: any number of producers (the push functions), one consumer (the consume and pop
//          functions); close() and the questions: any thread.
// Bounds:  `capacity` items, exactly, those being written included; a power of two. 2^63 items.
// Cost:    one compare-and-swap for a push or a batch; between cores, the cache lines that
//          travel (runtime_bench.cc). No allocation after construction.
// Errors:  as SpscRing. A producer that is stopped for good between claim and publication (killed
//          thread) stops the ring; that is why items must move in without throwing.
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
class MpscRing : public RingCalls<MpscRing<T, Wait, Atomics>, T> {
  friend class RingCalls<MpscRing, T>;
  static_assert(std::is_nothrow_move_constructible_v<T>);
  static_assert(std::is_nothrow_destructible_v<T>);

 public:
  // REQUIRES: capacity is a power of two.
  explicit MpscRing(std::size_t capacity)
      : mask_(capacity - 1),
        slots_(std::make_unique<Slot[]>(capacity)) {
    ORDO_CHECK(capacity > 0 && (capacity & mask_) == 0);
  }
  MpscRing(const MpscRing&) = delete;
  MpscRing& operator=(const MpscRing&) = delete;
  // REQUIRES: nobody uses the ring any more.
  ~MpscRing() {
    while (is_published(next_pop_)) {
      std::destroy_at(slot(next_pop_).item());
      ++next_pop_;
    }
  }

  // push(), push_n(), try_pop() and pop() are those of RingCalls.

  // Adds an item behind the others. Returns false, and takes nothing, when full or closed.
  template <class U>
  [[nodiscard]] bool try_push(U&& value) {
    static_assert(std::is_nothrow_constructible_v<T, U&&>, "move it in, or copy it first");
    const Claim claim = try_claim(1);
    if (claim.count == 0) return false;
    std::construct_at(slot(claim.first).item(), std::forward<U>(value));
    publish(claim.first);
    not_empty_.wake_one();
    return true;
  }

  // Adds as many of the `count` items from `first` on as there is room for now, side by side;
  // returns how many. Use std::make_move_iterator to move them.
  template <std::input_iterator Iterator>
  [[nodiscard]] std::size_t try_push_n(Iterator first, std::size_t count) {
    return push_some(first, count);
  }

  // Calls function(T&) on up to `max` items in place, oldest first, and removes them. Returns how
  // many; 0 when no item is published at the front.
  template <class Function>
  std::size_t try_consume(std::size_t max, Function&& function) {
    std::size_t done = 0;
    const std::size_t chunk = release_chunk();
    while (done < max && is_published(next_pop_)) {
      Release release{*this};  // Also when function throws.
      const std::size_t end = done + std::min(max - done, chunk);
      do {
        Remove remove{*this};
        function(*slot(next_pop_).item());
        ++done;
      } while (done < end && is_published(next_pop_));
    }
    return done;
  }

  // As try_consume(), but waits for the first item. 0 means closed and drained.
  // REQUIRES: max > 0.
  template <class Function>
  std::size_t consume(std::size_t max, Function&& function) {
    ORDO_CHECK(max > 0);
    if (const std::size_t count = try_consume(max, function)) return count;
    while (!drained()) {
      not_empty_.wait([this] { return is_published(next_pop_) || drained(); }, pace_.pauses());
      if (const std::size_t count = try_consume(max, function)) {
        pace_.got(count);
        return count;
      }
    }
    return 0;
  }

  // Whether no item is published at the front. For the consumer.
  bool empty() const { return !is_published(next_pop_); }

  // Closed, and nothing will ever come out any more. For the consumer.
  bool drained() const { return head_.load(std::memory_order_acquire) == (next_pop_ | kClosed); }

  // No more items are taken in; waiting calls return; what was taken in can still be consumed.
  // When it returns, no push will succeed any more. May be called again.
  void close() {
    head_.fetch_or(kClosed, std::memory_order_seq_cst);
    not_empty_.wake_all();
    not_full_.wake_all();
  }

  bool closed() const { return (head_.load(std::memory_order_acquire) & kClosed) != 0; }
  std::size_t capacity() const { return mask_ + 1; }

  // How many positions are taken, those being written included. A hint.
  std::size_t size() const {
    const Position tail = tail_.load(std::memory_order_acquire);
    return static_cast<std::size_t>((head_.load(std::memory_order_acquire) & ~kClosed) - tail);
  }

 private:
  template <class Word>
  using Atomic = typename Atomics::template Atomic<Word>;
  using Position = std::uint64_t;
  static constexpr Position kClosed = Position{1} << 63;

  struct Slot {
    Atomic<Position> sequence{0};  // Of the item published here last, plus one.
    alignas(T) std::byte bytes[sizeof(T)];

    T* item() { return std::launder(reinterpret_cast<T*>(bytes)); }
  };

  struct Claim {
    Position first;
    std::size_t count;
  };

  // Destroys the item at the consumer's position and moves on, however its scope is left.
  struct Remove {
    MpscRing& ring;
    ~Remove() {
      std::destroy_at(ring.slot(ring.next_pop_).item());
      ++ring.next_pop_;
    }
  };

  // Gives the slots consumed so far back to the producers, however its scope is left.
  struct Release {
    MpscRing& ring;
    ~Release() {
      ring.tail_.store(ring.next_pop_, std::memory_order_release);
      ring.not_full_.wake_all();
    }
  };

  Slot& slot(Position position) { return slots_[position & mask_]; }

  // Slots go back in parts, so that a full ring does not make the two sides take turns.
  std::size_t release_chunk() const { return std::max<std::size_t>(1, capacity() / 4); }

  // Claims up to `wanted` positions. A count of 0 means: at one moment of this call the ring was
  // full, or closed.
  Claim try_claim(std::size_t wanted) {
    wanted = std::min(wanted, capacity());
    Position head = head_.load(std::memory_order_relaxed);
    while (true) {
      if ((head & kClosed) != 0) return {head, 0};
      Position tail = tail_hint_.load(std::memory_order_acquire);
      if (head - tail + wanted > capacity()) {  // Also when `head` is older than the hint.
        tail = tail_.load(std::memory_order_acquire);
        const Position head_now = head_.load(std::memory_order_relaxed);
        if (head_now != head) {
          head = head_now;
          continue;
        }
        // head did not move around the reading of tail: the two belong together.
        tail_hint_.store(tail, std::memory_order_release);
      }
      const std::size_t room = capacity() - static_cast<std::size_t>(head - tail);
      const std::size_t count = std::min(wanted, room);
      if (count == 0) return {head, 0};
      if (head_.compare_exchange_weak(head, head + count, std::memory_order_relaxed,
                                      std::memory_order_relaxed)) {
        return {head, count};
      }
    }
  }

  void publish(Position position) {
    slot(position).sequence.store(position + 1, std::memory_order_release);
  }

  template <class Iterator>
  std::size_t push_some(Iterator& first, std::size_t count) {
    static_assert(std::is_nothrow_constructible_v<T, std::iter_reference_t<Iterator>>,
                  "move the items in (std::make_move_iterator), or copy them first");
    const Claim claim = try_claim(count);
    for (std::size_t i = 0; i < claim.count; ++i, ++first)
      std::construct_at(slot(claim.first + i).item(), *first);
    // The first one last: the consumer meets a whole batch, and no line that is being written to.
    for (std::size_t i = claim.count; i > 0; --i)
      publish(claim.first + i - 1);
    if (claim.count > 0) not_empty_.wake_one();
    return claim.count;
  }

  bool has_room() const {
    const Position tail = tail_.load(std::memory_order_acquire);
    const Position head = head_.load(std::memory_order_acquire) & ~kClosed;
    return head - tail < capacity();
  }
  void wait_for_room() {
    not_full_.wait([this] { return has_room() || closed(); });
  }
  bool is_published(Position position) const {
    return slots_[position & mask_].sequence.load(std::memory_order_acquire) == position + 1;
  }

  const std::size_t mask_;
  const std::unique_ptr<Slot[]> slots_;

  // The producers'.
  alignas(kCacheLineBytes) Atomic<Position> head_{0};
  Atomic<Position> tail_hint_{0};

  // The consumer's own.
  alignas(kCacheLineBytes) Position next_pop_ = 0;  // tail, as the consumer knows it.
  LookPace pace_{};

  alignas(kCacheLineBytes) Atomic<Position> tail_{0};
  Wait<Atomics> not_empty_;
  Wait<Atomics> not_full_;
};

}  // namespace ordo

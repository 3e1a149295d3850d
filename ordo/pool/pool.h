// Pool: inputs in, outputs out in the same order, the work in parallel.
//
//   ordo::Pool<int, std::string> pool(
//       [](int n) { return std::to_string(n); }, {.workers = 8, .preserve_order = true});
//   std::jthread feeder([&] {
//     for (int n = 0; n < 1000; ++n) pool.push(n);
//     pool.close();
//   });
//   while (auto out = pool.pop()) std::cout << *out << '\n';   // "0", "1", "2", ...
//
// The process function takes an input, and a std::stop_token if it likes, and returns an Out, an
// optional, a vector of them (they stay together) or nothing. It fails by throwing anything; the
// line goes on without it. See options.h for order, windows, timeouts, scaling and callbacks.
//
// Every admitted input ends in exactly one way: delivered (all its outputs were taken), failed (and
// told to on_error), late (skipped by order_timeout), or undone (listed by stop()).
//
// Threads: any thread may call anything while the pool exists; nobody may be inside a call when it
//          is destroyed (stop() it and let them return). The function runs on the pool's workers,
//          several at once, and, once items have been measured to be short (microseconds), on a
//          thread that waits for its output in pop(): never more at once than `workers`. on_error,
//          on_late and emit run one at a time.
// Bounds:  window + buffer_size items in all (order_buffer_size, buffer_size); workers_max threads.
// Cost:    plain total order: some 50 ns per item from push to pop and from push to emit, on two
//          cores. Unordered, per key, with timeouts or buffer_size: a lock per step on top. No
//          allocation per item (a stop state per item where a timeout is set).
#pragma once

#include <chrono>
#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "ordo/pool/engine.h"
#include "ordo/pool/input.h"
#include "ordo/pool/ledger_engine.h"
#include "ordo/pool/map_over.h"
#include "ordo/pool/options.h"
#include "ordo/pool/process.h"
#include "ordo/pool/slot_ring.h"

namespace ordo {

template <class In, class Out>
class Pool {
 public:
  using Options = PoolOptions<In>;

  // Outputs are taken with pop(). Throws std::invalid_argument, naming the option, for bad options.
  template <pool::ProcessFunction<In> Fn>
  explicit Pool(Fn fn, Options options = {})
      : engine_(make_engine(std::move(fn), nullptr, std::move(options))) {}

  // Outputs are handed to `emit(Out)` on a worker's thread: in order, never two at once.
  template <pool::ProcessFunction<In> Fn, std::invocable<Out> Emit>
  Pool(Fn fn, Emit emit, Options options = {})
      : engine_(make_engine(std::move(fn), make_emit(std::move(emit)), std::move(options))) {}

  // Stops at once, then waits for handlers that still run: they may use what the caller owns.
  ~Pool() = default;

  Pool(Pool&&) noexcept = default;
  Pool& operator=(Pool&&) noexcept = default;

  // Blocks while the window is full. False, and nothing is taken, once closed or stopped.
  bool push(In&& input) { return engine_->push(pool::Input<In>::moved(input), true); }
  bool push(const In& input) requires std::copy_constructible<In> {
    return engine_->push(pool::Input<In>::copied(input), true);
  }

  // The same, but false, with nothing taken, also when it would block.
  bool try_push(In&& input) { return engine_->push(pool::Input<In>::moved(input), false); }
  bool try_push(const In& input) requires std::copy_constructible<In> {
    return engine_->push(pool::Input<In>::copied(input), false);
  }

  // No more input; outputs still drain.
  void close() { engine_->close(); }

  // The next output; nothing at the end. Blocks until one of the two is there.
  std::optional<Out> pop() { return engine_->pop(Engine::kForever); }
  // The next output if there is one now, or within `span`.
  std::optional<Out> try_pop() { return engine_->pop(Engine::kNever); }
  std::optional<Out> pop_for(std::chrono::nanoseconds span) {
    return engine_->pop(engine_->deadline_in(span));
  }

  // Blocks until the end: everything delivered after close(), or stopped.
  void wait() { engine_->wait(); }

  // Cancels: starts nothing more, asks running handlers to end and gives them `grace`. Returns the
  // inputs admitted and not delivered, in order of admission; a handler that does not end in time
  // keeps its thread until it does, and its input is among them (if inputs can be copied and the
  // function takes them by const reference; it is counted in any case). Called again: nothing.
  std::vector<In> stop(std::chrono::nanoseconds grace = std::chrono::nanoseconds(0)) {
    return engine_->stop(grace);
  }

  PoolStats stats() const { return engine_->stats(); }

 private:
  using Engine = pool::Engine<In, Out>;

  template <class Emit>
  static std::function<void(Out&&)> make_emit(Emit emit) {
    // std::function copies; what emit captured may not be copyable.
    return [shared = std::make_shared<Emit>(std::move(emit))](Out&& output) {
      std::invoke(*shared, std::move(output));
    };
  }

  template <class Fn>
  static std::unique_ptr<Engine> make_engine(Fn fn, std::function<void(Out&&)> emit,
                                             Options options) {
    pool::Parts<In, Out> parts{std::make_unique<pool::ProcessOf<In, Out, Fn>>(std::move(fn)),
                               std::move(emit), std::move(options)};
    const bool plain = parts.options.preserve_order && !parts.options.partition_key &&
                       parts.options.buffer_size == 0 && !parts.options.order_timeout &&
                       !parts.options.process_timeout;
    std::unique_ptr<Engine> engine;
    if (plain) {
      engine = std::make_unique<pool::SlotRing<In, Out>>(std::move(parts));
    } else {
      engine = std::make_unique<pool::LedgerEngine<In, Out>>(std::move(parts));
    }
    engine->start();
    return engine;
  }

  std::unique_ptr<Engine> engine_;
};

// The one-liner over a range: fn of every element, in the order of the range.
//
//   std::vector<Thumbnail> thumbnails = ordo::map_ordered(photos, shrink, {.workers = 8});
//
// Without on_error, what fn throws first (in the order of the range) is thrown again here, once the
// pool has ended; with it, failed elements are reported there and left out here.
// Throws std::invalid_argument for bad options; partition_key is one, as the order is total here.
template <std::ranges::input_range Range, class Fn, class In = std::ranges::range_value_t<Range>,
          class Out = pool::OutputOf<Fn, In>>
std::vector<Out> map_ordered(Range&& range, Fn fn,
                             PoolOptions<std::ranges::range_value_t<Range>> options = {}) {
  return pool::map_over<In, Out>(std::forward<Range>(range), std::move(fn), std::move(options));
}

}  // namespace ordo

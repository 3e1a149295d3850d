// Dispatcher: the events of one entity one after the other, those of different entities in
// parallel, on a few shared threads.
//
//   ordo::Dispatcher<std::string, Event> d(
//       [](const std::string& entity, Event& event) { apply(entity, event); },  // throws to fail
//       {.threads = 8, .on_failure = ordo::retry(3, 500ms).then_park()});
//   d.dispatch("cart-17", event);
//   ...
//   auto undone = d.shutdown(5s);   // what was not processed, by entity
//
// The handler may take a Completion and say later that it is done, a State& that belongs to the
// entity, or be made of several steps (handler.h); options.h says what can be chosen, docs/
// dispatcher.md when to choose what.
//
// Every admitted event ends in exactly one way: processed, failed (given up by skip), dead-
// lettered, dropped, or undone (listed by shutdown()). Events of an entity start in the order in
// which they were admitted, and none starts before the one before it has ended.
//
// Threads: any thread may call anything while the dispatcher exists. A handler, and any callback,
//          may dispatch (to its own entity too), pause, resume and ask; shutdown() from there
//          throws std::logic_error, and dispatch() there never blocks.
// Bounds:  max_queued_per_key, max_queued; threads + 1 threads. An entity without events costs
//          nothing, unless it has a state or positions: those are kept for idle_timeout.
// Cost:    some 100 ns per event from dispatch to the end of an empty handler on two cores, striped
//          half of that; no allocation per event. An idle dispatcher uses no processor time.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ordo/dispatcher/completion.h"
#include "ordo/dispatcher/engine.h"
#include "ordo/dispatcher/handler.h"
#include "ordo/dispatcher/lane_engine.h"
#include "ordo/dispatcher/options.h"
#include "ordo/dispatcher/settings.h"

namespace ordo {

template <class Key, class Event, class State = NoState>
class Dispatcher {
 public:
  using Options = DispatcherOptions<Key, Event, State>;
  // How a key is passed in: text of any type for text keys, so that no string is made.
  using KeyView = LaneKeyView<Key>;
  using Undone = std::map<Key, std::vector<Event>>;

  // Throws std::invalid_argument, naming the option, for bad options.
  template <dispatcher::HandlerFunction<Key, Event, State> Fn>
  explicit Dispatcher(Fn fn, Options options = {})
      : engine_(make_engine(std::move(fn), std::move(options))) {}

  // shutdown() without a deadline to drain, then waits for handlers that still run.
  ~Dispatcher() { end(); }

  Dispatcher(Dispatcher&& other) noexcept = default;
  Dispatcher& operator=(Dispatcher&& other) noexcept {
    if (this != &other) {
      end();
      engine_ = std::move(other.engine_);
    }
    return *this;
  }

  // Hands `event` to the lane of `key`. Unless admitted it is still whole. `position` is where the
  // event stands among those of its entity: what was seen before is a duplicate, and where
  // positions are dense a gap is noticed (Options::gaps). The first position of an entity that is
  // not remembered is taken as it is.
  Dispatched dispatch(KeyView key, Event&& event) { return engine_->dispatch(key, event, nullptr); }
  Dispatched dispatch(KeyView key, Event&& event, std::uint64_t position) {
    return engine_->dispatch(key, event, &position);
  }
  Dispatched dispatch(KeyView key, const Event& event) requires std::copy_constructible<Event> {
    return dispatch(key, Event(event));
  }
  Dispatched dispatch(KeyView key, const Event& event,
                      std::uint64_t position) requires std::copy_constructible<Event> {
    return dispatch(key, Event(event), position);
  }

  // Takes the lane of `key` out of service once the event in flight has ended, with or without
  // events; it admits more, up to its limit. False when it was already. When striped, the stripe.
  bool pause(KeyView key) { return engine_->pause(key); }
  // Puts a lane that was paused or parked back into service; what it was parked for is tried again.
  // Events held back by a gap in their positions go as well. False when there was nothing to do.
  bool resume(KeyView key) { return engine_->resume(key); }
  // Takes the event at the head out of a parked lane: the way past one that no retry will help. It
  // counts as dropped. Nothing when the lane is not parked, or empty.
  std::optional<Event> discard(KeyView key) { return engine_->discard(key); }

  // All lanes out of service, the one parked first first.
  std::vector<ParkedLane<Key, Event>> parked() const { return engine_->parked(); }
  // The `count` lanes with the most events, the deepest first.
  std::vector<LaneStatus<Key>> lanes(std::size_t count) const { return engine_->lanes(count); }
  DispatcherStats stats() const { return engine_->stats(); }

  // Admits nothing more, wakes blocked callers, goes on with what was admitted (retries included)
  // until it is done or `deadline` is over, cleans up all states, and returns what was not done, in
  // order: of parked lanes everything, and of a handler that did not end in time its event, if the
  // handler takes it by const reference; otherwise that one is only counted. Called again: nothing.
  // Throws std::logic_error from a handler or callback of this dispatcher.
  Undone shutdown(std::chrono::nanoseconds deadline = std::chrono::nanoseconds(0)) {
    return engine_->shutdown(deadline);
  }

 private:
  using Engine = dispatcher::Engine<Key, Event>;

  template <class Fn>
  static std::shared_ptr<Engine> make_engine(Fn fn, Options options) {
    const dispatcher::Settings settings = dispatcher::make_settings(options);
    check(options);
    auto handler = dispatcher::make_handler<Key, Event, State>(std::move(fn));
    if (settings.stripes == 0) {
      return start<dispatcher::Types<Key, Event, State, false>>(std::move(handler),
                                                                std::move(options), settings);
    }
    return start<dispatcher::Types<Key, Event, State, true>>(std::move(handler), std::move(options),
                                                             settings);
  }

  template <class T, class Handler>
  static std::shared_ptr<Engine> start(Handler handler, Options options,
                                       const dispatcher::Settings& settings) {
    auto engine = std::make_shared<dispatcher::LaneEngine<T>>(std::move(handler),
                                                              std::move(options), settings);
    engine->start();
    return engine;
  }

  static void check(const Options& options) {
    if (!options.make_state && !std::default_initializable<State>) {
      // tidy: allow(throw) a constructor names the bad option
      throw std::invalid_argument("make_state is not set; it must be, as State has no default");
    }
    if (options.on_failure.last_resort() == dispatcher::LastResort::dead_letter &&
        !options.on_failure.letter()) {
      // tidy: allow(throw) a constructor names the bad option
      throw std::invalid_argument("on_failure: the dead letter function is empty");
    }
  }

  void end() {
    if (!engine_) return;
    engine_->shutdown(std::chrono::nanoseconds(0));
    engine_->join();
  }

  std::shared_ptr<Engine> engine_;  // Tokens share it.
};

}  // namespace ordo

// Callbacks: what a dispatcher calls of its user's besides the handler. What they throw is logged;
// whoever calls back from one is known by CallingOut.
//
// Threads: any; several at once. No lock of the dispatcher is held.
#pragma once

#include <cstdint>
#include <exception>
#include <utility>

#include "ordo/core/clock.h"
#include "ordo/dispatcher/failure_log.h"
#include "ordo/dispatcher/options.h"
#include "ordo/dispatcher/settings.h"

namespace ordo::dispatcher {

template <class Key, class Event, class State>
class Callbacks {
 public:
  // `owner` is who CallingOut knows the dispatcher by.
  Callbacks(DispatcherOptions<Key, Event, State> options, const Clock& clock, const void* owner)
      : options_(std::move(options)),
        log_(clock),
        owner_(owner) {}

  void attempt_failed(const Key& key, const Event& event, const std::exception_ptr& error) {
    if (!options_.on_error) return log_.attempt_failed(error);
    guard("on_error", [&] { options_.on_error(key, event, error); });
  }

  // Null when the dead letter function took it; else what it threw.
  std::exception_ptr dead_letter(const Key& key, Event& event, const std::exception_ptr& error) {
    return guard("the dead letter function",
                 [&] { options_.on_failure.letter()(key, event, error); });
  }

  void dropped(const Key& key, const Event& event) {
    if (options_.on_drop) guard("on_drop", [&] { options_.on_drop(key, event); });
  }

  void gap(const Key& key, std::uint64_t expected, std::uint64_t given) {
    if (options_.on_gap) guard("on_gap", [&] { options_.on_gap(key, expected, given); });
  }
  bool wants_gaps() const { return static_cast<bool>(options_.on_gap); }

  // Throws what make_state throws.
  State make_state(const Key& key) {
    if (options_.make_state) return options_.make_state(key);
    if constexpr (std::is_default_constructible_v<State>) {
      return State();
    } else {
      // tidy: allow(throw) becomes the error of the event
      throw std::logic_error("make_state is not set, and State has no default");
    }
  }
  bool can_make_state() const {
    return std::is_default_constructible_v<State> || static_cast<bool>(options_.make_state);
  }

  void end_state(const Key& key, State& state) {
    if (options_.end_state) guard("end_state", [&] { options_.end_state(key, state); });
  }

 private:
  template <class Call>
  std::exception_ptr guard(const char* name, Call&& call) {
    CallingOut calling(owner_);
    try {
      call();
    } catch (...) {
      log_.callback_threw(name, std::current_exception());
      return std::current_exception();
    }
    return nullptr;
  }

  const DispatcherOptions<Key, Event, State> options_;
  FailureLog log_;
  const void* const owner_;
};

}  // namespace ordo::dispatcher

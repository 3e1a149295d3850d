// Handler: the user's handler, whatever its exact signature, behind one call. steps(): several.
//
//   void fn(const Key&, Event&)                       may throw to fail
//   void fn(const Key&, Event&, Completion)           says later that it is done
//   void fn(const Key&, Event&, State&)               with the entity's state
//   void fn(const Key&, Event&, State&, Completion)
//   ordo::steps(f, g, h)                              each of any of these forms
//
// The steps of an event run one after the other, with nothing of its entity in between. When one
// fails and is retried, those before it are not repeated.
//
// Threads: the function is called from several threads, never twice at once for one entity.
// Cost:    one virtual call per step.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "ordo/dispatcher/completion.h"
#include "ordo/dispatcher/options.h"

namespace ordo {

template <class... Fns>
struct Steps {
  std::tuple<Fns...> fns;
};

template <class... Fns>
requires(sizeof...(Fns) > 0) Steps<Fns...> steps(Fns... fns) {
  return {std::tuple<Fns...>(std::move(fns)...)};
}

namespace dispatcher {

template <class Fn, class Key, class Event, class State>
concept TakesPlain = std::invocable<Fn&, const Key&, Event&>;
template <class Fn, class Key, class Event, class State>
concept TakesState =
    !std::same_as<State, NoState> && std::invocable<Fn&, const Key&, Event&, State&>;
template <class Fn, class Key, class Event, class State>
concept TakesToken = std::invocable<Fn&, const Key&, Event&, Completion>;
template <class Fn, class Key, class Event, class State>
concept TakesStateAndToken = std::invocable<Fn&, const Key&, Event&, State&, Completion>;

template <class Fn, class Key, class Event, class State>
concept StepFunction = TakesPlain<Fn, Key, Event, State> || TakesState<Fn, Key, Event, State> ||
    TakesToken<Fn, Key, Event, State> || TakesStateAndToken<Fn, Key, Event, State>;

template <class Fn, class Key, class Event, class State>
concept AsyncStep = !TakesPlain<Fn, Key, Event, State> && !TakesState<Fn, Key, Event, State> &&
                    StepFunction<Fn, Key, Event, State>;

// It says what it takes; a generic lambda takes anything, and may not compile with it.
template <class Fn>
concept HasOneSignature = std::is_function_v<std::remove_pointer_t<Fn>> || requires {
  &Fn::operator();
};

template <class Fn, class Key, class Event, class State>
concept ReadsOnly = HasOneSignature<Fn> && StepFunction<Fn, Key, const Event, State>;

template <class Fn>
struct IsSteps : std::false_type {};
template <class... Fns>
struct IsSteps<Steps<Fns...>> : std::true_type {};

// What a step needs besides its event. The token is made only if the step takes one.
template <class State>
struct StepCall {
  State* state;
  TurnEnder* ender;
  TurnName turn;
  bool is_async = false;  // Set by the step: the token decides when it is done.
};

template <class Key, class Event, class State>
class Handler {
 public:
  virtual ~Handler() = default;

  // Runs step `index`. Throws what the function throws.
  virtual void call(std::size_t index, const Key& key, Event& event, StepCall<State>& step) = 0;

  virtual std::size_t step_count() const = 0;
  virtual bool has_async_step() const = 0;
  // The functions only read the event, so others may read it meanwhile.
  virtual bool reads_only() const = 0;
};

template <class Key, class Event, class State, class Fn>
void call_step(Fn& fn, const Key& key, Event& event, StepCall<State>& step) {
  if constexpr (TakesState<Fn, Key, Event, State>) {
    std::invoke(fn, key, event, *step.state);
  } else if constexpr (TakesPlain<Fn, Key, Event, State>) {
    std::invoke(fn, key, event);
  } else {
    step.is_async = true;
    step.ender->hold_turn(step.turn);
    Completion done(step.ender->shared_from_this(), step.turn);
    if constexpr (TakesStateAndToken<Fn, Key, Event, State>) {
      std::invoke(fn, key, event, *step.state, std::move(done));
    } else {
      std::invoke(fn, key, event, std::move(done));
    }
  }
}

template <class Key, class Event, class State, class... Fns>
class HandlerOf final : public Handler<Key, Event, State> {
 public:
  explicit HandlerOf(std::tuple<Fns...> fns) : fns_(std::move(fns)) {}

  void call(std::size_t index, const Key& key, Event& event, StepCall<State>& step) override {
    if constexpr (sizeof...(Fns) == 1) {
      call_step(std::get<0>(fns_), key, event, step);
    } else {
      call_at(index, key, event, step, std::index_sequence_for<Fns...>());
    }
  }

  std::size_t step_count() const override { return sizeof...(Fns); }
  bool has_async_step() const override { return (AsyncStep<Fns, Key, Event, State> || ...); }
  bool reads_only() const override { return (ReadsOnly<Fns, Key, Event, State> && ...); }

 private:
  template <std::size_t... Indexes>
  void call_at(std::size_t index, const Key& key, Event& event, StepCall<State>& step,
               std::index_sequence<Indexes...>) {
    ((index == Indexes ? call_step(std::get<Indexes>(fns_), key, event, step) : void()), ...);
  }

  std::tuple<Fns...> fns_;
};

template <class Fn, class Key, class Event, class State>
constexpr bool is_handler() {
  if constexpr (IsSteps<Fn>::value) {
    return []<class... Fns>(const Steps<Fns...>*) {
      return (StepFunction<Fns, Key, Event, State> && ...);
    }(static_cast<const Fn*>(nullptr));
  } else {
    return StepFunction<Fn, Key, Event, State>;
  }
}

template <class Fn, class Key, class Event, class State>
concept HandlerFunction = is_handler<Fn, Key, Event, State>();

template <class Key, class Event, class State, class Fn>
std::unique_ptr<Handler<Key, Event, State>> make_handler(Fn fn) {
  if constexpr (IsSteps<Fn>::value) {
    return [&]<class... Fns>(Steps<Fns...>& all) {
      return std::unique_ptr<Handler<Key, Event, State>>(
          std::make_unique<HandlerOf<Key, Event, State, Fns...>>(std::move(all.fns)));
    }(fn);
  } else {
    return std::make_unique<HandlerOf<Key, Event, State, Fn>>(std::tuple<Fn>(std::move(fn)));
  }
}

}  // namespace dispatcher
}  // namespace ordo

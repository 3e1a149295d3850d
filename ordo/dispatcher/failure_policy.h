// FailurePolicy: what happens to an event whose handler failed.
//
//   .on_failure = ordo::skip()                            // count it, go on with the next
//   .on_failure = ordo::park()                            // stop this lane until resume()
//   .on_failure = ordo::dead_letter([](auto& key, auto& event, auto error) { ... })
//   .on_failure = ordo::retry(3, 500ms).then_park()       // or .then_skip(), .then_dead_letter(fn)
//
// retry(n, base) gives an event up to n further attempts, each after a back-off that doubles: the
// lane waits, all others run. A step that succeeded is not repeated. retry() without a then_...
// skips in the end. A dead letter function that throws parks the lane, so that nothing is lost.
//
// Threads: plain values. The dead letter function runs on a worker's thread, several at once.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <type_traits>
#include <utility>

namespace ordo {

namespace dispatcher {

// What is done when no attempt is left.
enum class LastResort : std::uint8_t { skip, park, dead_letter };

struct RetryPlan {
  std::int64_t retries = 0;  // Attempts after the first.
  std::chrono::nanoseconds base{0};
  bool is_asked = false;  // retry() was used, so the two above have to make sense.
};

struct NoLetter {};

// What skip(), park(), dead_letter() and retry() give; a FailurePolicy can be made of it.
template <class Letter = NoLetter>
struct PolicyText {
  RetryPlan retry;
  LastResort last = LastResort::skip;
  Letter letter{};
};

}  // namespace dispatcher

inline dispatcher::PolicyText<> skip() {
  return {};
}
inline dispatcher::PolicyText<> park() {
  return {.retry = {}, .last = dispatcher::LastResort::park, .letter = {}};
}

// `fn` is called with (key, event) or (key, event, std::exception_ptr).
template <class Fn>
dispatcher::PolicyText<Fn> dead_letter(Fn fn) {
  return {.retry = {}, .last = dispatcher::LastResort::dead_letter, .letter = std::move(fn)};
}

struct Retry : dispatcher::PolicyText<> {
  dispatcher::PolicyText<> then_skip() const { return *this; }
  dispatcher::PolicyText<> then_park() const {
    return {.retry = retry, .last = dispatcher::LastResort::park, .letter = {}};
  }
  template <class Fn>
  dispatcher::PolicyText<Fn> then_dead_letter(Fn fn) const {
    return {.retry = retry, .last = dispatcher::LastResort::dead_letter, .letter = std::move(fn)};
  }
};

// Up to `retries` further attempts, the first after about `base`.
inline Retry retry(std::int64_t retries, std::chrono::nanoseconds base) {
  Retry policy;
  policy.retry = {.retries = retries, .base = base, .is_asked = true};
  return policy;
}

template <class Key, class Event>
class FailurePolicy {
 public:
  using Letter = std::function<void(const Key&, Event&, std::exception_ptr)>;

  FailurePolicy() = default;

  template <class L>
  FailurePolicy(const dispatcher::PolicyText<L>& text) : retry_(text.retry),
                                                         last_(text.last) {
    if constexpr (std::same_as<L, dispatcher::NoLetter>) {
      return;
    } else if constexpr (std::invocable<L&, const Key&, Event&, std::exception_ptr>) {
      letter_ = text.letter;
    } else {
      static_assert(std::invocable<L&, const Key&, Event&>,
                    "a dead letter function takes (key, event) or (key, event, exception_ptr)");
      letter_ = [fn = text.letter](const Key& key, Event& event,
                                   const std::exception_ptr&) mutable {
        std::invoke(fn, key, event);
      };
    }
  }

  const dispatcher::RetryPlan& retry_plan() const { return retry_; }
  dispatcher::LastResort last_resort() const { return last_; }
  const Letter& letter() const { return letter_; }

 private:
  dispatcher::RetryPlan retry_;
  dispatcher::LastResort last_ = dispatcher::LastResort::skip;
  Letter letter_;
};

}  // namespace ordo

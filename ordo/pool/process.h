// Process: the user's process function, whatever its exact signature, behind one call.
//
//   Out | std::optional<Out> | std::vector<Out> | void   fn(input)   or   fn(input,
//   std::stop_token)
//
// The input is handed over as const In& if the function takes it so, as In& or In&& otherwise. Only
// in the first form does the pool keep the original for on_error and for the account of stop().
//
// Threads: call() from several at once; the function must allow that, as it is the user's promise.
// Cost:    one virtual call per item.
#pragma once

#include <concepts>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include "ordo/pool/outputs.h"

namespace ordo::pool {

template <class In, class Out>
class Process {
 public:
  virtual ~Process() = default;

  // Runs the function and puts what it returns into `outputs`. Throws what the function throws.
  virtual Produced call(In& input, const std::stop_token& stop, Outputs<Out>& outputs) = 0;

  // The function only reads its input, so others may read it meanwhile.
  virtual bool input_is_read_only() const = 0;
};

template <class Fn, class Input>
concept CallableWithToken = std::invocable<Fn&, Input, std::stop_token>;
template <class Fn, class Input>
concept CallableWith = CallableWithToken<Fn, Input> || std::invocable<Fn&, Input>;

template <class Fn, class In>
concept ProcessFunction =
    CallableWith<Fn, const In&> || CallableWith<Fn, In&> || CallableWith<Fn, In&&>;

template <class In, class Out, ProcessFunction<In> Fn>
class ProcessOf final : public Process<In, Out> {
 public:
  explicit ProcessOf(Fn fn) : fn_(std::move(fn)) {}

  Produced call(In& input, const std::stop_token& stop, Outputs<Out>& outputs) override {
    if constexpr (CallableWith<Fn, const In&>) {
      return call_with<const In&>(input, stop, outputs);
    } else if constexpr (CallableWith<Fn, In&>) {
      return call_with<In&>(input, stop, outputs);
    } else {
      return call_with<In&&>(std::move(input), stop, outputs);
    }
  }

  bool input_is_read_only() const override { return CallableWith<Fn, const In&>; }

 private:
  template <class Input>
  Produced call_with(Input input, const std::stop_token& stop, Outputs<Out>& outputs) {
    if constexpr (CallableWithToken<Fn, Input>) {
      return put([&]() -> decltype(auto) { return fn_(std::forward<Input>(input), stop); },
                 outputs);
    } else {
      return put([&]() -> decltype(auto) { return fn_(std::forward<Input>(input)); }, outputs);
    }
  }

  template <class Call>
  static Produced put(Call call, Outputs<Out>& outputs) {
    using Returned = std::remove_cvref_t<std::invoke_result_t<Call>>;
    if constexpr (std::is_void_v<Returned>) {
      call();
      return Produced::nothing;
    } else if constexpr (std::same_as<Returned, Out>) {
      return outputs.put_one(call());
    } else if constexpr (std::same_as<Returned, std::vector<Out>>) {
      return outputs.put_many(call());
    } else if constexpr (std::same_as<Returned, std::optional<Out>>) {
      return outputs.put_optional(call());
    } else {
      return outputs.put_one(Out(call()));
    }
  }

  Fn fn_;
};

}  // namespace ordo::pool

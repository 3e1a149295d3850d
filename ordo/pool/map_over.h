// map_over: feeds a range through a Pool and gathers what comes out; map_ordered()'s other half.
//
// The caller's thread pushes; the pool's workers hand their results over in order.
//
// Threads: the caller's, and the pool's.
// Bounds:  the pool's window, and the result.
#pragma once

#include <concepts>
#include <exception>
#include <limits>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "ordo/pool/options.h"
#include "ordo/pool/process.h"

namespace ordo {
template <class In, class Out>
class Pool;
}

namespace ordo::pool {

// The Out of a function that returns Out, std::optional<Out> or std::vector<Out>.
template <class T>
struct Unwrapped {
  using Type = T;
};
template <class T>
struct Unwrapped<std::optional<T>> {
  using Type = T;
};
template <class T>
struct Unwrapped<std::vector<T>> {
  using Type = T;
};

template <class Fn, class In>
struct ReturnOf : std::invoke_result<Fn&, const In&> {};
template <class Fn, class In>
requires CallableWithToken<Fn, const In&>
struct ReturnOf<Fn, In> : std::invoke_result<Fn&, const In&, std::stop_token> {
};

template <class Fn, class In>
using OutputOf = typename Unwrapped<std::remove_cvref_t<typename ReturnOf<Fn, In>::type>>::Type;

// Remembers the failure that comes first in the order of the inputs.
class FirstFailure {
 public:
  void note(std::size_t index, const std::exception_ptr& error) {
    if (index >= index_) return;
    index_ = index;
    error_ = error;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::size_t index_ = std::numeric_limits<std::size_t>::max();
  std::exception_ptr error_;
};

// What travels: the element and where it stood, so that its failure can be put in order.
template <class In>
struct Numbered {
  std::size_t index;
  In value;
};

template <class In>
PoolOptions<Numbered<In>> numbered_options(PoolOptions<In> options, FirstFailure& first) {
  if (options.partition_key) {
    throw std::invalid_argument(  // tidy: allow(throw) as public constructors do
        "partition_key is set, but map_ordered keeps the total order; use Pool for order per key");
  }
  PoolOptions<Numbered<In>> numbered;
  numbered.workers = options.workers;
  numbered.autoscale = options.autoscale;
  numbered.buffer_size = options.buffer_size;
  numbered.preserve_order = true;
  numbered.order_buffer_size = options.order_buffer_size;
  numbered.order_timeout = options.order_timeout;
  numbered.process_timeout = options.process_timeout;
  numbered.fail_stop = options.fail_stop;
  numbered.on_cleanup = std::move(options.on_cleanup);
  numbered.clock = options.clock;
  if (options.on_late) {
    numbered.on_late = [tell = std::move(options.on_late)](const Numbered<In>& input) {
      tell(input.value);
    };
  }
  // Calls of on_error never overlap, so FirstFailure needs no lock.
  numbered.on_error = [tell = std::move(options.on_error), &first](const Numbered<In>& input,
                                                                   const std::exception_ptr& e) {
    tell ? tell(input.value, e) : first.note(input.index, e);
  };
  return numbered;
}

template <class In, class Out, class Range, class Fn>
std::vector<Out> map_over(Range&& range, Fn fn, PoolOptions<In> options) {
  FirstFailure first;
  std::vector<Out> results;
  {
    auto call = [&fn](const Numbered<In>& input, const std::stop_token& stop) {
      if constexpr (CallableWithToken<Fn, const In&>) {
        return fn(input.value, stop);
      } else {
        return fn(input.value);
      }
    };
    Pool<Numbered<In>, Out> pool(
        std::move(call), [&results](Out&& output) { results.push_back(std::move(output)); },
        numbered_options<In>(std::move(options), first));
    std::size_t index = 0;
    for (auto&& element : range) {
      Numbered<In> input{index++, In(std::forward<decltype(element)>(element))};
      if (!pool.push(std::move(input))) break;  // It has ended, by fail_stop.
    }
    pool.close();
    pool.wait();
  }
  first.rethrow();
  return results;
}

}  // namespace ordo::pool

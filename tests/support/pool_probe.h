// What tests of the Pool have in common: taking everything out, noting who failed, virtual time.
//
//   Reports<int> reports;
//   Pool<int, int> pool(fn, reports.watch({.workers = 4, .preserve_order = true}));
//   ...
//   EXPECT_EQ(drain(pool), expected);
//   expect_conserved(pool.stats());
//   EXPECT_EQ(reports.failed(), std::vector<int>{3});
//
// Threads: Reports may be written by any worker; read it from anywhere.
#pragma once

#include <algorithm>
#include <exception>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/core/clock.h"
#include "ordo/pool/options.h"
#include "tests/support/waiting.h"

namespace ordo::testing_support {

// A name for whatever was thrown.
inline std::string describe(const std::exception_ptr& error) {
  if (!error) return "nothing";
  try {
    std::rethrow_exception(error);
  } catch (const ProcessTimeout&) {
    return "ProcessTimeout";
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (int number) {
    return "int " + std::to_string(number);
  } catch (const char* text) {
    return std::string("text ") + (text == nullptr ? "(null)" : text);
  } catch (const std::string& text) {
    return "string " + text;
  } catch (...) {
    return "something else";
  }
}

// Collects what the pool reports through on_error and on_late.
template <class In>
class Reports {
 public:
  PoolOptions<In> watch(PoolOptions<In> options) {
    options.on_error = [this](const In& input, std::exception_ptr error) {
      std::lock_guard guard(mutex_);
      failed_.push_back(input);
      errors_.push_back(describe(error));
    };
    options.on_late = [this](const In& input) {
      std::lock_guard guard(mutex_);
      late_.push_back(input);
    };
    return options;
  }

  // In the order in which they were reported.
  std::vector<In> failed() const { return copy(failed_); }
  std::vector<std::string> errors() const { return copy(errors_); }
  std::vector<In> late() const { return copy(late_); }

 private:
  template <class T>
  std::vector<T> copy(const std::vector<T>& from) const {
    std::lock_guard guard(mutex_);
    return from;
  }

  mutable std::mutex mutex_;
  std::vector<In> failed_;
  std::vector<std::string> errors_;
  std::vector<In> late_;
};

// Takes outputs until the end.
template <class Pool>
auto drain(Pool& pool) {
  std::vector<typename decltype(pool.pop())::value_type> outputs;
  while (auto output = pool.pop())
    outputs.push_back(std::move(*output));
  return outputs;
}

template <class Pool>
constexpr bool kHasPopFor = requires(Pool& pool) {
  pool.pop_for(std::chrono::seconds(1));
};

// The next output, waiting for it no longer than `limit`.
template <class Pool>
auto pop_within(Pool& pool, std::chrono::nanoseconds limit) {
  if constexpr (kHasPopFor<Pool>) {
    return pool.pop_for(limit);
  } else {
    ADD_FAILURE() << "Pool::pop_for is missing; no limit of " << limit.count() << " ns";
    return pool.try_pop();
  }
}

// first, first + 1, ..., last - 1.
inline std::vector<std::uint64_t> numbers(std::uint64_t first, std::uint64_t last) {
  std::vector<std::uint64_t> all(last - first);
  std::iota(all.begin(), all.end(), first);
  return all;
}

template <class T>
std::vector<T> sorted(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values;
}

// REQUIRES: the pool has ended.
inline void expect_conserved(const PoolStats& stats) {
  EXPECT_EQ(stats.admitted, stats.delivered + stats.failed + stats.late + stats.undone)
      << stats.delivered << " delivered, " << stats.failed << " failed, " << stats.late << " late, "
      << stats.undone << " undone";
}

// Delivered, failed, late and undone inputs are all inputs, and no input is in two of them.
inline void expect_partition(const std::vector<std::vector<std::uint64_t>>& parts,
                             std::uint64_t count) {
  std::vector<std::uint64_t> all;
  for (const auto& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  EXPECT_EQ(sorted(all), numbers(0, count));
}

// Moves virtual time by one tick, but not before somebody waits for it, and waits until whoever was
// due has acted and waits again.
inline bool tick(ManualClock& clock, std::chrono::nanoseconds step) {
  const auto somebody_waits = [&] { return clock.next_deadline().has_value(); };
  if (!eventually(somebody_waits)) return false;
  clock.advance(step);
  return eventually(somebody_waits);
}

}  // namespace ordo::testing_support

// What the words everyone speaks cost: a time stamp, a recorded value, a count, a hash.
// Question it answers: may every item of a queue be stamped, counted and measured?
#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>

#include "ordo/core/clock.h"
#include "ordo/core/counter.h"
#include "ordo/core/hash.h"
#include "ordo/core/histogram.h"

namespace ordo {
namespace {

void clock_now(benchmark::State& state) {
  Clock& clock = system_clock();
  TimePoint last = clock.now();
  bool is_monotonic = true;
  for (auto _ : state) {
    const TimePoint now = clock.now();
    is_monotonic = is_monotonic && now >= last;
    last = now;
  }
  if (!is_monotonic) state.SkipWithError("the clock went back");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(clock_now);

void histogram_record(benchmark::State& state) {
  Histogram histogram;
  benchmark::DoNotOptimize(&histogram);
  std::uint64_t value = 1;
  for (auto _ : state) {
    value = value * 6364136223846793005u + 1442695040888963407u;
    histogram.record(value >> 40);
    benchmark::ClobberMemory();
  }
  if (histogram.count() != static_cast<std::uint64_t>(state.iterations())) {
    state.SkipWithError("a value was lost");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(histogram_record);

void histogram_quantile(benchmark::State& state) {
  Histogram histogram;
  for (std::uint64_t value = 0; value < 100'000; ++value) {
    histogram.record(value);
  }
  std::uint64_t checksum = 0;
  for (auto _ : state) {
    checksum += histogram.quantile(0.99);
  }
  benchmark::DoNotOptimize(checksum);
}
BENCHMARK(histogram_quantile);

void counter_add(benchmark::State& state) {
  Counter counter;
  benchmark::DoNotOptimize(&counter);
  for (auto _ : state) {
    counter.add();
  }
  if (counter.value() != static_cast<std::uint64_t>(state.iterations())) {
    state.SkipWithError("a count was lost");
  }
}
BENCHMARK(counter_add);

void shared_counter_add(benchmark::State& state) {
  static SharedCounter counter;
  for (auto _ : state) {
    counter.add();
  }
  if (counter.value() < static_cast<std::uint64_t>(state.iterations())) {
    state.SkipWithError("a count was lost");
  }
}
BENCHMARK(shared_counter_add)->Threads(1)->Threads(2);

void hash_of_text(benchmark::State& state) {
  std::string text(static_cast<std::size_t>(state.range(0)), 'k');
  std::uint64_t checksum = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(text.data());
    checksum += hash_bytes(text);
    benchmark::ClobberMemory();
  }
  benchmark::DoNotOptimize(checksum);
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(hash_of_text)->Arg(8)->Arg(20)->Arg(1024);

}  // namespace
}  // namespace ordo

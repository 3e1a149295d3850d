// What a task costs from submit() to its answer, handler excluded.
// Question it answers: does the engine cost little beside a system call for each batch of requests?
//
// One producer submits bursts of tasks over 1,000 ids, flushes, and waits until all are answered,
// as a front does that reads a burst, and answers it, before it reads the next.
#include "ordo/engine.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>

#include <benchmark/benchmark.h>

namespace {

using namespace ordo;

struct Request {
  std::array<std::uint64_t, 8> words;  // 64 bytes.
};

struct alignas(kCacheLineBytes) Answers {
  std::atomic<std::uint64_t> count{0};
};

// Adds up what it is given, and tells at the end of a batch how many tasks it has seen.
class Adder {
 public:
  explicit Adder(Answers& answers) : answers_(answers) {}

  void handle(const Request& request, const TaskTurn&) { sum_ += request.words[0]; }
  void finished(Request&, const TaskTurn&) noexcept { ++seen_; }
  void failed(Request&, const TaskTurn&, std::exception_ptr) noexcept { ++seen_; }
  void batch_end() noexcept {
    benchmark::DoNotOptimize(sum_);
    answers_.count.store(seen_, std::memory_order_release);
  }

 private:
  Answers& answers_;
  std::uint64_t sum_ = 0;
  std::uint64_t seen_ = 0;
};

std::uint64_t answered(const std::array<Answers, 4>& answers) {
  std::uint64_t sum = 0;
  for (const Answers& one : answers)
    sum += one.count.load(std::memory_order_acquire);
  return sum;
}

// Arguments: tasks of a burst, partitions, whether callers run, share of uncorrelated tasks in %.
void engine_burst(benchmark::State& state) {
  const auto burst = static_cast<std::uint64_t>(state.range(0));
  std::array<Answers, 4> answers;
  PartitionEngine<Request, Adder> engine(
      {.partitions = static_cast<std::size_t>(state.range(1)), .callers_run = state.range(2) != 0},
      [&](std::size_t index) { return Adder(answers.at(index)); });
  const auto uncorrelated = static_cast<std::uint64_t>(state.range(3));
  std::uint64_t sent = 0;
  for (auto _ : state) {
    for (std::uint64_t i = 0; i < burst; ++i, ++sent) {
      const bool is_free = sent % 100 < uncorrelated;
      const auto id = static_cast<CorrelationId>(is_free ? 0 : sent % 1000 + 1);
      if (engine.submit(id, Request{{sent}}).entry != Entry::admitted) std::abort();
    }
    engine.flush();
    for (int look = 1; answered(answers) != sent; ++look)
      look % 64 == 0 ? StdAtomics::yield() : StdAtomics::pause();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(sent));
  state.counters["ns/task"] = benchmark::Counter(
      static_cast<double>(sent), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(engine_burst)
    ->ArgNames({"burst", "partitions", "callers_run", "uncorrelated"})
    ->ArgsProduct({{1, 16, 64}, {1, 4}, {0, 1}, {0}})
    ->Args({64, 4, 1, 50})
    ->Args({64, 4, 1, 100})
    ->UseRealTime();

}  // namespace

// What the other ordering pieces cost per item.
// Question it answers: are window, deadlines and mark cheap beside the queue that feeds them?
#include <chrono>
#include <cstdint>

#include <benchmark/benchmark.h>

#include "ordo/lane/deadline_queue.h"
#include "ordo/lane/low_water_mark.h"
#include "ordo/lane/reorder_window.h"

namespace ordo {
namespace {

// A window kept full; completed in blocks from back to front, so that every head is the last.
void reorder_window_item(benchmark::State& state) {
  const auto size = static_cast<std::uint64_t>(state.range(0));
  ReorderWindow<std::uint64_t> window(size);
  std::uint64_t released = 0;
  bool is_ordered = true;
  for (auto _ : state) {
    const std::uint64_t first = window.end_sequence();
    while (window.admit()) {
    }
    for (std::uint64_t i = size; i-- > 0;) {
      window.complete(first + i, first + i);
    }
    window.release([&](std::uint64_t, std::uint64_t value) {
      is_ordered = is_ordered && value == released;
      ++released;
    });
  }
  if (!is_ordered) state.SkipWithError("released out of order");
  state.SetItemsProcessed(static_cast<std::int64_t>(released));
}
BENCHMARK(reorder_window_item)->Arg(1)->Arg(64)->Arg(1024)->Arg(1 << 20);

// One lease granted, one extended and one cancelled, with that many outstanding.
void deadline_queue_lease(benchmark::State& state) {
  const auto lease_count = static_cast<std::uint64_t>(state.range(0));
  DeadlineQueue<std::uint64_t> queue;
  std::uint64_t random = 1;
  auto any_time = [&] {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return TimePoint{} + std::chrono::nanoseconds(random >> 34);
  };
  std::uint64_t next = 0;
  for (; next < lease_count; ++next) {
    queue.add(next, any_time());
  }
  for (auto _ : state) {
    queue.add(next, any_time());
    queue.update(next - lease_count / 2, any_time());
    queue.cancel(next - lease_count);
    ++next;
  }
  if (queue.count() != lease_count) state.SkipWithError("a lease was lost");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(deadline_queue_lease)->Arg(1)->Arg(1 << 10)->Arg(1 << 20);

// Positions started in order and completed with the halves of a block swapped.
void low_water_mark_position(benchmark::State& state) {
  const auto in_flight = static_cast<std::uint64_t>(state.range(0));
  LowWaterMark done;
  std::uint64_t next = 0;
  for (auto _ : state) {
    for (std::uint64_t i = 0; i < in_flight; ++i) {
      if (!done.start(next + i)) state.SkipWithError("started twice");
    }
    for (std::uint64_t i = 0; i < in_flight; ++i) {
      done.complete(next + (i + in_flight / 2) % in_flight);
    }
    next += in_flight;
  }
  if (done.mark() != next) state.SkipWithError("the mark stands behind");
  state.SetItemsProcessed(static_cast<std::int64_t>(next));
}
BENCHMARK(low_water_mark_position)->Arg(1)->Arg(64)->Arg(1024);

}  // namespace
}  // namespace ordo

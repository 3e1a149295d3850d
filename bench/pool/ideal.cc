#include "bench/pool/ideal.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <queue>
#include <thread>

#include "bench/support/usage.h"

namespace ordo::bench {
namespace {

// How much later than asked a sleep usually ends.
double usual_lateness_ns(const Load& load, std::size_t sample_count) {
  std::vector<double> lateness;
  for (std::uint64_t id = 0; id < load.items() && lateness.size() < sample_count; ++id) {
    const std::uint64_t length = load.sleep_ns(id);
    if (length == 0) continue;
    const std::uint64_t from = now_ns();
    std::this_thread::sleep_for(std::chrono::nanoseconds(length));
    lateness.push_back(static_cast<double>(now_ns() - from) - static_cast<double>(length));
  }
  return percentile(lateness, 0.5);
}

}  // namespace

double ideal_ns(const std::vector<double>& lengths_ns, std::size_t workers, std::size_t window) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
  for (std::size_t i = 0; i < workers; ++i) {
    free_at.push(0);
  }
  std::vector<double> released_at(lengths_ns.size());
  double last_release = 0;
  for (std::size_t i = 0; i < lengths_ns.size(); ++i) {
    const double admitted_at = i >= window ? released_at[i - window] : 0;
    const double done_at = std::max(free_at.top(), admitted_at) + lengths_ns[i];
    free_at.pop();
    free_at.push(done_at);
    last_release = std::max(last_release, done_at);
    released_at[i] = last_release;
  }
  return last_release;
}

Measures measure_ideal(const LoadSettings& settings, std::size_t sample_count) {
  const Load load(settings);
  const double lateness = usual_lateness_ns(load, sample_count);
  std::vector<double> lengths(settings.items);
  for (std::uint64_t id = 0; id < settings.items; ++id) {
    const std::uint64_t length = load.sleep_ns(id);
    lengths[id] = length == 0 ? 0 : static_cast<double>(length) + lateness;
  }
  const double total = ideal_ns(lengths, settings.workers, settings.window);
  const auto items = static_cast<double>(settings.items);
  Measures measures;
  measures.set("errors", 0);
  measures.set("seconds", total / 1e9);
  measures.set("items_per_s", items / total * 1e9);
  measures.set("ns_per_item", total / items);
  measures.set("sleep_lateness_us", lateness / 1'000);
  return measures;
}

}  // namespace ordo::bench

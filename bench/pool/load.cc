#include "bench/pool/load.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <sched.h>
#include <thread>

#include "bench/pool/ideal.h"
#include "bench/support/allocations.h"
#include "bench/support/usage.h"

namespace ordo::bench {
namespace {

constexpr std::array<Workload, 6> kWorkloads{{
    {.name = "empty", .title = "empty"},
    {.name = "1us", .title = "1 us of processor time", .burn_ns = 1'000},
    {.name = "10us", .title = "10 us of processor time", .burn_ns = 10'000},
    {.name = "skewed", .title = "1 % sleep 1 ms", .sleep_one_in = 100, .sleep_ns = 1'000'000},
    {.name = "random", .title = "random sleep of 0..5 ms", .sleep_ns_max = 5'000'000},
    {.name = "paced", .title = "1 us, 200,000 items/s", .burn_ns = 1'000, .pace_ns = 5'000},
}};

// A chain of multiplications, each waiting for the one before.
[[gnu::noinline]] std::uint64_t burn(std::uint64_t rounds, std::uint64_t value) {
  for (std::uint64_t i = 0; i < rounds; ++i) {
    value = value * 6364136223846793005U + 1442695040888963407U;
    asm volatile("" : "+r"(value));
  }
  return value;
}

// The finaliser of splitmix64: the same "random" number for the same id in every run.
std::uint64_t scatter(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

std::uint64_t answer_to(std::uint64_t id) {
  return id * 3 + 1;
}

}  // namespace

const Workload* find_workload(std::string_view name) {
  for (const Workload& workload : kWorkloads) {
    if (workload.name == name) return &workload;
  }
  return nullptr;
}

double measure_burn_rounds_per_ns() {
  constexpr std::uint64_t kRounds = 20'000;
  std::uint64_t best_ns = ~std::uint64_t{0};
  std::uint64_t value = 1;
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t from = now_ns();
    value = burn(kRounds, value);
    best_ns = std::min(best_ns, now_ns() - from);
  }
  return static_cast<double>(kRounds) / static_cast<double>(std::max<std::uint64_t>(best_ns, 1));
}

Load::Load(const LoadSettings& settings) : settings_(settings) {
  const Workload& workload = *settings_.workload;
  burn_rounds_ = static_cast<std::uint64_t>(static_cast<double>(workload.burn_ns) *
                                            settings_.burn_rounds_per_ns);
  if (workload.sleep_one_in != 0 || workload.sleep_ns_max != 0) slept_ns_.resize(settings_.items);
  sample_mask_ = workload.pace_ns != 0 || workload.sleep_ns_max != 0 ? 0 : 63;
  if (settings_.sample_latency) latency_ns_.reserve(settings_.items / (sample_mask_ + 1) + 1);
}

void Load::begin() {
  next_mark_ = std::min(settings_.items / 100, settings_.items - 1);
  begin_cpu_ns_ = process_cpu_ns();
  begin_ns_ = now_ns();
}

void Load::wait_until_due(std::uint64_t due_ns) const {
  for (std::uint64_t now = now_ns(); now < due_ns; now = now_ns()) {
    if (due_ns - now > 200'000) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(due_ns - now - 100'000));
    } else {
      sched_yield();
    }
  }
}

void Load::fill(Message& message, std::uint64_t id) {
  message.id = id;
  message.body[0] = id;
  if (settings_.workload->pace_ns != 0) {
    // Counted from the time it is due, not from when a late sender came to it.
    message.sent_ns = begin_ns_ + id * settings_.workload->pace_ns;
    wait_until_due(message.sent_ns);
  } else if ((id & sample_mask_) == 0) {
    message.sent_ns = now_ns();
  }
}

std::uint64_t Load::sleep_ns(std::uint64_t id) const {
  const Workload& workload = *settings_.workload;
  if (workload.sleep_ns_max != 0) return scatter(id) % (workload.sleep_ns_max + 1);
  const bool sleeps = workload.sleep_one_in != 0 && scatter(id) % workload.sleep_one_in == 0;
  return sleeps ? workload.sleep_ns : 0;
}

void Load::work(Message& message) {
  if (burn_rounds_ != 0) message.burnt = burn(burn_rounds_, message.id);
  if (!slept_ns_.empty()) {
    if (const std::uint64_t length = sleep_ns(message.id); length != 0) {
      const std::uint64_t from = now_ns();
      std::this_thread::sleep_for(std::chrono::nanoseconds(length));
      slept_ns_[message.id] = static_cast<std::uint32_t>(now_ns() - from);
    }
  }
  message.answer = answer_to(message.body[0]);
}

void Load::take(const Message& message) {
  if (message.id != next_ || message.answer != answer_to(next_)) ++errors_;
  if ((message.id & sample_mask_) == 0 && settings_.sample_latency &&
      latency_ns_.size() < latency_ns_.capacity()) {
    latency_ns_.push_back(static_cast<double>(now_ns() - message.sent_ns));
  }
  if (next_ == next_mark_) mark_steady();
  if (++next_ == settings_.items) mark_end();
}

// After 1 % of the run the memory, and from its half on the allocations, should stand still.
void Load::mark_steady() {
  if (early_peak_rss_ == 0) early_peak_rss_ = process_peak_rss_bytes();
  half_allocations_ = allocation_count();
  next_mark_ = next_ < settings_.items / 2 ? settings_.items / 2 : settings_.items;
}

void Load::mark_end() {
  end_ns_ = now_ns();
  end_cpu_ns_ = process_cpu_ns();
  end_allocations_ = allocation_count();
  end_peak_rss_ = process_peak_rss_bytes();
}

void Load::report_latency(Measures& measures) {
  constexpr std::array<std::pair<const char*, double>, 9> kShares{{{"p10_us", 0.10},
                                                                   {"p25_us", 0.25},
                                                                   {"p50_us", 0.50},
                                                                   {"p75_us", 0.75},
                                                                   {"p90_us", 0.90},
                                                                   {"p95_us", 0.95},
                                                                   {"p99_us", 0.99},
                                                                   {"p999_us", 0.999},
                                                                   {"max_us", 1.0}}};
  for (const auto& [name, share] : kShares) {
    measures.set(name, percentile(latency_ns_, share) / 1'000);
  }
}

Measures Load::finish() {
  Measures measures;
  const auto items = static_cast<double>(settings_.items);
  const auto wall = static_cast<double>(end_ns_ - begin_ns_);
  if (next_ != settings_.items) ++errors_;
  measures.set("errors", static_cast<double>(errors_));
  measures.set("seconds", wall / 1e9);
  measures.set("items_per_s", items / wall * 1e9);
  measures.set("ns_per_item", wall / items);
  measures.set("cpu_ns_per_item", static_cast<double>(end_cpu_ns_ - begin_cpu_ns_) / items);
  const auto second_half = static_cast<double>(settings_.items - settings_.items / 2);
  measures.set("allocations_per_item",
               static_cast<double>(end_allocations_ - half_allocations_) / second_half);
  if (settings_.sample_latency) {
    report_latency(measures);
  } else {
    measures.set("peak_rss_bytes", static_cast<double>(end_peak_rss_));
    measures.set("rss_growth_bytes", static_cast<double>(end_peak_rss_ - early_peak_rss_));
  }
  if (!slept_ns_.empty()) {
    // The best any pool could have done with the sleeps exactly as long as they were in this run.
    const std::vector<double> lengths(slept_ns_.begin(), slept_ns_.end());
    measures.set("ideal_here_ns_per_item",
                 ideal_ns(lengths, settings_.workers, settings_.window) / items);
  }
  return measures;
}

}  // namespace ordo::bench

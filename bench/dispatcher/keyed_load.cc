#include "bench/dispatcher/keyed_load.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include "bench/support/allocations.h"
#include "bench/support/usage.h"

namespace ordo::bench {
namespace {

constexpr std::size_t kDrawMax = std::size_t{1} << 21;
constexpr std::uint64_t kCheckedMax = 50'000;

}  // namespace

KeyedLoad::KeyedLoad(const KeyedSettings& settings) : settings_(settings), cells_(256) {
  const bool checks = !is_once() && settings_.pace_ns == 0;
  checked_ = checks ? std::min(kCheckedMax, settings_.events / 10) : 0;
  numbers_in_.resize(settings_.keys);
  numbers_out_.resize(settings_.keys);
  std::size_t count = 1;
  while (count < std::min<std::size_t>(settings_.events, kDrawMax))
    count *= 2;
  draw_.resize(count);
  draw_keys();
}

std::uint64_t KeyedLoad::key_of(std::uint64_t index) {
  std::uint64_t key =
      index + 0x9e3779b97f4a7c15u;  // Arbitrary keys: everybody has to look them up.
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  return key ^ (key >> 31);
}

void KeyedLoad::draw_keys() {
  if (is_once()) {
    for (std::size_t i = 0; i < draw_.size(); ++i)
      draw_[i] = static_cast<std::uint32_t>(i % settings_.keys);
  } else if (settings_.distribution == "zipf") {
    draw_zipf();
  } else {
    std::mt19937_64 random(42);
    for (std::uint32_t& index : draw_)
      index = static_cast<std::uint32_t>(random() % settings_.keys);
  }
}

// As YCSB draws them, with the exponent 0.99.
void KeyedLoad::draw_zipf() {
  constexpr double kTheta = 0.99;
  double zeta = 0;
  for (std::uint64_t i = 1; i <= settings_.keys; ++i)
    zeta += 1 / std::pow(static_cast<double>(i), kTheta);
  const double zeta_of_two = 1 + 1 / std::pow(2.0, kTheta);
  const double alpha = 1 / (1 - kTheta);
  const auto keys = static_cast<double>(settings_.keys);
  const double eta = (1 - std::pow(2.0 / keys, 1 - kTheta)) / (1 - zeta_of_two / zeta);
  std::mt19937_64 random(42);
  std::uniform_real_distribution<> uniform;
  for (std::uint32_t& index : draw_) {
    const double u = uniform(random);
    if (u * zeta < 1) {
      index = 0;
    } else if (u * zeta < zeta_of_two) {
      index = 1;
    } else {
      const double rank = keys * std::pow(eta * u - eta + 1, alpha);
      index = static_cast<std::uint32_t>(std::min(keys - 1, rank));
    }
  }
}

void KeyedLoad::begin() {
  if (checked_ == 0) start_timing();
}

void KeyedLoad::start_timing() {
  allocations_ = allocation_count();
  cpu_begin_ns_ = process_cpu_ns();
  begin_ns_ = now_ns();
}

bool KeyedLoad::next(Message& message) {
  if (sent_ == settings_.events) return false;
  if (checked_ != 0 && sent_ == checked_) {
    await();
    start_timing();
  }
  if (sent_ % 256 == 0) {
    while (sent_ - done() > kOutstandingMax)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  message.index = draw_[sent_ & (draw_.size() - 1)];
  message.key = key_of(message.index);
  message.id = sent_;
  message.payload[0] = sent_;
  if (sent_ < checked_) message.number = numbers_in_[message.index]++;
  if (settings_.pace_ns != 0) pace(message);
  sum_ += sent_;
  ++sent_;
  return true;
}

void KeyedLoad::pace(Message& message) const {
  message.due_ns = begin_ns_ + sent_ * settings_.pace_ns;
  for (std::uint64_t now = now_ns(); now < message.due_ns; now = now_ns()) {
    if (message.due_ns - now > 200'000) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(message.due_ns - now - 100'000));
    } else {
      std::this_thread::yield();
    }
  }
}

KeyedLoad::Cell& KeyedLoad::own_cell() {
  thread_local Cell* cell = &cells_[cells_used_.fetch_add(1)];
  return *cell;
}

void KeyedLoad::handle(const Message& message) {
  Cell& cell = own_cell();
  if (message.id < checked_ && numbers_out_[message.index]++ != message.number) {
    errors_.fetch_add(1, std::memory_order_relaxed);
  }
  cell.sum += message.payload[0];
  if (settings_.pace_ns != 0) {
    if (message.index == 0 && settings_.block_ms != 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(settings_.block_ms));
    } else if (message.index != 0) {
      cell.latencies.push_back(static_cast<double>(now_ns() - message.due_ns));
    }
  }
  cell.done.store(cell.done.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

std::uint64_t KeyedLoad::done() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < cells_used_.load(); ++i)
    sum += cells_[i].done.load(std::memory_order_acquire);
  return sum;
}

void KeyedLoad::await() {
  while (done() < sent_)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  end_ns_ = now_ns();
  cpu_end_ns_ = process_cpu_ns();
}

Measures KeyedLoad::finish() {
  const auto timed = static_cast<double>(sent_ - checked_);
  std::uint64_t sum = 0;
  std::vector<double> latencies;
  for (const Cell& cell : cells_) {
    sum += cell.sum;
    latencies.insert(latencies.end(), cell.latencies.begin(), cell.latencies.end());
  }
  Measures measures;
  measures.set("ns_per_event", static_cast<double>(end_ns_ - begin_ns_) / timed);
  measures.set("cpu_ns_per_event", static_cast<double>(cpu_end_ns_ - cpu_begin_ns_) / timed);
  measures.set("allocations_per_event",
               static_cast<double>(allocation_count() - allocations_) / timed);
  if (!latencies.empty()) {
    measures.set("p50_us", percentile(latencies, 0.5) / 1000);
    measures.set("p99_us", percentile(latencies, 0.99) / 1000);
    measures.set("p999_us", percentile(latencies, 0.999) / 1000);
  }
  measures.set("errors", static_cast<double>(errors_.load() + (sum == sum_ ? 0 : 1)));
  return measures;
}

}  // namespace ordo::bench

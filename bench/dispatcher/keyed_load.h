// KeyedLoad: the events a contender of bench_dispatcher works off, and the judge of what it did.
//
//   KeyedLoad load(settings);
//   contender->run(load):
//     load.begin();                          // what is prepared before does not count
//     Message message;
//     while (load.next(message)) dispatch(message.key, message);
//     ... on workers, one at a time and in order for each key: load.handle(message);
//     load.await();                          // all have come
//   Measures measures = load.finish();
//
// The first events of a run are numbered within their key and checked one by one; the others, which
// are timed, are counted and summed up, so that the check costs no cache miss. Nobody may run
// further ahead than kOutstandingMax events.
//
// Threads: next() on the one that dispatches; handle() on workers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bench/support/measures.h"

namespace ordo::bench {

struct Message {
  std::uint64_t key = 0;
  std::uint32_t index = 0;   // Of the key.
  std::uint32_t number = 0;  // Within its key, while that is checked.
  std::uint64_t id = 0;
  std::uint64_t due_ns = 0;
  std::array<std::uint64_t, 4> payload{};
};

struct KeyedSettings {
  std::string_view distribution = "uniform";  // Or "zipf"; "once": every event has a new key.
  std::uint64_t keys = 1000;
  std::uint64_t events = 1'000'000;
  std::size_t workers = 2;
  std::uint64_t pace_ns = 0;   // Between two events; 0: as fast as it goes.
  std::uint64_t block_ms = 0;  // The handler of the first key sleeps that long.
};

class KeyedLoad {
 public:
  static constexpr std::uint64_t kOutstandingMax = 32'768;

  explicit KeyedLoad(const KeyedSettings& settings);

  const KeyedSettings& settings() const { return settings_; }
  bool is_once() const { return settings_.distribution == "once"; }
  static std::uint64_t key_of(std::uint64_t index);

  void begin();
  bool next(Message& message);
  void handle(const Message& message);
  void await();
  Measures finish();

 private:
  struct alignas(64) Cell {
    std::atomic<std::uint64_t> done{0};
    std::uint64_t sum = 0;
    std::vector<double> latencies{};
  };

  Cell& own_cell();
  std::uint64_t done() const;
  void draw_keys();
  void draw_zipf();
  void start_timing();
  void pace(Message& message) const;

  const KeyedSettings settings_;
  std::uint64_t checked_ = 0;        // So many events are checked first.
  std::vector<std::uint32_t> draw_;  // Indexes of keys; a power of two of them, used again.
  std::vector<std::uint32_t> numbers_in_;
  std::vector<std::uint32_t> numbers_out_;
  std::vector<Cell> cells_;
  std::atomic<std::size_t> cells_used_{0};
  std::atomic<std::uint64_t> errors_{0};
  std::uint64_t sent_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t begin_ns_ = 0;
  std::uint64_t end_ns_ = 0;
  std::uint64_t cpu_begin_ns_ = 0;
  std::uint64_t cpu_end_ns_ = 0;
  std::uint64_t allocations_ = 0;
};

struct KeyedContender {
  const char* name;
  const char* title;
  void (*run)(KeyedLoad& load);  // nullptr: another program.
};

// ours.cc
void run_ordo(KeyedLoad& load);
void run_ordo_striped(KeyedLoad& load);
// plain.cc
void run_striped_mutex(KeyedLoad& load);  // One queue; the key's stripe is locked while handling.
void run_one_mutex(KeyedLoad& load);      // A map of queues under one mutex.
// strands.cc
void run_strands(KeyedLoad& load);  // Boost.Asio, a strand for each key.
// tbb.cc
void run_tbb_nodes(KeyedLoad& load);  // A serial function node for each key.

}  // namespace ordo::bench

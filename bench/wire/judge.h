// Judge: whether every message that was sent came, once, and in order within its key.
//
//   Judge judge(keys);
//   judge.received(stamp);     // a key's next while its last was not done: two in flight
//   judge.done(stamp.key);
//   judge.errors();            // {"lost": 0, ...}, when nothing more can come
//
// Threads: one owner.
// Bounds:  without keys one bit for each message.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/support/measures.h"
#include "bench/wire/plan.h"

namespace ordo::bench {

class Judge {
 public:
  explicit Judge(std::size_t keys) : keys_(keys) {}

  void received(const Stamp& stamp);
  // The handler of the key's message has ended.
  void done(std::uint64_t key) {
    if (!keys_.empty()) keys_[key].is_in_flight = false;
  }

  std::uint64_t count() const { return count_; }
  // What was wrong; `sent` messages should have come.
  Measures errors(std::uint64_t sent) const;

 private:
  struct Key {
    std::uint64_t next = 0;
    bool is_in_flight = false;
  };

  std::vector<Key> keys_;
  std::vector<bool> seen_{};  // Without keys.
  std::uint64_t count_ = 0;
  std::uint64_t repeated_ = 0;
  std::uint64_t disordered_ = 0;
  std::uint64_t overlapping_ = 0;
};

}  // namespace ordo::bench

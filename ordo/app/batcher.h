// Batcher: puts jobs together for persistent workers, as many as are waiting and cheap.
//
//   batcher.add(std::move(job), lane, ready);   // full batches are moved to `ready`
//   batcher.flush(ready);                       // nothing more to read for now: all of them are
//
// Without keys there is one batch in the making; with keys one for each key that was seen since the
// last flush, so that lines of one key stay in their order and never wait for those of another.
//
// Threads: one owner.
// Bounds:  what the caller adds between two flushes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "ordo/app/job.h"

namespace ordo::app {

class Batcher {
 public:
  // How many lines of `line_cost` nanoseconds each make a batch: about half a millisecond of work,
  // and never so many that fewer workers than there are have something to do.
  static std::size_t size_for(std::uint64_t line_cost, std::size_t window, std::size_t workers);

  void set_size(std::size_t size) { size_ = size; }
  void add(Job job, std::uint64_t lane, std::deque<Batch>& ready);
  void flush(std::deque<Batch>& ready);

 private:
  std::size_t size_ = 1;
  std::vector<Batch> open_;                                 // In the order of their first jobs.
  std::unordered_map<std::uint64_t, std::size_t> by_lane_;  // Index into open_.
};

}  // namespace ordo::app

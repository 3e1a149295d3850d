// Delivery: the end of the line. Writes outputs, then dead letters, then the journal, in that
// order, and counts.
//
//   Delivery delivery(parts, verdict);
//   pool(..., [&](BatchResult&& results) { delivery.take(std::move(results)); });
//
// A result is recorded only when its output was written whole. When that cannot be done any more
// (nobody reads, the disk is full, --halt) the run is stopped and the rest counts as undone.
//
// Threads: take() and lose() by one thread at a time, as the pool promises for what it calls;
//          the counts that others may read meanwhile are released() and its neighbours.
// Cost:    one write and one journal append per batch.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "ordo/app/dead_letters.h"
#include "ordo/app/job.h"
#include "ordo/app/journal.h"
#include "ordo/app/output_writer.h"
#include "ordo/app/progress.h"
#include "ordo/app/verdict.h"
#include "ordo/core/histogram.h"

namespace ordo::app {

struct DeliveryParts {
  OutputWriter* out = nullptr;
  OutputWriter* err = nullptr;
  Journal* journal = nullptr;           // None: not kept.
  DeadLetters* dead_letters = nullptr;  // None: not kept.
  Progress* progress = nullptr;
  bool ordered = true;
  bool halt_on_error = false;
  std::uint64_t output_end = 0;       // Where the output file ends now.
  std::function<void()> on_released;  // After each batch.
};

struct DeliveryCounts {
  std::uint64_t done = 0;  // Succeeded, written and recorded.
  std::uint64_t failed = 0;
  std::uint64_t undone = 0;
  std::uint64_t first_undone = 0;  // Its number; 0 for none.
  std::uint64_t retries = 0;
  Histogram runtimes;  // Nanoseconds, of done and failed jobs.
};

class Delivery {
 public:
  Delivery(DeliveryParts parts, Verdict& verdict) : parts_(std::move(parts)), verdict_(verdict) {}

  void take(BatchResult&& batch);
  // For a batch that has no result because of an exception.
  void lose(const Batch& batch, const std::string& reason);

  std::uint64_t released_lines() const { return released_lines_.load(); }
  std::uint64_t released_bytes() const { return released_bytes_.load(std::memory_order_acquire); }
  std::uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }

  // REQUIRES: the pool has ended.
  const DeliveryCounts& counts() const { return counts_; }

 private:
  bool write(const BatchResult& batch);
  bool flush_output();
  bool write_errors(const JobResult& result);
  bool record(const BatchResult& batch);
  bool check(WriteEnd end, const OutputWriter& writer, const char* name);
  bool wanted(const JobResult& result);
  void count(const JobResult& result);
  void count_undone(const JobResult& result);
  void release(std::uint64_t lines, std::uint64_t bytes);

  DeliveryParts parts_;
  Verdict& verdict_;
  bool closed_ = false;  // Nothing is delivered any more.
  std::string buffer_;
  DeliveryCounts counts_;
  std::atomic<std::uint64_t> released_lines_{0};
  std::atomic<std::uint64_t> released_bytes_{0};
  std::atomic<std::uint64_t> failed_{0};
};

}  // namespace ordo::app

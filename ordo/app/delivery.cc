#include "ordo/app/delivery.h"

#include <algorithm>
#include <cstring>

#include "ordo/core/log.h"

namespace ordo::app {

// False for a job that counts as undone. When order is kept, so does everything behind it.
bool Delivery::wanted(const JobResult& result) {
  if (result.ending == Ending::cancelled && parts_.ordered) closed_ = true;
  return !closed_ && result.ending != Ending::cancelled;
}

void Delivery::take(BatchResult&& batch) {
  std::uint64_t bytes = 0;
  const std::uint64_t lines = batch.results.size();
  BatchResult good;
  for (JobResult& result : batch.results) {
    bytes += result.line_bytes;
    if (!wanted(result)) {
      count_undone(result);
      continue;
    }
    const bool halt = parts_.halt_on_error && result.failed();
    good.results.push_back(std::move(result));
    if (halt) closed_ = true;
  }
  const bool halted = closed_ && !good.results.empty() && good.results.back().failed();
  if (!good.results.empty()) {
    if (write(good) && record(good)) {
      for (const JobResult& result : good.results)
        count(result);
      if (halted && parts_.halt_on_error) {
        verdict_.stop(Verdict::Reason::halted, "job " + std::to_string(good.results.back().number) +
                                                   " failed (" + ending_text(good.results.back()) +
                                                   ") and --halt on-error was given");
      }
    } else {
      closed_ = true;
      for (const JobResult& result : good.results)
        count_undone(result);
    }
  }
  release(lines, bytes);
}

void Delivery::lose(const Batch& batch, const std::string& reason) {
  std::uint64_t bytes = 0;
  for (const Job& job : batch.jobs) {
    bytes += job.line.size();
    count_undone(result_of(job));
  }
  verdict_.stop(Verdict::Reason::error, reason);
  release(batch.jobs.size(), bytes);
}

bool Delivery::write(const BatchResult& batch) {
  std::unique_lock<std::mutex> pause;
  if (parts_.progress->active()) pause = parts_.progress->pause();
  if (batch.results.size() == 1) {
    const JobResult& only = batch.results[0];
    return check(parts_.out->write(only.out), *parts_.out, "the output") && write_errors(only);
  }
  buffer_.clear();
  for (const JobResult& result : batch.results) {
    buffer_ += result.out;
    if (!result.err.empty() || result.failed()) {
      if (!flush_output() || !write_errors(result)) return false;
    }
  }
  return flush_output();
}

bool Delivery::flush_output() {
  const WriteEnd end = parts_.out->write(buffer_);
  buffer_.clear();
  return check(end, *parts_.out, "the output");
}

bool Delivery::write_errors(const JobResult& result) {
  if (!result.err.empty()) {
    // Standard error that nobody reads is no reason to stop.
    if (parts_.err->write(result.err) == WriteEnd::stopped) return false;
  }
  if (result.failed() && result.ending != Ending::exited) {
    log_line("ordo: job " + std::to_string(result.number) + ": " + ending_text(result));
  }
  return true;
}

bool Delivery::check(WriteEnd end, const OutputWriter& writer, const char* name) {
  switch (end) {
    case WriteEnd::written:
      return true;
    case WriteEnd::closed:
      verdict_.stop(Verdict::Reason::closed_output, {});
      break;
    case WriteEnd::failed:
      verdict_.stop(Verdict::Reason::error, std::string("cannot write to ") + name + ": " +
                                                ::strerrordesc_np(writer.error()));
      break;
    case WriteEnd::stopped:
      break;
  }
  return false;
}

bool Delivery::record(const BatchResult& batch) {
  if (parts_.dead_letters != nullptr) {
    for (const JobResult& result : batch.results) {
      if (!result.failed()) continue;
      if (const int error = parts_.dead_letters->append(result); error != 0) {
        verdict_.stop(
            Verdict::Reason::error,
            std::string("cannot write to the dead-letter file: ") + ::strerrordesc_np(error));
        return false;
      }
    }
  }
  if (parts_.journal == nullptr) return true;
  if (const int error = parts_.journal->append(batch.results, parts_.output_end); error != 0) {
    verdict_.stop(Verdict::Reason::error,
                  std::string("cannot write to the journal: ") + ::strerrordesc_np(error));
    return false;
  }
  for (const JobResult& result : batch.results)
    parts_.output_end += result.out.size();
  return true;
}

void Delivery::count(const JobResult& result) {
  counts_.runtimes.record(static_cast<std::uint64_t>(result.runtime.count()));
  counts_.retries += result.attempts > 1 ? result.attempts - 1 : 0;
  if (result.failed()) {
    ++counts_.failed;
    failed_.fetch_add(1, std::memory_order_relaxed);
  } else {
    ++counts_.done;
  }
}

void Delivery::count_undone(const JobResult& result) {
  ++counts_.undone;
  if (counts_.first_undone == 0 || result.number < counts_.first_undone) {
    counts_.first_undone = result.number;
  }
}

void Delivery::release(std::uint64_t lines, std::uint64_t bytes) {
  released_bytes_.fetch_add(bytes, std::memory_order_release);
  released_lines_.fetch_add(lines, std::memory_order_seq_cst);
  if (parts_.on_released) parts_.on_released();
}

}  // namespace ordo::app

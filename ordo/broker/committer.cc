#include "ordo/broker/committer.h"

#include <iterator>
#include <limits>
#include <stop_token>
#include <utility>

#include "ordo/broker/gathering.h"
#include "ordo/broker/host.h"
#include "ordo/broker/reader.h"

namespace ordo::broker {
namespace {

std::size_t appended_bytes(const CommitBatch& ops) {
  std::size_t bytes = 0;
  for (const CommitOp& op : ops) {
    if (const auto* append = std::get_if<Append>(&op)) bytes += append->batch->bytes.size();
  }
  return bytes;
}

bool appends(const CommitBatch& ops) {
  for (const CommitOp& op : ops) {
    if (std::holds_alternative<Append>(op)) return true;
  }
  return false;
}

}  // namespace

Committer::Committer(Store& store, Reader& reader, Clock& clock, Events events)
    : store_(store),
      reader_(reader),
      clock_(clock),
      events_(std::move(events)),
      jobs_({.items_max = std::numeric_limits<std::size_t>::max()}),
      thread_("ordo-commit", [this](const std::stop_token&) { run(); }) {}

void Committer::push(std::vector<CommitterJob>& jobs) {
  for (CommitterJob& job : jobs)
    (void)jobs_.try_push(std::move(job));
  jobs.clear();
}

void Committer::store(CommitBatch ops, std::function<void(const Status&)> done) {
  CommitterJob job(CommitJob{nullptr, {}, std::move(ops), std::move(done)});
  if (jobs_.try_push(std::move(job)) == ChannelPush::admitted) return;
  // NOLINTNEXTLINE(bugprone-use-after-move): what is not admitted is not taken.
  std::get<CommitJob>(job).done(closed_error());
}

bool Committer::finish_by(TimePoint deadline) {
  auto stored = std::make_shared<Reply<bool>>();
  store({}, [stored](const Status& status) { stored->set(status.has_value()); });
  return stored->wait_until(clock_, deadline).value_or(false);
}

void Committer::close() {
  jobs_.close();
  const std::lock_guard lock(close_mutex_);
  thread_.join();
}

bool Committer::close_by(TimePoint deadline) {
  jobs_.close();
  std::unique_lock lock(mutex_);
  while (!has_ended_) {
    if (clock_.wait_until(lock, ended_, deadline)) break;
  }
  return has_ended_;
}

CommitterStats Committer::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void Committer::run() {
  std::vector<CommitterJob> jobs;
  while (jobs_.pop_some(jobs, std::numeric_limits<std::size_t>::max()) > 0) {
    run_batch(jobs);
    jobs.clear();
  }
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  ended_.notify_all();
}

// One write for all that waited, or several where that is too much for one.
void Committer::run_batch(std::vector<CommitterJob>& jobs) {
  std::vector<CommitJob*> merged;
  std::size_t bytes = 0;
  for (CommitterJob& job : jobs) {
    if (auto* spilled = std::get_if<SpillJob>(&job)) {
      spill(*spilled);
      continue;
    }
    auto& commit_job = std::get<CommitJob>(job);
    merged.push_back(&commit_job);
    bytes += appended_bytes(commit_job.ops);
    if (bytes < kMergeBytesMax) continue;
    commit(merged);
    merged.clear();
    bytes = 0;
  }
  if (!merged.empty()) commit(merged);
}

void Committer::commit(std::vector<CommitJob*>& jobs) {
  const Status status = write(jobs);
  const bool is_full = !status && status.error().code == ErrorCode::resource_exhausted;
  if (!is_full) {
    if (!status && failure_.empty()) fail(status.error());
    for (CommitJob* job : jobs)
      answer(*job, told(status));
    events_.answered(jobs_.size() > 0);
    return;
  }
  std::vector<CommitJob*> others;
  std::uint64_t refused = 0;
  for (CommitJob* job : jobs) {
    if (!appends(job->ops)) {
      others.push_back(job);
    } else {
      ++refused;
    }
  }
  {
    const std::lock_guard lock(mutex_);
    stats_.refused_full += refused;
  }
  const Status stored = others.empty() ? Status() : write(others);
  if (!stored && stored.error().code != ErrorCode::resource_exhausted && failure_.empty())
    fail(stored.error());
  for (CommitJob* job : jobs)
    answer(*job, appends(job->ops) ? status : told(stored));
  events_.answered(jobs_.size() > 0);
}

// What a partition hears of an outcome that is not a refusal for want of space.
Status Committer::told(const Status& status) const {
  if (status || failure_.empty()) return status;
  return Error{ErrorCode::unavailable, "Nothing is stored any more: " + failure_};
}

Status Committer::write(std::vector<CommitJob*>& jobs) {
  if (!failure_.empty()) return Error{ErrorCode::unavailable, failure_};
  if (jobs.size() == 1) return write(jobs.front()->ops, 1);
  // The parts go back where they were: after a refusal some of them are written again.
  CommitBatch batch;
  std::size_t count = 0;
  for (const CommitJob* job : jobs)
    count += job->ops.size();
  batch.reserve(count);
  for (CommitJob* job : jobs)
    std::move(job->ops.begin(), job->ops.end(), std::back_inserter(batch));
  Status status = write(batch, jobs.size());
  auto from = batch.begin();
  for (CommitJob* job : jobs) {
    for (CommitOp& op : job->ops)
      op = std::move(*from++);
  }
  return status;
}

Status Committer::write(CommitBatch& batch, std::size_t request_count) {
  if (batch.empty()) return {};
  {
    const std::lock_guard lock(mutex_);
    stats_.writing_since = clock_.now();
  }
  Status status = store_.commit(batch);
  const std::lock_guard lock(mutex_);
  stats_.writing_since.reset();
  ++stats_.commits;
  stats_.requests += request_count;
  return status;
}

void Committer::answer(CommitJob& job, const Status& status) {
  if (job.done) return job.done(status);
  std::optional<Error> error;
  if (!status) error = status.error();
  job.host->post_unflushed({Committed{job.ticket, std::move(error)}});
}

void Committer::spill(SpillJob& job) {
  if (const auto* read = std::get_if<ReadSpill>(&job.effect))
    return reader_.push({std::move(job.host), *read});
  Status status;
  if (const auto* write = std::get_if<WriteSpill>(&job.effect)) {
    status = store_.write_spill(write->key, write->bytes);
  } else if (const auto* erase = std::get_if<EraseSpill>(&job.effect)) {
    status = store_.erase_spill(erase->first, erase->chunk_count);
  }
  if (status) return;
  const std::lock_guard lock(mutex_);
  ++stats_.spill_failures;
}

void Committer::fail(const Error& error) {
  failure_ = error.message.empty() ? "the store failed" : error.message;
  {
    const std::lock_guard lock(mutex_);
    stats_.failure = failure_;
  }
  events_.failed({ErrorCode::unavailable, "Nothing is stored any more: " + failure_});
}

}  // namespace ordo::broker

#include "ordo/broker/reader.h"

#include <limits>
#include <stop_token>
#include <utility>

#include "ordo/broker/host.h"

namespace ordo::broker {

Reader::Reader(Store& store, std::size_t thread_count, std::function<void(const Error&)> on_damage)
    : store_(store),
      jobs_({.items_max = std::numeric_limits<std::size_t>::max()}),
      on_damage_(std::move(on_damage)),
      workers_("ordo-read", [this](std::size_t, const std::stop_token&) { run(); }) {
  workers_.grow(thread_count);
}

void Reader::push(ReadJob job) {
  (void)jobs_.try_push(std::move(job));
}

void Reader::close() {
  closing_.store(true, std::memory_order_relaxed);
  jobs_.close();
  workers_.stop();
}

void Reader::run() {
  while (std::optional<ReadJob> job = jobs_.pop()) {
    if (closing_.load(std::memory_order_relaxed)) continue;
    perform(*job);
    reads_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Reader::perform(ReadJob& job) {
  PartitionHost& host = *job.host;
  if (const auto* read = std::get_if<Read>(&job.effect)) {
    Result<ReadBatches> result =
        store_.read(host.address(), read->from, read->messages_max, read->bytes_max);
    if (!result) report(result.error());
    host.post({ReadDone{read->ticket, std::move(result)}});
  } else if (const auto* find = std::get_if<FindTime>(&job.effect)) {
    host.post({TimeFound{find->ticket, store_.find_time(host.address(), find->time)}});
  } else if (const auto* spill = std::get_if<ReadSpill>(&job.effect)) {
    Result<std::string> result = store_.read_spill(spill->key);
    const bool is_read = result.has_value();
    host.post({SpillRead{spill->ticket, std::move(result)}});
    if (is_read) host.erase_spill(spill->key);  // Else it is asked for again.
  }
}

// A partition tries again and again; that is said once.
void Reader::report(const Error& error) {
  if (error.code != ErrorCode::data_loss) return;
  {
    const std::lock_guard lock(mutex_);
    if (reported_ == error.message) return;
    reported_ = error.message;
  }
  on_damage_(error);
}

}  // namespace ordo::broker

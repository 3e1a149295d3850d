// Committer: one thread that stores what all partitions want stored, many requests in one write.
//
//   Committer committer(store, reader, clock, events);
//   committer.push(std::move(jobs));           // the partitions, at the end of a turn
//   committer.store(rows, [](Status) {...});   // the catalog
//
// It takes everything that waits, merges it into one store.commit(), and tells each partition
// (Committed), in order, what became of its part. While one write is being synced the next one
// gathers by itself: nobody waits for a timer.
//
// Where there is no space (resource_exhausted), what appends messages is answered so, and the rest
// is stored without it: acknowledgements go on. After any other error nothing is known to be
// stored: from then on everything is answered `unavailable`, with the reason, until the broker is
// opened again.
//
// Threads: owns one. push() and store(): any thread, never wait. Answers come on its thread.
// Bounds:  what partitions may have under way, and kMergeBytesMax of messages in one write.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ordo/broker/partition_io.h"
#include "ordo/broker/store.h"
#include "ordo/core/clock.h"
#include "ordo/runtime/channel.h"
#include "ordo/runtime/threads.h"

namespace ordo::broker {

class PartitionHost;
class Reader;

// To be stored; then the partition is told, or `done` is called.
struct CommitJob {
  std::shared_ptr<PartitionHost> host;
  TicketNumber ticket;
  CommitBatch ops;
  std::function<void(const Status&)> done;
};
// Chunks of tails: written and erased here, since spilling has one writer; a read is handed on to
// the reader once everything before it was written.
struct SpillJob {
  std::shared_ptr<PartitionHost> host;
  std::variant<WriteSpill, ReadSpill, EraseSpill> effect;
};
using CommitterJob = std::variant<CommitJob, SpillJob>;

struct CommitterStats {
  std::uint64_t commits = 0;               // Writes made.
  std::uint64_t requests = 0;              // Merged into them.
  std::uint64_t refused_full = 0;          // Requests that found no space.
  std::uint64_t spill_failures = 0;        // Chunks that could not be written.
  std::string failure;                     // Why nothing is stored any more; empty while healthy.
  std::optional<TimePoint> writing_since;  // When the write began that is under way, if one is.
};

class Committer {
 public:
  static constexpr std::size_t kMergeBytesMax = 16u << 20;

  struct Events {
    // The answers to a write were posted. Does more wait to be stored?
    std::function<void(bool)> answered;
    std::function<void(const Error&)> failed;  // Once: nothing is stored any more.
  };

  Committer(Store& store, Reader& reader, Clock& clock, Events events);
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;
  ~Committer() { close(); }

  // Takes the jobs, in order; leaves `jobs` empty. What comes after close() is dropped.
  void push(std::vector<CommitterJob>& jobs);
  void store(CommitBatch ops, std::function<void(const Status&)> done);

  // Waits until what was pushed before is stored and answered. False: not at the deadline, or it
  // is closed.
  bool finish_by(TimePoint deadline);
  // Stores what waits, then ends the thread; a write of the store that hangs is waited for.
  // Idempotent.
  void close();
  // The same without the last step. False: it was not all stored at the deadline.
  bool close_by(TimePoint deadline);

  CommitterStats stats() const;

 private:
  void run();
  void run_batch(std::vector<CommitterJob>& jobs);
  void commit(std::vector<CommitJob*>& jobs);
  Status write(std::vector<CommitJob*>& jobs);
  Status write(CommitBatch& batch, std::size_t request_count);
  Status told(const Status& status) const;
  void answer(CommitJob& job, const Status& status);
  void spill(SpillJob& job);
  void fail(const Error& error);

  Store& store_;
  Reader& reader_;
  Clock& clock_;
  const Events events_;
  Channel<CommitterJob> jobs_;
  std::string failure_;  // The thread's own; a copy of it is in stats_.

  mutable std::mutex mutex_;  // Guards the three below.
  std::condition_variable ended_;
  bool has_ended_ = false;  // All is stored.
  CommitterStats stats_;

  std::mutex close_mutex_;  // Held while joining.
  Thread thread_;
};

}  // namespace ordo::broker

// PartitionHost: one Partition with its mailbox, and the effects of its steps performed.
// Switchboard: all hosts of a broker, on the threads of a partition engine.
//
//   Switchboard switchboard(options);
//   switchboard.connect(committer, reader);
//   std::shared_ptr<PartitionHost> host = switchboard.open(std::move(start), partition_options);
//   host->post({Publish{{}, bodies}, [](Effect&& reply) { ... }});     // any thread
//
// A mailbox takes everything; the engine has at most two tasks for a host, "look into your
// mailbox", so that what must come back (Committed, ReadDone) is never refused for want of room.
// Those who ask are bounded where they enter, in Broker.
//
// Threads: post(): any, never waits. A host runs on one thread at a time, one of the engine's or,
//          with callers_run, one inside post() or flush(). Answers are called there: they must be
//          short, must not block, and may post.
// Bounds:  a mailbox holds what Broker has admitted and what is under way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "ordo/broker/committer.h"
#include "ordo/broker/partition.h"
#include "ordo/broker/partition_io.h"
#include "ordo/broker/reader.h"
#include "ordo/engine/partition_engine.h"
#include "ordo/lane/deadline_queue.h"

namespace ordo::broker {

class ConsumerDesk;
class LiveFeed;
class Switchboard;

// Called with the effect that answers an input.
using OnAnswer = std::function<void(Effect&&)>;

// Makes the answer that says why an input was not taken.
using Refusal = std::function<Effect(const Error&)>;

// An input on its way to a partition. Its request number is given by the host.
struct Posted {
  Input input;
  OnAnswer on_answer{};                      // Of an input with a request.
  std::function<void()> after{};             // Called once all effects of the input were performed.
  std::shared_ptr<ConsumerDesk> consumer{};  // Of an OpenConsumer.
};

class PartitionHost : public std::enable_shared_from_this<PartitionHost> {
 public:
  PartitionHost(Switchboard& switchboard, CorrelationId number, PartitionStart start,
                const PartitionOptions& options, Now now, std::shared_ptr<LiveFeed> live);
  PartitionHost(const PartitionHost&) = delete;
  PartitionHost& operator=(const PartitionHost&) = delete;
  ~PartitionHost();

  PartitionAddress address() const { return address_; }
  CorrelationId number() const { return number_; }

  // Hands an input over and lets the partition run; or leaves that to Switchboard::flush().
  void post(Posted posted);
  void post_unflushed(Posted posted);

  // From the next input on, what asks is answered `reason`; what was under way comes to its end.
  // `after` is called once that is so.
  void retire(Error reason, std::function<void()> after);

  // Stores what the partition would have stored a little later; `done` is called once that is on
  // its way to the committer. For the end of a broker.
  void wind_up(std::function<void()> done);

  // Answers all that waits for an answer with `reason`, now and later. Idempotent.
  // REQUIRES: the switchboard has ended.
  void abandon(const Error& reason);

  // Erases a chunk that was read; by the reader.
  void erase_spill(const SpillKey& key);

 private:
  friend class HostHandler;

  using Outbox = std::vector<CommitterJob>;
  struct Awaited {
    OnAnswer on_answer;
    Refusal refusal;
  };

  // The owner's.
  void run_mail(Outbox& outbox);
  void run_due(Outbox& outbox);
  std::optional<TimePoint> next_due() const { return partition_.next_due(); }
  void take(Posted& posted, Now now, Outbox& outbox);
  bool refuse_if_retired(Posted& posted);
  static void refuse(Posted& posted, const Error& reason);
  void perform(Outbox& outbox);
  void perform(Effect& effect, Outbox& outbox);
  void answer(RequestNumber request, Effect&& effect);
  void commit(Commit&& effect, Outbox& outbox);
  void committed(const Committed& input);
  void deliver(Deliver&& effect);
  void report(KeptBack&& effect);
  void close_consumer(ConsumerClosed&& effect);
  void send_dead_letter(SendDeadLetter&& effect);

  bool put(Posted&& posted);  // True: the engine has to be told.

  Switchboard& switchboard_;
  const CorrelationId number_;
  const PartitionAddress address_;
  const std::shared_ptr<LiveFeed> live_;

  std::mutex mail_mutex_;  // Guards the three below.
  std::vector<Posted> mail_;
  bool is_called_ = false;          // A task of the engine will look into the mailbox.
  std::optional<Error> abandoned_;  // Set once.

  // The owner's.
  Partition partition_;
  Effects effects_;
  std::vector<Posted> reading_;  // The mail being worked on.
  RequestNumber next_request_ = RequestNumber(1);
  std::unordered_map<RequestNumber, Awaited> answers_;
  std::unordered_map<ConsumerNumber, std::shared_ptr<ConsumerDesk>> consumers_;
  std::unordered_map<TicketNumber, std::vector<std::shared_ptr<MessageBatch>>> for_live_;
  std::optional<Error> retired_;
};

// What the engine runs.
struct Wake {
  std::shared_ptr<PartitionHost> host;
};

class HostHandler {
 public:
  explicit HostHandler(Switchboard& switchboard) : switchboard_(switchboard) {}

  void handle(Wake& wake, const TaskTurn& turn);
  void finished(Wake&, const TaskTurn&) noexcept {}
  void failed(Wake&, const TaskTurn&, std::exception_ptr error) noexcept;
  void batch_end() noexcept;
  std::optional<TimePoint> next_due() const { return due_.next_deadline(); }
  void run_due(TimePoint now);

 private:
  void set_due(const std::shared_ptr<PartitionHost>& host);

  Switchboard& switchboard_;
  std::vector<CommitterJob> outbox_;
  DeadlineQueue<CorrelationId> due_;
  std::unordered_map<CorrelationId, std::weak_ptr<PartitionHost>> with_timer_;
};

// A stored message whose bytes are no longer those that were published.
struct Damage {
  PartitionAddress partition;
  Offset offset;
  MessageId id;
  std::string key;
};

Error error_of(const Damage& damage);

// What a broker answers that has ended.
inline Error closed_error() {
  return {ErrorCode::unavailable, "The broker is closed."};
}

struct SwitchboardOptions {
  std::size_t threads = 2;
  std::size_t hosts_max = 4096;
  bool callers_run = true;
  Clock* clock = nullptr;
  std::function<void(const Damage&)> on_damage{};  // Called by a partition; must be short.
};

class Switchboard {
 public:
  explicit Switchboard(const SwitchboardOptions& options);
  Switchboard(const Switchboard&) = delete;
  Switchboard& operator=(const Switchboard&) = delete;
  ~Switchboard();

  // Once, before anything is posted; both outlive the last run of a host.
  void connect(Committer& committer, Reader& reader);

  // After the end, one that refuses whatever it is asked.
  std::shared_ptr<PartitionHost> open(PartitionStart start, const PartitionOptions& options,
                                      std::shared_ptr<LiveFeed> live);
  // Nobody finds it any more; who has it, keeps it.
  void forget(PartitionAddress address);
  std::shared_ptr<PartitionHost> find(PartitionAddress address) const;
  std::vector<std::shared_ptr<PartitionHost>> all() const;
  // Those that nobody finds any more, and somebody still has.
  std::vector<std::shared_ptr<PartitionHost>> forgotten() const;

  // Lets all hosts run that this thread has posted to without a flush; wake() never runs them here.
  void flush();
  void wake();
  // Runs what was posted, at most until `deadline`, then ends the threads: nothing runs any more.
  // Once, and not from a partition's thread.
  void end(TimePoint deadline);

  Now now() const { return {clock_.now(), clock_.wall_now()}; }
  Clock& clock() const { return clock_; }
  std::uint64_t damaged_count() const { return damaged_.load(std::memory_order_relaxed); }

 private:
  friend class PartitionHost;
  friend class HostHandler;
  using Engine = PartitionEngine<Wake, HostHandler>;

  void call(std::shared_ptr<PartitionHost> host, bool flush);
  CorrelationId next_number();
  template <class Use>
  void use_engine(const Use& use);
  void report(const Damage& damage);

  Clock& clock_;
  const std::function<void(const Damage&)> on_damage_;
  Committer* committer_ = nullptr;
  Reader* reader_ = nullptr;
  std::atomic<std::uint64_t> damaged_{0};
  mutable std::shared_mutex mutex_;  // Guards the four below.
  std::map<PartitionAddress, std::shared_ptr<PartitionHost>> hosts_;
  std::vector<std::weak_ptr<PartitionHost>> forgotten_;
  CorrelationId next_number_ = 1;
  std::size_t next_thread_ = 0;  // That the next host goes to.

  std::atomic<bool> has_ended_{false};
  std::atomic<std::size_t> caller_count_{0};  // Threads that may be using the engine.
  std::unique_ptr<Engine> engine_;            // Null after the end.
};

}  // namespace ordo::broker

// Partition::Core: the log of a partition and its subscriptions, put together.
//
// partition.cc has the log (publishes, commits) and the way of every input to whom it concerns;
// partition_upkeep.cc what is done from time to time and by request: retention, trimming, seeks,
// snapshots, stats; partition_peek.cc looks at messages without touching them.
//
// Threads: one owner.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ordo/broker/acked_intervals.h"
#include "ordo/broker/partition.h"
#include "ordo/broker/partition_common.h"
#include "ordo/broker/subscription.h"

namespace ordo::broker {

class Partition::Core {
 public:
  Core(PartitionStart start, const PartitionOptions& options, Now now);

  void step(Input&& input, Now now, Effects& effects);
  void run_due(Now now, Effects& effects);
  std::optional<TimePoint> next_due() const;

 private:
  static constexpr std::chrono::seconds kUpkeepTime{1};
  static constexpr std::uint64_t kTrimMessages = 1'000;  // So many are not worth waiting for.

  // A batch that is being committed, for a publisher or for the source of a dead letter.
  struct PendingAppend {
    TicketNumber ticket;
    std::shared_ptr<MessageBatch> batch;
    bool is_dead_letter = false;
    RequestNumber request;
    PartitionAddress source;
    TicketNumber source_ticket;
  };
  struct PendingSnapshot {
    RequestNumber request;
    CursorNumber snapshot;
    WallTime oldest_unacked = WallTime::max();
  };
  struct PendingStats {
    StatsReply reply;
    std::size_t reads = 0;  // Under way.
  };
  struct PendingSeek {
    RequestNumber request;
    CursorNumber subscription;
    AckedIntervals target;
  };

  // partition.cc
  void on(Publish&& input, Step& step);
  void on(Committed&& input, Step& step);
  void on(Attach&& input, Step& step);
  void on(Reconfigure&& input, Step& step);
  void on(Detach&& input, Step& step);
  void forget_consumers(CursorNumber subscription);
  void on(OpenConsumer&& input, Step& step);
  void on(GrantCredit&& input, Step& step);
  void on(SetConsumerDeadline&& input, Step& step);
  void on(CloseConsumer&& input, Step& step);
  void on(Acknowledge&& input, Step& step);
  void on(ModifyDeadline&& input, Step& step);
  void on(ReadDone&& input, Step& step);
  void on(SpillRead&& input, Step& step);
  void on(TakeDeadLetter&& input, Step& step);
  void on(DeadLetterDone&& input, Step& step);
  void on(OperateKey&& input, Step& step);
  void on(ListKeys&& input, Step& step);
  // partition_peek.cc
  void on(Peek&& input, Step& step);
  // partition_upkeep.cc
  void on(TimeFound&& input, Step& step);
  void on(SeekToTime&& input, Step& step);
  void on(SeekToSnapshot&& input, Step& step);
  void on(TakeSnapshot&& input, Step& step);
  void on(DropSnapshot&& input, Step& step);
  void on(RetainTopic&& input, Step& step);
  void on(AskStats&& input, Step& step);

  bool append(PendingAppend pending, const std::vector<MessageBody>& bodies, CommitBatch more,
              Step& step);
  void appended(const std::optional<Error>& error, Step& step);
  void answer(const PendingAppend& pending, const std::optional<Error>& error, Step& step);
  Subscription* find(CursorNumber subscription);
  Subscription* touch(CursorNumber subscription);  // It is pumped at the end of the step.
  template <class Reply, class SettleInput>
  void settle(const SettleInput& input, Step& step, Reply&& by_subscription);
  void finish_step(Step& step);

  void upkeep(Step& step);
  void trim(Step& step);
  bool is_seeking() const;
  Offset lowest_needed() const;
  std::optional<std::chrono::nanoseconds> keep_time() const;
  void expect_upkeep(TimePoint now) {
    if (!upkeep_due_) upkeep_due_ = now + kUpkeepTime;
  }
  void check_retention(Step& step);
  void schedule_retention(TimePoint now);
  void start_seeks(Step& step);
  void commit_snapshot(std::uint64_t serial, Step& step);
  void snapshot_read(std::uint64_t serial, const Result<ReadBatches>& result, Step& step);
  void snapshot_committed(std::uint64_t serial, const std::optional<Error>& error, Step& step);
  void house_keep(CommitOp op, Step& step);
  void stats_read(const TicketUse& use, const Result<ReadBatches>& result, Step& step);
  void peek_read(const TicketUse& use, const Result<ReadBatches>& result, Step& step);

  PartitionCommon common_;
  std::optional<std::chrono::nanoseconds> topic_retention_;
  Offset next_offset_;          // Of the next message published.
  WallTime last_publish_time_;  // Publish times do not fall.
  std::deque<PendingAppend> pending_;
  std::size_t pending_bytes_ = 0;
  std::uint64_t published_ = 0;
  std::uint64_t publish_failures_ = 0;

  std::map<CursorNumber, std::unique_ptr<Subscription>> subscriptions_;
  std::unordered_map<ConsumerNumber, CursorNumber> consumers_;
  std::map<CursorNumber, AckedIntervals> snapshots_;
  std::map<std::uint64_t, PendingSnapshot> pending_snapshots_;
  std::map<std::uint64_t, PendingStats> pending_stats_;
  std::map<std::uint64_t, Peek> pending_peeks_;         // Wait for their Read.
  std::map<std::uint64_t, PendingSeek> pending_seeks_;  // Wait for their FindTime.
  std::deque<PendingSeek> waiting_seeks_;               // Wait for their subscription.
  std::uint64_t last_serial_ = 0;

  std::optional<TimePoint> upkeep_due_;
  std::optional<TimePoint> retention_due_;
  Offset kept_from_ = Offset(1);  // Messages below are older than keep_time().
  std::uint64_t settled_since_trim_ = 0;

  CursorNumber touched_;
  bool is_one_touched_ = false;
  bool are_all_touched_ = false;
};

}  // namespace ordo::broker

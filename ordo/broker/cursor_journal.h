// CursorJournal: what of a subscription's place in a partition has changed and is to be written
// down, and who waits until it is.
//
//   journal.acked().add(offset, offset + 1);
//   journal.confirm(reply, step);                   // goes out when that is durable
//   journal.flush(common, step);                    // -> Commit
//   journal.committed(error, step, stored);         // -> SettleReply
//
// One commit of it is under way at a time; what happens meanwhile is merged into the next. So a
// hundred acks during an fsync are one row where they touch each other, and a commit that failed is
// simply made again with things as they are then.
//
// Threads: one owner.
// Bounds:  rows and replies of the acks that arrive during two commits.
// Cost:    O(rows changed) for a commit.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ordo/broker/acked_intervals.h"
#include "ordo/broker/cursor_rows.h"
#include "ordo/broker/partition_common.h"

namespace ordo::broker {

// Acks nobody waits for may stay so long in memory alone.
inline constexpr std::chrono::milliseconds kAckCollectTime{5};
// What can be found out again (filtered messages, gaps) is written so much later.
inline constexpr std::chrono::milliseconds kIdleCollectTime{1'000};
inline constexpr std::chrono::milliseconds kCommitRetryTime{100};

class CursorJournal {
 public:
  struct StoredAttempts {
    Offset offset;
    std::uint32_t attempts = 0;
  };

  CursorJournal(RowOwner owner, AckedIntervals acked, Offset delivered_below)
      : owner_(owner),
        acked_(std::move(acked)),
        delivered_below_(delivered_below),
        delivered_below_wanted_(delivered_below) {}

  AckedIntervals& acked() { return acked_; }
  const AckedIntervals& acked() const { return acked_; }
  const RowOwner& owner() const { return owner_; }

  // Sends the reply (SettleReply, VerbReply) when all that is settled so far is durable, which may
  // be now. If that fails the reply says so.
  void confirm(Effect reply, Step& step);
  // Something was settled that nobody waits for.
  void settled(TimePoint now) { wish(now + kAckCollectTime); }

  // Makes durable that `offset` may have been delivered so often; committed() tells when.
  void store_attempts(Offset offset, std::uint32_t attempts);
  void erase_attempts(Offset offset);
  // Makes durable that messages below may have been delivered once.
  void raise_delivered_below(Offset offset);
  Offset delivered_below() const { return delivered_below_; }  // Durably.
  Offset delivered_below_wanted() const { return delivered_below_wanted_; }

  void put_hold(const HeldLaneRow& held);
  void erase_hold(const HeldLaneRow& held);

  // Commits what is due, unless a commit is under way.
  void flush(PartitionCommon& common, Step& step);
  void committed(const std::optional<Error>& error, Step& step,
                 std::vector<StoredAttempts>& stored);
  std::optional<TimePoint> next_due() const;

  // A seek: all rows are replaced by those of `acked` and of the lanes that stay held. What was
  // under way is void, and replies that wait go out with the seek.
  std::vector<Effect> abandon();
  // The subscription is gone: all replies that wait, saying so.
  std::vector<Effect> give_up(const Error& reason);
  // Those that came meanwhile.
  std::vector<Effect> take_replies() { return std::exchange(replies_, {}); }
  CommitBatch replacement(const AckedIntervals& acked, const std::vector<HeldLaneRow>& holds) const;
  void replace(AckedIntervals acked);

 private:
  struct Name {
    RowKind kind;
    std::uint64_t position;
    std::string text;
    friend auto operator<=>(const Name&, const Name&) = default;
  };
  using Rows = std::map<Name, std::optional<std::uint64_t>>;  // Nothing: erased.

  struct UnderWay {
    std::vector<std::uint64_t> begins;
    Rows rows;
    std::vector<Effect> replies;
    std::vector<StoredAttempts> stored;
    Offset delivered_below;
    bool is_void = false;
  };

  bool is_dirty() const { return acked_.has_touched() || !rows_.empty(); }
  void wish(TimePoint due) {
    if (!due_ || due < *due_) due_ = due;
  }
  void take_back(UnderWay&& failed);
  static void refuse(Effect& reply, const Error& error);

  RowOwner owner_;
  AckedIntervals acked_;
  Offset delivered_below_;
  Offset delivered_below_wanted_;
  Rows rows_;
  std::vector<Effect> replies_;
  std::vector<StoredAttempts> stored_;
  std::optional<TimePoint> due_;  // When what is dirty should go.
  TimePoint not_before_;          // After a commit that failed.
  std::optional<UnderWay> under_way_;
};

}  // namespace ordo::broker

// Reach marks: situations that a run of the simulator must have been in, by name.
//
//   marks.hit(Mark::rewind);
//   for (Mark mark : marks.never_hit()) ...
//
// A simulator that never gets into a situation proves nothing about it. Every run counts them, and
// one that was never hit fails the run.
//
// Threads: one owner.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ordo::simulation {

#define ORDO_REACH_MARKS(MARK)                                                                  \
  MARK(crash_between_append_and_reply, "a crash after a publish was stored, before its reply")  \
  MARK(crash_before_append, "a crash before a publish was stored")                              \
  MARK(tail_lost, "a crash lost the newest commits, which were not synced")                     \
  MARK(crash_inside_a_step, "a crash after some of a step's effects")                           \
  MARK(ack_from_before_a_crash, "an ack of a delivery made before a crash")                     \
  MARK(unconfirmed_ack_undone, "a crash undid an unconfirmed ack: delivered again")             \
  MARK(confirmed_ack_kept, "a confirmed ack outlived a crash")                                  \
  MARK(late_ack_after_redelivery, "an ack of a delivery that was superseded")                   \
  MARK(ack_of_expired_not_redelivered, "an ack after its lease expired, before redelivery")     \
  MARK(ack_of_void_delivery, "an ack of a delivery that a rewind voided")                       \
  MARK(acks_together, "several deliveries acknowledged in one request")                         \
  MARK(double_ack, "the same delivery acknowledged twice")                                      \
  MARK(rewind, "a failure returned later outstanding messages of its key")                      \
  MARK(window_full, "as many of a key outstanding as its window allows")                        \
  MARK(redelivered_in_place, "redelivered while later messages of its key waited")              \
  MARK(backoff_blocks_key, "a head in back-off with messages behind it")                        \
  MARK(key_moved, "a key's next delivery went to another consumer")                             \
  MARK(lease_extended, "a deadline was moved on")                                               \
  MARK(late_deadline_change, "a deadline change of an expired lease")                           \
  MARK(dead_letter_done, "a message went to the dead-letter topic")                             \
  MARK(dead_letter_crash_before_store, "a crash with a dead letter under way, not stored")      \
  MARK(dead_letter_crash_after_store, "a crash after a dead letter was stored, before its end") \
  MARK(dead_letter_topic_gone, "a message should be dead-lettered, but the topic was gone")     \
  MARK(dead_letter_refused, "a dead letter refused for want of space")                          \
  MARK(attempts_after_crash, "a counted message redelivered after a crash")                     \
  MARK(attempt_not_counted, "delivered again under the same attempt number")                    \
  MARK(parked, "a key was parked")                                                              \
  MARK(resumed, "a parked or paused key was resumed")                                           \
  MARK(paused, "a key was paused")                                                              \
  MARK(head_skipped, "an operator skipped a head")                                              \
  MARK(head_dead_lettered, "an operator dead-lettered a head")                                  \
  MARK(skip_after, "a head was given up after skip_after")                                      \
  MARK(expired_by_retention, "a message expired unacknowledged")                                \
  MARK(spilled, "the tail of a key left memory")                                                \
  MARK(spill_read_back, "a spilled tail was read back")                                         \
  MARK(spill_erased, "spilled chunks were erased unread")                                       \
  MARK(spill_read_failed, "reading a spilled chunk failed")                                     \
  MARK(spill_write_failed, "a chunk could not be spilled")                                      \
  MARK(spill_lost, "a spilled chunk was not there when it was wanted")                          \
  MARK(cold_read, "messages were read from the store")                                          \
  MARK(cold_head_read, "a head was fetched alone")                                              \
  MARK(read_failed, "a read failed")                                                            \
  MARK(filtered, "a filter kept a message of a key out")                                        \
  MARK(credit_moved, "credit returned by one partition was granted to another")                 \
  MARK(credit_exhausted, "a partition asked for credit when none was free")                     \
  MARK(seek_with_leases, "a seek voided leases")                                                \
  MARK(seek_with_pause, "a seek of a subscription with a paused key")                           \
  MARK(seek_replays, "a seek brought settled messages back")                                    \
  MARK(seek_skips, "a seek settled open messages")                                              \
  MARK(seek_to_snapshot, "a seek to a snapshot")                                                \
  MARK(seek_crash, "a crash with a seek under way")                                             \
  MARK(seek_overlapping, "a seek was asked for while another was under way")                    \
  MARK(gap_after_failed_commit, "an append after offsets that never came to be")                \
  MARK(store_full, "a publish was refused by a full store")                                     \
  MARK(rows_refused, "rows were refused by a full store")                                       \
  MARK(store_failed_kept, "a commit failed although it was stored")                             \
  MARK(store_failed_lost, "a commit failed and was not stored")                                 \
  MARK(publish_refused, "a publish beyond the bounds was refused")                              \
  MARK(merged_commit, "one commit of several partitions")                                       \
  MARK(topic_retention_changed, "the retention of a topic was changed")                         \
  MARK(dead_letter_delivered, "a dead letter was delivered by its topic's subscription")        \
  MARK(trimmed, "messages nobody needed were trimmed")                                          \
  MARK(consumer_died, "a consumer died with leases")                                            \
  MARK(consumer_released, "a consumer closed and released its leases")                          \
  MARK(subscription_created, "a subscription was created while messages were published")        \
  MARK(subscription_deleted, "a subscription with leases was deleted")                          \
  MARK(blocked_keys_listed, "blocked keys were listed")                                         \
  MARK(peeked, "a message was looked at and not consumed")                                      \
  MARK(damaged, "a stored message lost a bit")                                                  \
  MARK(damage_read, "the store could not read a message")                                       \
  MARK(damage_kept_back, "a message was found damaged at delivery")                             \
  MARK(damage_blocks_key, "a key was listed as waiting for what cannot be read")                \
  MARK(damage_without_key, "what cannot be read was listed without its key")

enum class Mark : std::uint8_t {
#define ORDO_MARK(name, text) name,
  ORDO_REACH_MARKS(ORDO_MARK)
#undef ORDO_MARK
      count_,
};
inline constexpr std::size_t kMarkCount = static_cast<std::size_t>(Mark::count_);

inline constexpr std::array<std::string_view, kMarkCount> kMarkNames = {
#define ORDO_MARK(name, text) #name,
    ORDO_REACH_MARKS(ORDO_MARK)
#undef ORDO_MARK
};
inline constexpr std::array<std::string_view, kMarkCount> kMarkTexts = {
#define ORDO_MARK(name, text) text,
    ORDO_REACH_MARKS(ORDO_MARK)
#undef ORDO_MARK
};

class Marks {
 public:
  void hit(Mark mark) { ++counts_[static_cast<std::size_t>(mark)]; }
  std::uint64_t count(Mark mark) const { return counts_[static_cast<std::size_t>(mark)]; }
  void add(const Marks& other) {
    for (std::size_t i = 0; i < kMarkCount; ++i)
      counts_[i] += other.counts_[i];
  }
  std::vector<Mark> never_hit() const {
    std::vector<Mark> result;
    for (std::size_t i = 0; i < kMarkCount; ++i) {
      if (counts_[i] == 0) result.push_back(static_cast<Mark>(i));
    }
    return result;
  }

 private:
  std::array<std::uint64_t, kMarkCount> counts_{};
};

}  // namespace ordo::simulation

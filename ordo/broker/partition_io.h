// What goes into a partition and what comes out of it: the whole world of the broker's core.
//
//   partition.step(Publish{request, bodies}, now, effects);
//   for (Effect& effect : effects) perform(effect);     // the shell: threads, or the simulator
//   ...
//   partition.step(Committed{ticket, {}}, now, effects); // -> PublishReply, Deliver
//
// A partition does nothing itself. It says what is to be done, with a ticket where an answer is
// expected, and is told the outcome as another input. So an answer cannot precede its fsync: it is
// made by Committed. The shell performs effects in their order, and hands a partition its inputs
// one at a time; answers to tickets may come in any order, except that Committed comes in the
// order of the Commit effects of that partition.
//
// Threads: plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ordo/broker/config.h"
#include "ordo/broker/ids.h"
#include "ordo/broker/message.h"
#include "ordo/broker/store.h"
#include "ordo/core/result.h"

namespace ordo::broker {

class Filter;  // filter.h

// ------------------------------------------------------------------------------------ inputs

// One request's messages, validated, all of one key or without. Answer: PublishReply.
struct Publish {
  RequestNumber request;
  std::vector<MessageBody> messages;
};

// Outcome of a Commit effect.
struct Committed {
  TicketNumber ticket;
  std::optional<Error> error;
};

// A subscription as a partition needs it. Dead letters go to the partition of the dead-letter
// topic that their key belongs to (partition_of); without a key to any.
struct SubscriptionSetup {
  CursorNumber subscription;
  SubscriptionConfig config;
  std::shared_ptr<const Filter> filter;      // Null: everything matches.
  TopicNumber dead_letter_topic;             // Of config.dead_letter_policy.
  std::uint32_t dead_letter_partitions = 0;  // 0: there is no such topic (any more).
};

// A new subscription begins behind the last message. Answer: Attached, with the rows the broker
// commits together with the catalog's row. A recovered one is given to the constructor.
struct Attach {
  RequestNumber request;
  SubscriptionSetup setup;
};
// Changed settings; leases and places are kept. From push to pull and back the consumers are closed
// (ConsumerClosed), and their leases run on. Heads that should be dead-lettered while there is
// no such topic stay and say so, and go once there is one.
struct Reconfigure {
  SubscriptionSetup setup;
};
// Deleted or detached: its consumers are closed (ConsumerClosed with `reason`), its state is gone.
struct Detach {
  CursorNumber subscription;
  Error reason;
};

// A consumer begins with no credit. One that prefers to be asked (WantCredit) gets none unasked.
struct OpenConsumer {
  ConsumerNumber consumer;
  CursorNumber subscription;
  std::optional<std::chrono::nanoseconds>
      ack_deadline;  // Of a stream: overrides the subscription's.
  // Credit that is of no use comes back at once. Else, beside a consumer that is unlimited, it is
  // kept for a second after its last use: the two take turns.
  bool returns_at_once = false;
  // It sends what it gets to the endpoint of the subscription. Of a push subscription others are
  // closed at once, and such a one of any other.
  bool pushes = false;
};
// Room for so many messages and bytes, of one who has no credit here: it began without, or has said
// WantCredit or ReturnCredit. Bytes may overshoot by one message. When either is used up the credit
// is at its end: what is left of the other is void, and what was overshot is forgotten.
struct GrantCredit {
  ConsumerNumber consumer;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};
// What is delivered to it from now on has this deadline; what it holds keeps its own.
struct SetConsumerDeadline {
  ConsumerNumber consumer;
  std::chrono::nanoseconds ack_deadline{};
};
// No more deliveries to it; unused credit is not returned. Its leases run on, except: `release`
// frees all of them (a handler that closed with nack), `died` frees, about 1 s later and not for
// exactly-once, those that never got any ack or deadline change.
struct CloseConsumer {
  enum class How : std::uint8_t { keep_leases, release, died };
  ConsumerNumber consumer;
  How how = How::keep_leases;
};

// Answer: SettleReply after the acks are durable if `confirm`, else none.
struct Acknowledge {
  RequestNumber request;
  bool confirm = true;
  std::vector<AckId> ids;
};
// deadline 0 is a nack. Answer: SettleReply, at once, if `confirm`.
struct ModifyDeadline {
  RequestNumber request;
  bool confirm = true;
  std::vector<AckId> ids;
  std::chrono::nanoseconds deadline{};
  // Of a nack: so many of the last ids were handed to nobody. They come again, in their place and
  // at once, under the same attempt.
  std::size_t unseen = 0;
};

struct ReadDone {  // Outcome of a Read effect.
  TicketNumber ticket;
  Result<ReadBatches> result;
};
struct TimeFound {  // Outcome of a FindTime effect.
  TicketNumber ticket;
  Result<Offset> result;
};
struct SpillRead {  // Outcome of a ReadSpill effect.
  TicketNumber ticket;
  Result<std::string> result;
};

// Seek: leases of the subscription become void, keys start again in order. Answer: Sought.
struct SeekToTime {
  RequestNumber request;
  CursorNumber subscription;
  WallTime time;
};
struct SeekToSnapshot {
  RequestNumber request;
  CursorNumber subscription;
  CursorNumber snapshot;
};
// Freezes the subscription's position as `snapshot`; answer: SnapshotTaken, after it is durable
// (the catalog's row is committed by the broker after all partitions answered).
struct TakeSnapshot {
  RequestNumber request;
  CursorNumber subscription;
  CursorNumber snapshot;
};
struct DropSnapshot {
  CursorNumber snapshot;
};

// A dead letter of another partition (maybe this one): append it here and perform `settlement` of
// its source in one commit, then tell the source with DeadLetterDone.
struct TakeDeadLetter {
  PartitionAddress source;
  TicketNumber ticket;  // The source's.
  MessageBody message;  // With the attributes of its origin.
  CommitBatch settlement;
};
struct DeadLetterDone {
  TicketNumber ticket;
  std::optional<Error> error;  // not_found: the topic is gone. The head stays where it is.
};

// The topic's messages are kept for so long from now on, acknowledged or not. No answer.
struct RetainTopic {
  std::optional<std::chrono::nanoseconds> retention;
};

// Operator verbs on one key of a subscription. Answer: VerbReply, when what it did is durable.
//   pause             nothing more of the key is delivered until it is resumed, whatever happens
//   resume            ends a pause or a park; what cannot be read or dead-lettered is tried again
//   skip_head         gives the head up, and with an empty key all that cannot be read beside it
//   dead_letter_head  the head goes to the dead-letter topic; a key that is paused stays so
// An empty key: the oldest message without one that is out of service.
struct OperateKey {
  enum class Verb : std::uint8_t { pause, resume, skip_head, dead_letter_head };
  RequestNumber request;
  CursorNumber subscription;
  std::string key;
  Verb verb = Verb::pause;
};
enum class KeyOrder : std::uint8_t {
  longest_blocked,  // Those whose head has been the head for longest.
  deepest,          // Those with most waiting behind their head.
  hottest,          // Those delivered most often lately, also when nothing of them waits.
};
// Keys of a subscription that are known, and messages that cannot be read, the first in `order` of
// those looked at. Answer: KeysReply, which says where to go on: a look at a million keys is many
// inputs with others between them. A key that is there all the time is looked at once.
struct ListKeys {
  RequestNumber request;
  CursorNumber subscription;
  std::size_t count_max = 100;
  KeyOrder order = KeyOrder::longest_blocked;
  bool stuck_only = false;          // KeyFacts::is_stuck.
  std::uint32_t from = 0;           // What KeysReply::next said.
  std::uint32_t lanes_max = 4'096;  // Looked at by this input.
};
// What a subscription has not settled, in the order of the log from `from` on, as it is at this
// moment. Nothing is delivered, and nobody waits longer for it. Answer: PeekReply.
struct Peek {
  RequestNumber request;
  CursorNumber subscription;
  Offset from;                       // 0: the oldest.
  std::string key;                   // Those of this key only; empty: all.
  std::size_t messages_max = 100;    // That are returned.
  std::size_t bytes_max = 1u << 20;  // Of their bodies; one may overshoot.
  std::size_t offsets_max = 1'000;   // Looked at by this input.
};
// Answer: StatsReply.
struct AskStats {
  RequestNumber request;
  // Publish times that are not in memory are read first. Else the answer comes at once, and has no
  // oldest_unacked where it is not known.
  bool may_read = false;
};

using Input =
    std::variant<Publish, Committed, Attach, Reconfigure, Detach, OpenConsumer, GrantCredit,
                 SetConsumerDeadline, CloseConsumer, Acknowledge, ModifyDeadline, ReadDone,
                 TimeFound, SpillRead, SeekToTime, SeekToSnapshot, TakeSnapshot, DropSnapshot,
                 TakeDeadLetter, DeadLetterDone, RetainTopic, OperateKey, ListKeys, Peek, AskStats>;

// ------------------------------------------------------------------------------------ effects

// To the committer; comes back as Committed. Several may be under way; they are stored in order.
struct Commit {
  TicketNumber ticket;
  CommitBatch ops;
};
struct PublishReply {
  RequestNumber request;
  Result<MessageId> first_id;  // The others follow it by one each.
};
struct Delivery {
  Message message;
  AckId ack_id;
  std::uint32_t attempt = 0;  // 1 + nacks + expiries where a policy counts them, else 0.
};
// In the order in which the consumer must see them.
struct Deliver {
  ConsumerNumber consumer;
  std::vector<Delivery> deliveries;
};
// A message is not what was published. It is neither delivered nor dead-lettered, uses no credit,
// and waits, and its key with it, as one that cannot be read.
struct KeptBack {
  ConsumerNumber consumer;  // It was for this one; 0: for the dead-letter topic.
  Offset offset;
  MessageId id;
  std::string key;
};
enum class SettleOutcome : std::uint8_t {
  done,     // It counted (also: it had been settled by this very delivery before).
  stale,    // Not the newest delivery of its message, or of nothing that is known.
  not_now,  // It could not be stored; try again.
};
struct SettleReply {
  RequestNumber request;
  std::vector<SettleOutcome> outcomes;  // One for each id, in order.
};
struct Attached {
  RequestNumber request;
  CommitBatch rows;  // To be committed with the subscription's catalog row.
};
// There is something for this consumer, but it has no credit here. Said once, until it has some.
struct WantCredit {
  ConsumerNumber consumer;
};
// Nothing is left for this consumer: its unused credit, all of it, for use in other partitions.
// Not said of one that has 2^61 messages and as many bytes left: it is unlimited.
struct ReturnCredit {
  ConsumerNumber consumer;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};
// Leases of this consumer ended (ack, nack, expiry, void): so much is no longer outstanding.
struct ReleaseCredit {
  ConsumerNumber consumer;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};
struct ConsumerClosed {
  ConsumerNumber consumer;
  Error reason;
};
struct Read {  // Comes back as ReadDone.
  TicketNumber ticket;
  Offset from;
  std::size_t messages_max = 0;
  std::size_t bytes_max = 0;
};
struct FindTime {  // Comes back as TimeFound.
  TicketNumber ticket;
  WallTime time;
};
struct WriteSpill {  // No answer. Before any ReadSpill of the same key that follows.
  SpillKey key;
  std::string bytes;
};
struct ReadSpill {  // Comes back as SpillRead; the chunk is erased once it was read.
  TicketNumber ticket;
  SpillKey key;
};
struct EraseSpill {
  SpillKey first;
  std::uint64_t chunk_count = 0;
};
// To partition `to` as TakeDeadLetter; if that does not exist, back at once as DeadLetterDone with
// not_found.
struct SendDeadLetter {
  PartitionAddress to;
  TicketNumber ticket;
  MessageBody message;
  CommitBatch settlement;
};
// Back to the source, as DeadLetterDone.
struct AnswerDeadLetter {
  PartitionAddress source;
  TicketNumber ticket;
  std::optional<Error> error;
};
struct Sought {
  RequestNumber request;
  std::optional<Error> error;
};
struct SnapshotTaken {
  RequestNumber request;
  std::optional<Error> error;
  WallTime oldest_unacked;  // Publish time; WallTime::max() if everything is acknowledged.
};
struct VerbReply {
  RequestNumber request;
  std::optional<Error> error;  // not_found: no such key waits. failed_precondition: says why.
};

enum class BlockReason : std::uint8_t {
  in_flight,         // Delivered, waiting for its ack.
  backoff,           // Failed; waits for its next attempt.
  no_consumer,       // Ready, but nobody has room.
  parked,            // By policy after too many attempts.
  paused,            // By an operator.
  dead_letter_gone,  // Should be dead-lettered, but the topic is gone.
  storing,           // A commit must end first.
  data_loss,         // What is stored of it cannot be read.
  no_message,        // Nothing: all that is known of it is settled.
};
struct KeyFacts {
  std::string key;  // Empty: messages that cannot be read, so that their keys are not known.
  Offset head_offset;
  MessageId head_id;
  std::uint32_t attempts = 0;
  BlockReason reason = BlockReason::in_flight;
  // It is held or waits after a failure, its head has failed before, or has been the head for
  // kStuckTime. Else it is only busy.
  bool is_stuck = false;
  std::string last_failure;   // "nack", "deadline expired", "given back", ...; empty: none yet.
  TimePoint blocked_since;    // The head has been the head since then.
  std::uint64_t waiting = 0;  // Known messages behind the head.
  ConsumerNumber holder;      // While in flight.
  double per_second = 0;      // Deliveries lately, about; 0: not among the hottest.
};
inline constexpr std::chrono::seconds kStuckTime{60};
struct KeysReply {
  RequestNumber request;
  std::vector<KeyFacts> keys;
  std::uint32_t next = 0;  // 0: all have been looked at.
};

enum class PeekState : std::uint8_t {
  ready,      // It can be delivered.
  in_flight,  // Delivered, waiting for its ack.
  waiting,    // Behind others of its key.
  blocked,    // It is the next of its key, and `reason` says why it does not go.
};
struct PeekedMessage {
  Offset offset;
  Message message;  // None: it cannot be read.
  PeekState state = PeekState::ready;
  BlockReason reason = BlockReason::no_consumer;  // Valid when blocked.
  std::uint32_t attempts = 0;                     // Made so far, as far as is known.
  ConsumerNumber holder;                          // While in flight.
  bool is_unread = false;                         // The subscription has not come to it yet.
};
struct PeekReply {
  RequestNumber request;
  std::vector<PeekedMessage> messages;
  Offset next;  // Where to go on; 0: the end was reached.
  std::optional<Error> error;
};

// Conservation, per subscription and partition: routed = acked + dead_lettered + skipped + expired
// (retention) + waiting + leased; filtered ones are counted apart.
struct SubscriptionStats {
  CursorNumber subscription;
  std::uint64_t routed = 0;
  std::uint64_t filtered = 0;
  std::uint64_t acked = 0;
  std::uint64_t dead_lettered = 0;
  std::uint64_t skipped = 0;
  std::uint64_t expired = 0;
  std::uint64_t waiting = 0;
  std::uint64_t leased = 0;
  std::uint64_t deliveries = 0;
  std::uint64_t redeliveries = 0;
  std::uint64_t stale_acks = 0;
  std::uint64_t lanes = 0;  // Keys with something waiting or in flight.
  std::uint64_t parked_lanes = 0;
  std::uint64_t unread = 0;  // Stored, not yet looked at.
  std::uint64_t acked_intervals = 0;
  // When the oldest message that is not settled was published; none: all are, or it cannot be read.
  // One that a filter will keep out counts until the subscription has come to it.
  std::optional<WallTime> oldest_unacked;
};
struct PartitionStats {
  Offset first, end;
  std::uint64_t published = 0;
  std::uint64_t publish_failures = 0;
  std::uint64_t memory_bytes = 0;  // Lanes, leases, cached messages: what the bounds apply to.
  std::vector<SubscriptionStats> subscriptions;
};
struct StatsReply {
  RequestNumber request;
  PartitionStats stats;
};

using Effect = std::variant<Commit, PublishReply, Deliver, KeptBack, SettleReply, Attached,
                            WantCredit, ReturnCredit, ReleaseCredit, ConsumerClosed, Read, FindTime,
                            WriteSpill, ReadSpill, EraseSpill, SendDeadLetter, AnswerDeadLetter,
                            Sought, SnapshotTaken, VerbReply, KeysReply, PeekReply, StatsReply>;
using Effects = std::vector<Effect>;

}  // namespace ordo::broker

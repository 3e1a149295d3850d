#include "tests/simulation/describe.h"

#include <variant>

namespace ordo::simulation {
namespace {

using namespace broker;  // Every input and effect has a line here.

std::string text(std::uint64_t number) {
  return std::to_string(number);
}
template <class Number>
std::string text(const Number& number) requires requires {
  number.value();
}
{ return std::to_string(number.value()); }
std::string text(const AckId& id) {
  return "s#" + text(id.subscription) + "@" + text(id.offset) + " fence " +
         text(id.fence.value() >> 40) + "." + text(id.fence.value() & 0xff'ffff'ffff);
}
std::string text(const std::optional<Error>& error) {
  return error ? " error: " + error->message : " ok";
}
std::string text(std::chrono::nanoseconds time) {
  return std::to_string(time / std::chrono::milliseconds(1)) + " ms";
}

std::string text(const CommitBatch& ops) {
  std::string result;
  for (const CommitOp& op : ops) {
    if (const auto* append = std::get_if<Append>(&op)) {
      result += " append " + text(append->batch->first_offset) + "+" + text(append->batch->count());
    } else if (const auto* put = std::get_if<PutRow>(&op)) {
      result += " put s#" + text(put->key.cursor) + " kind " + text(std::uint64_t{put->key.kind}) +
                " @" + text(put->key.position) + put->key.text;
    } else if (const auto* erase = std::get_if<EraseRow>(&op)) {
      result += " erase s#" + text(erase->key.cursor) + " kind " +
                text(std::uint64_t{erase->key.kind}) + " @" + text(erase->key.position);
    } else if (const auto* rows = std::get_if<EraseRows>(&op)) {
      result += " erase all of s#" + text(rows->cursor);
    } else if (const auto* trim = std::get_if<Trim>(&op)) {
      result += " trim " + text(trim->before);
    } else {
      result += " other";
    }
  }
  return result;
}

template <class Ids>
std::string list(const Ids& ids) {
  std::string result;
  for (const AckId& id : ids)
    result += " " + text(id);
  return result;
}

struct InWords {
  std::string operator()(const Publish& i) const {
    return "publish #" + text(i.request) + " of " + text(i.messages.size()) + " key '" +
           std::string(i.messages.front().key()) + "'";
  }
  std::string operator()(const Committed& i) const {
    return "committed " + text(i.ticket) + text(i.error);
  }
  std::string operator()(const Attach& i) const { return "attach s#" + text(i.setup.subscription); }
  std::string operator()(const Reconfigure& i) const {
    return "reconfigure s#" + text(i.setup.subscription);
  }
  std::string operator()(const Detach& i) const { return "detach s#" + text(i.subscription); }
  std::string operator()(const OpenConsumer& i) const {
    return "open c" + text(i.consumer) + " of s#" + text(i.subscription);
  }
  std::string operator()(const GrantCredit& i) const {
    return "grant c" + text(i.consumer) + " " + text(i.messages) + " messages " + text(i.bytes) +
           " bytes";
  }
  std::string operator()(const SetConsumerDeadline& i) const {
    return "deadline of c" + text(i.consumer) + " " + text(i.ack_deadline);
  }
  std::string operator()(const CloseConsumer& i) const {
    return "close c" + text(i.consumer) + " how " + text(static_cast<std::uint64_t>(i.how));
  }
  std::string operator()(const Acknowledge& i) const {
    return "ack #" + text(i.request) + (i.confirm ? "" : " unconfirmed") + list(i.ids);
  }
  std::string operator()(const ModifyDeadline& i) const {
    return "deadline #" + text(i.request) + " " + text(i.deadline) + list(i.ids);
  }
  std::string operator()(const ReadDone& i) const {
    return "read " + text(i.ticket) + (i.result ? " to " + text(i.result->next) : " failed");
  }
  std::string operator()(const TimeFound& i) const {
    return "time found " + text(i.ticket) + (i.result ? " " + text(*i.result) : " failed");
  }
  std::string operator()(const SpillRead& i) const {
    return "spill read " + text(i.ticket) + (i.result ? " ok" : " failed");
  }
  std::string operator()(const SeekToTime& i) const {
    return "seek #" + text(i.request) + " s#" + text(i.subscription) + " to time";
  }
  std::string operator()(const SeekToSnapshot& i) const {
    return "seek #" + text(i.request) + " s#" + text(i.subscription) + " to snapshot " +
           text(i.snapshot);
  }
  std::string operator()(const TakeSnapshot& i) const { return "snapshot " + text(i.snapshot); }
  std::string operator()(const DropSnapshot& i) const { return "drop " + text(i.snapshot); }
  std::string operator()(const TakeDeadLetter& i) const {
    return "take dead letter " + text(i.ticket) + " of " + describe(i.source);
  }
  std::string operator()(const DeadLetterDone& i) const {
    return "dead letter done " + text(i.ticket) + text(i.error);
  }
  std::string operator()(const OperateKey& i) const {
    return "operate #" + text(i.request) + " s#" + text(i.subscription) + " key '" + i.key +
           "' verb " + text(static_cast<std::uint64_t>(i.verb));
  }
  std::string operator()(const ListKeys& i) const {
    return "keys of s#" + text(i.subscription) + " from " + text(std::uint64_t{i.from});
  }
  std::string operator()(const Peek& i) const {
    return "peek #" + text(i.request) + " s#" + text(i.subscription) + " from " + text(i.from);
  }
  std::string operator()(const RetainTopic&) const { return "retain the topic"; }
  std::string operator()(const AskStats&) const { return "stats"; }

  std::string operator()(const Commit& e) const {
    return "commit " + text(e.ticket) + ":" + text(e.ops);
  }
  std::string operator()(const PublishReply& e) const {
    return "published #" + text(e.request) +
           (e.first_id ? " id " + text(*e.first_id) : " error: " + e.first_id.error().message);
  }
  std::string operator()(const KeptBack& e) const {
    return "kept back from c" + text(e.consumer) + ": " + text(e.offset);
  }
  std::string operator()(const Deliver& e) const {
    std::string result = "deliver to c" + text(e.consumer) + ":";
    for (const Delivery& d : e.deliveries)
      result += " [" + text(d.ack_id) + " key '" + std::string(d.message.key()) + "' attempt " +
                text(std::uint64_t{d.attempt}) + "]";
    return result;
  }
  std::string operator()(const SettleReply& e) const {
    std::string result = "settled #" + text(e.request);
    for (const SettleOutcome outcome : e.outcomes)
      result += outcome == SettleOutcome::done    ? " done"
                : outcome == SettleOutcome::stale ? " stale"
                                                  : " not now";
    return result;
  }
  std::string operator()(const Attached& e) const { return "attached:" + text(e.rows); }
  std::string operator()(const WantCredit& e) const { return "want credit c" + text(e.consumer); }
  std::string operator()(const ReturnCredit& e) const {
    return "return credit c" + text(e.consumer) + " " + text(e.messages);
  }
  std::string operator()(const ReleaseCredit& e) const {
    return "release credit c" + text(e.consumer) + " " + text(e.messages) + " messages " +
           text(e.bytes) + " bytes";
  }
  std::string operator()(const ConsumerClosed& e) const { return "closed c" + text(e.consumer); }
  std::string operator()(const Read& e) const {
    return "read " + text(e.ticket) + " from " + text(e.from) + " max " + text(e.messages_max);
  }
  std::string operator()(const FindTime& e) const { return "find time " + text(e.ticket); }
  std::string operator()(const WriteSpill& e) const {
    return "write spill lane " + text(e.key.lane) + " chunk " + text(e.key.chunk);
  }
  std::string operator()(const ReadSpill& e) const {
    return "read spill " + text(e.ticket) + " lane " + text(e.key.lane) + " chunk " +
           text(e.key.chunk);
  }
  std::string operator()(const EraseSpill& e) const {
    return "erase spill lane " + text(e.first.lane) + " chunk " + text(e.first.chunk) + "+" +
           text(e.chunk_count);
  }
  std::string operator()(const SendDeadLetter& e) const {
    return "send dead letter " + text(e.ticket) + " to " + describe(e.to) + ":" +
           text(e.settlement);
  }
  std::string operator()(const AnswerDeadLetter& e) const {
    return "answer dead letter " + text(e.ticket) + text(e.error);
  }
  std::string operator()(const Sought& e) const {
    return "sought #" + text(e.request) + text(e.error);
  }
  std::string operator()(const SnapshotTaken& e) const { return "snapshot taken" + text(e.error); }
  std::string operator()(const VerbReply& e) const {
    return "operated #" + text(e.request) + text(e.error);
  }
  std::string operator()(const KeysReply& e) const {
    std::string result = "keys:";
    for (const KeyFacts& key : e.keys)
      result += " '" + key.key + "'@" + text(key.head_offset) + " reason " +
                text(static_cast<std::uint64_t>(key.reason));
    return result;
  }
  std::string operator()(const PeekReply& e) const {
    std::string result = "peeked #" + text(e.request) + text(e.error) + ":";
    for (const PeekedMessage& message : e.messages)
      result += " " + text(message.offset) + "/" + text(static_cast<std::uint64_t>(message.state));
    return result + " next " + text(e.next);
  }
  std::string operator()(const StatsReply&) const { return "stats"; }
};

}  // namespace

std::string describe(broker::PartitionAddress address) {
  return "t" + text(address.topic) + "/" + text(std::uint64_t{address.index});
}

std::string describe(const broker::Input& input) {
  return std::visit(InWords{}, input);
}

std::string describe(const broker::Effect& effect) {
  return std::visit(InWords{}, effect);
}

}  // namespace ordo::simulation

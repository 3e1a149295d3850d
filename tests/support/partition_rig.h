// PartitionRig: partitions over a MemoryStore for tests, driven by hand on one thread.
//
//   PartitionRig rig;
//   rig.subscribe(ordered());
//   rig.consume();                                  // unlimited credit
//   rig.publish("k", {"first", "second"});
//   EXPECT_EQ(rig.texts(), "first");                // delivered since the last look
//   rig.ack("first");
//   rig.pass(10s);                                  // time, and what is due then
//   rig.restart();                                  // what a crash leaves is what the store has
//
// Effects are performed at once, in order, unless commits or reads are held back. Topic 1 is the
// one under test, topic 2 takes dead letters; each has one partition.
//
// Threads: one owner.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ordo/broker/message_codec.h"
#include "ordo/broker/partition.h"
#include "ordo/broker/store_memory.h"

namespace ordo::broker {

inline constexpr CursorNumber kSubscription{7};
inline constexpr CursorNumber kDeadSubscription{8};
inline constexpr PartitionAddress kTopicPartition{TopicNumber(1), 0};
inline constexpr PartitionAddress kDeadPartition{TopicNumber(2), 0};

inline SubscriptionSetup ordered(CursorNumber number = kSubscription) {
  SubscriptionSetup setup;
  setup.subscription = number;
  setup.config.name = "projects/p/subscriptions/s";
  setup.config.enable_message_ordering = true;
  return setup;
}

inline SubscriptionSetup dead_lettering(std::uint32_t attempts_max) {
  SubscriptionSetup setup = ordered();
  setup.config.dead_letter_policy = DeadLetterPolicy{"projects/p/topics/dead", attempts_max};
  setup.config.failure_policy = FailurePolicy::dead_letter;
  setup.dead_letter_topic = TopicNumber(2);
  setup.dead_letter_partitions = 1;
  return setup;
}

// Parks after so many attempts. There is a topic for dead letters that operators may use.
inline SubscriptionSetup parking(std::uint32_t attempts) {
  SubscriptionSetup setup = ordered();
  setup.config.failure_policy = FailurePolicy::park;
  setup.config.park_attempts = attempts;
  setup.dead_letter_topic = TopicNumber(2);
  setup.dead_letter_partitions = 1;
  return setup;
}

// Nothing stays in memory but the last batch.
inline PartitionOptions cold() {
  PartitionOptions options;
  options.cache_bytes_max = 1;
  options.ready_bytes_max = 1;
  options.read_messages_max = 1;
  options.delivered_ahead = 1;
  return options;
}

inline std::string numbered(std::string text, int number) {
  text += std::to_string(number);
  return text;
}

class PartitionRig {
 public:
  struct Received {
    ConsumerNumber consumer;
    Delivery delivery;
    std::string text;
  };

  explicit PartitionRig(PartitionOptions options = {}, StoreFaults* faults = nullptr)
      : options_(options),
        faults_(faults) {
    open_store();
  }

  // --------------------------------------------------------------------------------- the world

  Now now() const { return now_; }

  // Calls `look` whenever something was due.
  void pass(
      std::chrono::nanoseconds time, const std::function<void()>& look = [] {}) {
    const TimePoint until = now_.steady + time;
    for (int rounds = 0;; ++rounds) {
      std::optional<TimePoint> due;
      for (auto& [address, partition] : partitions_) {
        const std::optional<TimePoint> its = partition->next_due();
        if (its && (!due || *its < *due)) due = its;
      }
      if (!due || *due > until) break;
      if (*due > now_.steady) rounds = 0;
      ORDO_CHECK(rounds < 1'000);  // What is due is done when it is due.
      move_to(std::max(*due, now_.steady));
      for (auto& [address, partition] : partitions_) {
        Effects effects;
        partition->run_due(now_, effects);
        queue(address, effects);
      }
      perform_all();
      look();
    }
    move_to(until);
  }

  void send(Input input, PartitionAddress to = kTopicPartition) {
    Effects effects;
    partitions_.at(to)->step(std::move(input), now_, effects);
    queue(to, effects);
    perform_all();
  }

  // Everything in memory is lost; what is under way and not committed too.
  void restart() {
    held_commits_.clear();
    held_reads_.clear();
    work_.clear();
    partitions_.clear();
    received_.clear();
    open_deliveries_.clear();
    wanting_.clear();
    open_store();
  }

  // Flips a bit of a stored message, or flips it back.
  bool damage(Offset offset) { return disk_->damage(kTopicPartition, offset); }

  // Changes a byte of what is read where it says so, behind the store's checks. Empty: no more.
  void garble(std::string text) { garbled_ = std::move(text); }

  void hold_commits(bool hold) {
    hold_commits_ = hold;
    while (!hold_commits_ && !held_commits_.empty())
      commit_one();
  }
  std::size_t held_commit_count() const { return held_commits_.size(); }
  void commit_one(std::optional<Error> error = std::nullopt) {
    auto [address, commit] = std::move(held_commits_.front());
    held_commits_.pop_front();
    finish_commit(address, std::move(commit), std::move(error));
    perform_all();
  }
  void hold_reads(bool hold) {
    hold_reads_ = hold;
    while (!hold_reads_ && !held_reads_.empty()) {
      auto [address, read] = std::move(held_reads_.front());
      held_reads_.pop_front();
      finish_read(address, read);
      perform_all();
    }
  }

  // --------------------------------------------------------------------------------- verbs

  void subscribe(SubscriptionSetup setup, PartitionAddress at = kTopicPartition) {
    setups_[at].push_back(setup);
    send(Attach{next_request(), setup}, at);
    auto attached = take<Attached>();
    CommitBatch rows = std::move(attached.front().rows);
    (void)store_->commit(rows);
  }

  RequestNumber publish(const std::string& key, const std::vector<std::string>& texts,
                        PartitionAddress to = kTopicPartition) {
    Publish publish{next_request(), {}};
    for (const std::string& text : texts) {
      NewMessage message;
      message.data = text;
      if (!key.empty()) message.ordering_key = key;
      publish.messages.push_back(std::move(encode_message(message).value()));
    }
    const RequestNumber request = publish.request;
    send(std::move(publish), to);
    return request;
  }

  ConsumerNumber consume(std::uint64_t messages = std::uint64_t{1} << 62,
                         std::uint64_t bytes = std::uint64_t{1} << 62,
                         CursorNumber subscription = kSubscription,
                         PartitionAddress at = kTopicPartition) {
    const ConsumerNumber consumer(++last_consumer_);
    credit_[consumer] = {messages, bytes};
    send(OpenConsumer{consumer, subscription, ack_deadline_}, at);
    if (messages >= std::uint64_t{1} << 62) grant(at, consumer);
    perform_all();
    return consumer;
  }
  // Of consumers opened from now on.
  void set_ack_deadline(std::chrono::nanoseconds deadline) { ack_deadline_ = deadline; }
  // More credit for a consumer, to be had when it is wanted.
  void allow(ConsumerNumber consumer, std::uint64_t messages, std::uint64_t bytes) {
    credit_[consumer].first += messages;
    credit_[consumer].second += bytes;
    if (wanting_.erase(consumer) > 0) grant(kTopicPartition, consumer);
    perform_all();
  }

  // By the newest delivery of a text. The outcome, if it is known by then.
  std::optional<SettleOutcome> ack(const std::string& text, bool confirm = true) {
    return ack_id(newest(text), confirm);
  }
  std::optional<SettleOutcome> ack_id(AckId id, bool confirm = true) {
    const RequestNumber request = next_request();
    send(Acknowledge{request, confirm, {id}}, address_of(id));
    return outcome(request);
  }
  std::optional<SettleOutcome> nack(const std::string& text) {
    return modify(text, std::chrono::seconds(0));
  }
  std::optional<SettleOutcome> modify(const std::string& text, std::chrono::nanoseconds deadline) {
    return modify_id(newest(text), deadline);
  }
  std::optional<SettleOutcome> modify_id(AckId id, std::chrono::nanoseconds deadline) {
    const RequestNumber request = next_request();
    send(ModifyDeadline{request, true, {id}, deadline}, address_of(id));
    return outcome(request);
  }
  AckId newest(const std::string& text) const { return open_deliveries_.at(text).ack_id; }

  std::optional<Error> operate(const std::string& key, OperateKey::Verb verb) {
    send(OperateKey{next_request(), kSubscription, key, verb});
    return take<VerbReply>().back().error;
  }
  SubscriptionStats stats(CursorNumber subscription = kSubscription) {
    for (const SubscriptionStats& stats : partition_stats().subscriptions) {
      if (stats.subscription == subscription) return stats;
    }
    return {};
  }
  PartitionStats partition_stats(PartitionAddress at = kTopicPartition) {
    send(AskStats{next_request()}, at);
    return take<StatsReply>().back().stats;
  }
  std::vector<KeyFacts> blocked_keys() {
    ListKeys list;
    return keys(list);
  }
  // In as many pieces as it takes.
  std::vector<KeyFacts> keys(ListKeys list) {
    std::vector<KeyFacts> all;
    list.subscription = kSubscription;
    do {
      list.request = next_request();
      send(list);
      KeysReply reply = take<KeysReply>().back();
      std::move(reply.keys.begin(), reply.keys.end(), std::back_inserter(all));
      list.from = reply.next;
    } while (list.from > 0);
    return all;
  }
  PeekReply peek(Peek peek = {}) {
    peek.request = next_request();
    peek.subscription = kSubscription;
    send(std::move(peek));
    return take<PeekReply>().back();
  }

  std::optional<KeyFacts> find_blocked(const std::string& key) {
    for (KeyFacts& blocked : blocked_keys()) {
      if (blocked.key == key) return std::move(blocked);
    }
    return std::nullopt;
  }

  // --------------------------------------------------------------------------------- to look at

  // What was delivered since the last look, with a space between.
  std::string texts() {
    std::string result;
    for (const Received& received : take_received())
      result += (result.empty() ? "" : " ") + received.text;
    return result;
  }
  std::vector<Received> take_received() { return std::exchange(received_, {}); }

  // Effects of one kind that nobody has taken, of all partitions.
  template <class T>
  std::vector<T> take() {
    std::vector<T> result;
    std::erase_if(others_, [&](Effect& effect) {
      if (!std::holds_alternative<T>(effect)) return false;
      result.push_back(std::move(std::get<T>(effect)));
      return true;
    });
    return result;
  }
  std::optional<SettleOutcome> outcome(RequestNumber request) {
    for (auto effect = others_.rbegin(); effect != others_.rend(); ++effect) {
      const auto* reply = std::get_if<SettleReply>(&*effect);
      if (reply == nullptr) continue;
      return reply->request == request ? std::optional(reply->outcomes.front()) : std::nullopt;
    }
    return std::nullopt;
  }

  RequestNumber next_request() { return RequestNumber(++last_request_); }
  SubscriptionSetup& setup(std::size_t index = 0) { return setups_[kTopicPartition].at(index); }
  void set_snapshots(std::vector<CursorNumber> snapshots) { snapshots_ = std::move(snapshots); }
  void set_topic_retention(std::chrono::nanoseconds time) { topic_retention_ = time; }
  Store& store() { return *store_; }
  const std::map<RowKey, std::string>& rows_at_start() const { return rows_at_start_; }
  std::uint64_t count_of_commits() const { return commit_count_; }
  std::uint64_t count_of_reads() const { return read_count_; }
  std::uint64_t count_of_spills() const { return spill_count_; }
  void refuse_dead_letters(std::optional<Error> error) { dead_letter_error_ = std::move(error); }

 private:
  static PartitionAddress address_of(const AckId& id) {
    return id.subscription == kDeadSubscription ? kDeadPartition : kTopicPartition;
  }

  void open_store() {
    store_ = std::make_unique<MemoryStore>(disk_, faults_);
    Recovered recovered = std::move(store_->recover().value());
    for (const PartitionAddress address : {kTopicPartition, kDeadPartition}) {
      PartitionStart start;
      start.address = address;
      start.start_number = recovered.start_number;
      if (recovered.partitions.contains(address)) start.log = recovered.partitions.at(address);
      start.topic_retention = topic_retention_;
      start.subscriptions = setups_[address];
      if (address == kTopicPartition) start.snapshots = snapshots_;
      start.rows = recovered.rows;
      partitions_[address] = std::make_unique<Partition>(std::move(start), options_, now_);
    }
    rows_at_start_ = std::move(recovered.rows);
  }

  void move_to(TimePoint time) {
    now_.wall += time - now_.steady;
    now_.steady = time;
  }

  void queue(PartitionAddress from, Effects& effects) {
    for (Effect& effect : effects)
      work_.emplace_back(from, std::move(effect));
  }

  void perform_all() {
    while (!work_.empty()) {
      auto [from, effect] = std::move(work_.front());
      work_.pop_front();
      std::visit([&, address = from](auto& it) { perform(address, it); }, effect);
    }
  }
  void step(PartitionAddress to, Input input) {
    Effects effects;
    partitions_.at(to)->step(std::move(input), now_, effects);
    queue(to, effects);
  }

  void perform(PartitionAddress from, Commit& commit) {
    if (hold_commits_ || !held_commits_.empty()) {  // They stay in order.
      held_commits_.emplace_back(from, std::move(commit));
    } else {
      finish_commit(from, std::move(commit), std::nullopt);
    }
  }
  void finish_commit(PartitionAddress from, Commit commit, std::optional<Error> error) {
    ++commit_count_;
    if (!error) {
      const Status stored = store_->commit(commit.ops);
      if (!stored) error = stored.error();
    }
    step(from, Committed{commit.ticket, std::move(error)});
  }
  void perform(PartitionAddress from, Read& read) {
    if (hold_reads_) {
      held_reads_.emplace_back(from, read);
    } else {
      finish_read(from, read);
    }
  }
  void finish_read(PartitionAddress from, const Read& read) {
    ++read_count_;
    auto result = store_->read(from, read.from, read.messages_max, read.bytes_max);
    for (std::size_t i = 0; result && !garbled_.empty() && i < result->batches.size(); ++i) {
      const std::size_t at = result->batches[i]->bytes.find(garbled_);
      if (at == std::string::npos) continue;
      auto changed = std::make_shared<MessageBatch>(*result->batches[i]);
      changed->bytes[at] ^= 1;
      result->batches[i] = std::move(changed);
    }
    step(from, ReadDone{read.ticket, std::move(result)});
  }
  void perform(PartitionAddress from, FindTime& find) {
    step(from, TimeFound{find.ticket, store_->find_time(from, find.time)});
  }
  void perform(PartitionAddress, WriteSpill& spill) {
    ++spill_count_;
    (void)store_->write_spill(spill.key, spill.bytes);
  }
  void perform(PartitionAddress from, ReadSpill& spill) {
    Result<std::string> bytes = store_->read_spill(spill.key);
    if (bytes) (void)store_->erase_spill(spill.key, 1);
    step(from, SpillRead{spill.ticket, std::move(bytes)});
  }
  void perform(PartitionAddress, EraseSpill& erase) {
    (void)store_->erase_spill(erase.first, erase.chunk_count);
  }
  void perform(PartitionAddress from, SendDeadLetter& send) {
    if (dead_letter_error_) {
      step(from, DeadLetterDone{send.ticket, dead_letter_error_});
      return;
    }
    step(send.to,
         TakeDeadLetter{from, send.ticket, std::move(send.message), std::move(send.settlement)});
  }
  void perform(PartitionAddress, AnswerDeadLetter& answer) {
    step(answer.source, DeadLetterDone{answer.ticket, answer.error});
  }
  void perform(PartitionAddress, Deliver& deliver) {
    for (Delivery& delivery : deliver.deliveries) {
      std::string text(decode_message(delivery.message.body())->data);
      open_deliveries_[text] = delivery;
      received_.push_back({deliver.consumer, std::move(delivery), std::move(text)});
    }
  }
  void grant(PartitionAddress at, ConsumerNumber consumer) {
    const auto [messages, bytes] = std::exchange(credit_[consumer], {0, 0});
    if (messages > 0) {
      step(at, GrantCredit{consumer, messages, bytes});
    } else {
      wanting_.insert(consumer);
    }
  }
  void perform(PartitionAddress from, WantCredit& want) { grant(from, want.consumer); }
  void perform(PartitionAddress, ReturnCredit& credit) {
    credit_[credit.consumer].first += credit.messages;
    credit_[credit.consumer].second += credit.bytes;
    others_.push_back(credit);
  }
  template <class Other>
  void perform(PartitionAddress, Other& other) {
    others_.push_back(std::move(other));
  }

  PartitionOptions options_;
  StoreFaults* faults_;
  std::shared_ptr<MemoryDisk> disk_ = std::make_shared<MemoryDisk>();
  std::unique_ptr<MemoryStore> store_;
  std::map<RowKey, std::string> rows_at_start_;
  Now now_{TimePoint(std::chrono::seconds(1'000)), WallTime(std::chrono::hours(24 * 365 * 50))};
  std::map<PartitionAddress, std::vector<SubscriptionSetup>> setups_;
  std::vector<CursorNumber> snapshots_;
  std::optional<std::chrono::nanoseconds> topic_retention_;
  std::map<PartitionAddress, std::unique_ptr<Partition>> partitions_;
  std::deque<std::pair<PartitionAddress, Effect>> work_;
  std::deque<std::pair<PartitionAddress, Commit>> held_commits_;
  std::deque<std::pair<PartitionAddress, Read>> held_reads_;
  bool hold_commits_ = false;
  bool hold_reads_ = false;
  std::string garbled_;
  std::optional<Error> dead_letter_error_;
  std::vector<Received> received_;
  std::map<std::string, Delivery> open_deliveries_;  // The newest of each text.
  std::vector<Effect> others_;
  std::optional<std::chrono::nanoseconds> ack_deadline_;
  std::map<ConsumerNumber, std::pair<std::uint64_t, std::uint64_t>> credit_;  // Not granted.
  std::set<ConsumerNumber> wanting_;
  std::uint64_t last_request_ = 0;
  std::uint64_t last_consumer_ = 0;
  std::uint64_t commit_count_ = 0;
  std::uint64_t read_count_ = 0;
  std::uint64_t spill_count_ = 0;
};

}  // namespace ordo::broker

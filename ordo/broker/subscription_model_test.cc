// Goal: whatever the order of publishes, acks, nacks, expiries, credit, commits, failures and
// restarts, a subscription in a partition delivers as a plain list of messages would allow.
// Method: random inputs through a PartitionRig with tiny bounds; every delivery and every outcome
// is judged by the list; at the end all is acknowledged and nothing may be left. The seed names the
// run.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/partition_rig.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;

// What a list of messages knows of one of them.
struct Known {
  std::string key;
  enum class State { waiting, leased, acked, unsure, settled } state = State::waiting;
  AckId newest;
  bool is_void = true;  // No delivery of it may be acknowledged.
  TimePoint deadline;
  ConsumerNumber consumer;
  std::uint32_t attempts = 0;
  std::vector<AckId> older;
};

class Model : public testing::TestWithParam<std::uint32_t> {
 protected:
  Model() : random_(GetParam()), rig_(make_options()) {
    setup_ = ordered();
    setup_.config.ordered_window = pick(2) == 0 ? 1 : 1 + pick(4);
    if (pick(3) == 0) setup_.config.retry_policy = RetryPolicy{1s, 4s};
    if (pick(3) == 0) {
      setup_ = dead_lettering(2 + pick(4));
      setup_.config.ordered_window = 1 + pick(3);
    }
    setup_.config.enable_exactly_once_delivery = pick(2) == 0;
    rig_.subscribe(setup_);
  }

  std::uint32_t pick(std::uint32_t count) {
    return std::uniform_int_distribution<std::uint32_t>(0, count - 1)(random_);
  }

  PartitionOptions make_options() {
    PartitionOptions options;
    if (pick(2) == 0) options.cache_bytes_max = options.ready_bytes_max = 1 + pick(300);
    if (pick(2) == 0) options.tail_bytes_max = pick(200);
    if (pick(2) == 0) options.spill_chunk_offsets = 1 + pick(3);
    if (pick(3) == 0) options.leases_max = 1 + pick(5);
    options.read_messages_max = 1 + pick(10);
    options.deliver_messages_max = 1 + pick(5);
    options.delivered_ahead = 1 + pick(4);
    return options;
  }

  void act() {
    switch (pick(16)) {
      case 0:
      case 1:
      case 2:
        publish();
        break;
      case 3:
      case 4:
      case 5:
        acknowledge(pick(3) > 0);
        break;
      case 6:
        nack();
        break;
      case 7:
        late_ack();
        break;
      case 8:
        extend();
        break;
      case 9:
        rig_.pass(std::chrono::milliseconds(pick(4'000)), [&] { look(); });
        break;
      case 10:
        open_consumer();
        break;
      case 11:
        close_consumer();
        break;
      case 12:
        allow();
        break;
      case 13:
        commits();
        break;
      case 14:
        rig_.hold_reads(pick(2) == 0);
        break;
      case 15:
        if (pick(12) == 0) restart();
        break;
    }
    look();
  }

  void publish() {
    const std::string key = pick(4) == 0 ? "" : numbered("k", static_cast<int>(pick(4)));
    std::vector<std::string> texts;
    for (std::uint32_t i = 1 + pick(4); i > 0; --i)
      texts.push_back(std::to_string(++last_text_));
    const RequestNumber request = rig_.publish(key, texts);
    for (const std::string& text : texts)
      sent_[request].push_back({text, key});
  }

  std::optional<std::string> any(Known::State state) {
    std::vector<std::string> found;
    for (const auto& [text, known] : known_) {
      if (known.state == state) found.push_back(text);
    }
    if (found.empty()) return std::nullopt;
    return found[pick(static_cast<std::uint32_t>(found.size()))];
  }

  void acknowledge(bool confirm) {
    const auto text = any(pick(8) == 0 ? Known::State::waiting : Known::State::leased);
    if (!text || known_[*text].newest == AckId{}) return;
    ack_id(*text, known_[*text].newest, confirm);
  }

  void ack_id(const std::string& text, AckId id, bool confirm) {
    Known& known = known_[text];
    const RequestNumber request = rig_.next_request();
    const bool counts =
        !known.is_void && id == known.newest &&
        (known.state == Known::State::leased || known.state == Known::State::waiting);
    const bool may_be_dead = may_be_given_up(known);
    acks_[request] = {text, counts, may_be_dead};
    if (counts) known.state = may_be_dead ? Known::State::unsure : Known::State::acked;
    rig_.send(Acknowledge{request, confirm, {id}});
  }

  // Nobody can tell whether it is on its way to the dead letters. A restart may cost an attempt.
  bool may_be_given_up(const Known& known) const {
    return known.state == Known::State::waiting && setup_.config.dead_letter_policy &&
           known.attempts + restarts_ >= setup_.config.dead_letter_policy->max_delivery_attempts;
  }

  void late_ack() {
    std::vector<std::pair<std::string, AckId>> found;
    for (const auto& [text, known] : known_) {
      for (const AckId& id : known.older)
        found.emplace_back(text, id);
    }
    if (found.empty()) return;
    const auto& [text, id] = found[pick(static_cast<std::uint32_t>(found.size()))];
    const Known before = known_[text];
    if (before.state == Known::State::unsure) return;
    ack_id(text, id, true);
    known_[text].state = before.state;
  }

  // This one and those behind it come back.
  void back(const std::string& text) {
    Known& known = known_[text];
    known.state = Known::State::waiting;
    for (const std::string& later : order_[known.key]) {
      Known& other = known_[later];
      if (std::stoi(later) <= std::stoi(text) || known.key.empty()) continue;
      if (other.state == Known::State::leased) other.state = Known::State::waiting;
      if (other.state == Known::State::waiting) other.is_void = true;
    }
  }

  void nack() {
    const auto text = any(Known::State::leased);
    if (!text) return;
    back(*text);
    EXPECT_EQ(rig_.modify_id(known_[*text].newest, 0s), SettleOutcome::done);
  }

  void extend() {
    const auto text = any(Known::State::leased);
    if (!text) return;
    const auto time = std::chrono::milliseconds(500 + pick(20'000));
    known_[*text].deadline = rig_.now().steady + time;
    EXPECT_EQ(rig_.modify_id(known_[*text].newest, time), SettleOutcome::done);
  }

  void open_consumer() {
    if (consumers_.size() >= 4) return;
    consumers_.insert(pick(2) == 0 ? rig_.consume() : rig_.consume(1 + pick(5), 1 + pick(200)));
  }
  void close_consumer() {
    if (consumers_.empty()) return;
    const ConsumerNumber consumer = *consumers_.begin();
    consumers_.erase(consumer);
    const bool release = pick(2) == 0;
    if (release) {
      std::set<int> held;
      for (const auto& [text, known] : known_) {
        if (known.state == Known::State::leased && known.consumer == consumer)
          held.insert(std::stoi(text));
      }
      for (const int text : held) {
        if (known_[std::to_string(text)].state == Known::State::leased) back(std::to_string(text));
      }
    }
    rig_.send(CloseConsumer{
        consumer, release ? CloseConsumer::How::release : CloseConsumer::How::keep_leases});
  }
  void allow() {
    if (!consumers_.empty()) rig_.allow(*consumers_.rbegin(), 1 + pick(5), 1 + pick(200));
  }
  void commits() {
    if (pick(2) == 0) rig_.hold_commits(pick(2) == 0);
    if (rig_.held_commit_count() == 0) return;
    if (pick(4) == 0) {
      rig_.commit_one(Error{ErrorCode::resource_exhausted, "no space"});
    } else {
      rig_.commit_one();
    }
  }

  void restart() {
    look();
    const bool holds = rig_.held_commit_count() > 0;
    rig_.restart();
    ++restarts_;
    rig_.hold_commits(false);
    rig_.hold_reads(false);
    consumers_.clear();
    // What was on its way may be stored or not: only what was answered is certain.
    for (const auto& [request, messages] : sent_) {
      EXPECT_TRUE(holds);
      for (const auto& [text, key] : messages)
        lost_.insert(text);
    }
    sent_.clear();
    acks_.clear();
    for (auto& [text, known] : known_) {
      if (known.state == Known::State::leased) known.state = Known::State::waiting;
      if (known.state == Known::State::acked) known.state = Known::State::unsure;
      known.is_void = true;
    }
  }

  // Judges everything that came out since the last look.
  void look() {
    for (const PublishReply& reply : rig_.take<PublishReply>()) {
      for (const auto& [text, key] : sent_[reply.request]) {
        if (!reply.first_id) {
          lost_.insert(text);
          continue;
        }
        known_[text].key = key;
        order_[key].push_back(text);
      }
      sent_.erase(reply.request);
    }
    expire();
    for (const PartitionRig::Received& received : rig_.take_received())
      judge(received);
    for (const SettleReply& reply : rig_.take<SettleReply>()) {
      const auto ack = acks_.find(reply.request);
      if (ack == acks_.end()) continue;
      const SettleOutcome outcome = reply.outcomes.at(0);
      Known& known = known_[ack->second.text];
      const bool may_be_done = ack->second.counts || known.state == Known::State::settled ||
                               known.state == Known::State::acked;
      if (outcome == SettleOutcome::done) {
        EXPECT_TRUE(may_be_done) << ack->second.text;
        if (ack->second.counts) known.state = Known::State::settled;
      } else if (!ack->second.may_be_dead) {
        EXPECT_FALSE(ack->second.counts) << ack->second.text;
      }
      acks_.erase(ack);
    }
  }

  // Leases whose time was over by now, in the order of their deadlines.
  void expire() {
    for (;;) {
      std::string first;
      for (const auto& [text, known] : known_) {
        if (known.state != Known::State::leased || known.deadline > rig_.now().steady) continue;
        if (first.empty() || known.deadline < known_[first].deadline) first = text;
      }
      if (first.empty()) return;
      back(first);
    }
  }

  void judge(const PartitionRig::Received& received) {
    const std::string& text = received.text;
    ASSERT_FALSE(lost_.contains(text)) << "a failed publish was delivered: " << text;
    ASSERT_TRUE(known_.contains(text)) << text;
    Known& known = known_[text];
    ASSERT_NE(known.state, Known::State::settled) << "confirmed, delivered again: " << text;
    ASSERT_NE(known.state, Known::State::acked) << "acked, delivered again: " << text;
    ASSERT_NE(known.state, Known::State::leased) << "two leases of " << text;
    if (!known.key.empty()) judge_order(received, known);
    Fence& last_fence = last_fences_[known.key.empty() ? text : known.key];
    ASSERT_GT(received.delivery.ack_id.fence, last_fence);
    last_fence = received.delivery.ack_id.fence;
    if (setup_.config.dead_letter_policy) {
      // The same again if it came back with another, or with a stream that was lost.
      ASSERT_GE(received.delivery.attempt, known.attempts) << text;
      ASSERT_LE(received.delivery.attempt, setup_.config.dead_letter_policy->max_delivery_attempts);
    }
    known.attempts = received.delivery.attempt;
    if (known.newest != AckId{}) known.older.push_back(known.newest);
    known.newest = received.delivery.ack_id;
    known.is_void = false;
    known.state = Known::State::leased;
    known.deadline = rig_.now().steady + setup_.config.ack_deadline;
    known.consumer = received.consumer;
  }

  void judge_order(const PartitionRig::Received& received, const Known& known) {
    std::uint32_t outstanding = 0;
    for (const std::string& earlier : order_[known.key]) {
      if (earlier == received.text) break;
      Known& other = known_[earlier];
      if (may_be_given_up(other)) other.state = Known::State::settled;  // A dead letter, then.
      ASSERT_NE(other.state, Known::State::waiting) << earlier << " overtaken by " << received.text;
      if (other.state != Known::State::leased) continue;
      ++outstanding;
      ASSERT_EQ(other.consumer, received.consumer) << "a key on two consumers";
    }
    ASSERT_LT(outstanding, setup_.config.ordered_window) << received.text;
  }

  void drain() {
    rig_.hold_commits(false);
    rig_.hold_reads(false);
    rig_.consume();
    look();
    for (int round = 0; round < 2'000; ++round) {
      std::vector<std::string> leased;
      for (const auto& [text, known] : known_) {
        if (known.state == Known::State::leased) leased.push_back(text);
      }
      for (const std::string& text : leased) {
        if (known_[text].state == Known::State::leased) ack_id(text, known_[text].newest, true);
        look();
        if (HasFatalFailure()) return;
      }
      rig_.pass(1s, [&] { look(); });
      const SubscriptionStats stats = rig_.stats();
      if (leased.empty() && stats.waiting == 0 && stats.leased == 0 && stats.unread == 0) return;
    }
    FAIL() << "does not drain";
  }

  struct Sent {
    std::string text;
    std::string key;
  };
  struct Ack {
    std::string text;
    bool counts = false;
    bool may_be_dead = false;
  };

  std::mt19937 random_;
  PartitionRig rig_;
  SubscriptionSetup setup_;
  int last_text_ = 0;
  std::uint32_t restarts_ = 0;
  std::map<RequestNumber, std::vector<Sent>> sent_;
  std::map<RequestNumber, Ack> acks_;
  std::map<std::string, Known> known_;
  std::map<std::string, std::vector<std::string>> order_;  // Of each key.
  std::set<std::string> lost_;
  std::set<ConsumerNumber> consumers_;
  std::map<std::string, Fence> last_fences_;  // Of each key, or message without.
};

TEST_P(Model, DeliversAsAPlainListWould) {
  for (int i = 0; i < 400; ++i) {
    act();
    if (HasFailure()) return;
  }
  drain();
  if (HasFailure()) return;
  const SubscriptionStats stats = rig_.stats();
  EXPECT_EQ(stats.routed, stats.acked + stats.dead_lettered + stats.skipped + stats.expired);
  EXPECT_EQ(stats.lanes, 0u);
  EXPECT_EQ(stats.acked_intervals, 0u);
  rig_.pass(5s);
  EXPECT_EQ(rig_.partition_stats().first, rig_.partition_stats().end);
}
INSTANTIATE_TEST_SUITE_P(Seeds, Model, testing::Range(0u, 400u));

}  // namespace
}  // namespace ordo::broker

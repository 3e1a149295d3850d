// Many publishers and consumers at once, some of them nacking, some too late, over restarts and a
// store that is full from time to time: what they saw is judged by tools/check_history.py.
#include "tests/support/broker_history.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/broker.h"
#include "ordo/broker/store_memory.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;
using broker::MessageId;
using testing_support::Background;
using testing_support::BrokerHistory;
using testing_support::BrokerHistoryMeta;
using testing_support::eventually;
using testing_support::Watchdog;
using Outcome = BrokerHistory::Outcome;

const std::string kTopic = "projects/test/topics/orders";
const std::string kOrdered = "projects/test/subscriptions/ordered";
const std::string kFree = "projects/test/subscriptions/free";

// Full for one commit in twenty that appends.
class SometimesFull : public broker::StoreFaults {
 public:
  explicit SometimesFull(unsigned seed) : random_(seed) {}
  Commit on_commit(const broker::CommitBatch& batch) override {
    for (const broker::CommitOp& op : batch) {
      if (std::holds_alternative<broker::Append>(op))
        return random_() % 20 == 0 ? Commit::full : Commit::none;
    }
    return Commit::none;
  }

 private:
  std::mt19937 random_;
};

std::string ack_name(const ReceivedMessage& message) {
  const broker::AckId& id = message.ack_id();
  return std::to_string(id.partition)
      .append("-")
      .append(std::to_string(id.offset.value()))
      .append("-")
      .append(std::to_string(id.fence.value()));
}

class BrokerHistories : public testing::TestWithParam<unsigned> {
 protected:
  static constexpr int kPublishers = 3;
  static constexpr int kRequests = 60;  // Of each, in each life of the broker.
  static constexpr int kLives = 3;

  static BrokerHistoryMeta meta() {
    BrokerHistoryMeta meta;
    meta.subscriptions["S"] = {};
    meta.subscriptions["U"] = {.ordered = false};
    return meta;
  }

  void open() {
    auto opened = Broker::open(std::make_unique<broker::MemoryStore>(disk_, &faults_),
                               {.callers_run = GetParam() % 2 == 0});
    ASSERT_TRUE(opened) << opened.error().message;
    broker_ = std::move(*opened);
  }
  void create() {
    ASSERT_TRUE(broker_->create_topic({.name = kTopic, .partitions = 1 + GetParam() % 4}));
    broker::SubscriptionConfig ordered{.name = kOrdered, .topic = kTopic};
    ordered.enable_message_ordering = true;
    ASSERT_TRUE(broker_->create_subscription(ordered));
    ASSERT_TRUE(broker_->create_subscription({.name = kFree, .topic = kTopic}));
  }

  void publish(int life, int publisher) {
    std::mt19937 random(GetParam() * 100 + static_cast<unsigned>(life * 10 + publisher));
    const std::string name =
        std::string("p").append(std::to_string(publisher)).append("l").append(std::to_string(life));
    std::uint64_t next = 0;
    for (int request = 0; request < kRequests; ++request) {
      std::vector<broker::NewMessage> messages(1 + random() % 3);
      std::vector<BrokerHistory::Published> published;
      const std::string key = random() % 4 == 0 ? "" : "k" + std::to_string(random() % 6);
      const std::string batch = name + "-" + std::to_string(request);
      for (broker::NewMessage& message : messages) {
        const std::string uid = name + "-" + std::to_string(next);
        message.data = uid;
        if (!key.empty()) message.ordering_key = key;
        published.push_back({name, "T", uid, key, next++, batch, published.size()});
      }
      const std::int64_t begin = BrokerHistory::now();
      const auto ids = broker_->publish(kTopic, messages);
      const Outcome outcome = ids ? Outcome::ok
                              : ids.error().code == ErrorCode::resource_exhausted
                                  ? Outcome::fail
                                  : Outcome::unknown;
      for (std::size_t i = 0; i < published.size(); ++i)
        history_.published(published[i], begin, outcome, ids ? (*ids)[i].value() : 0);
    }
  }

  AsyncHandler handler(const std::string& subscription, const std::string& client) {
    return [this, subscription, client](const ReceivedMessage& message, const AckHandle& handle) {
      const std::string ack = ack_name(message);
      history_.delivered(subscription, client, std::string(message.data()),
                         std::string(message.key()), ack, 0, message.id().value());
      const std::int64_t begin = BrokerHistory::now();
      if (message.fence().value() % 7 == 0) {
        history_.settled("nack", subscription, ack, begin, Outcome::unknown);
        handle.nack();
        return;
      }
      if (message.fence().value() % 3 == 0) {
        history_.settled("ack", subscription, ack, begin, Outcome::unknown);
        handle.ack();
        return;
      }
      handle.ack([this, subscription, ack, begin](const Status& status) {
        history_.settled("ack", subscription, ack, begin,
                         status ? Outcome::ok
                         : status.error().code == ErrorCode::failed_precondition
                             ? Outcome::fail
                             : Outcome::unknown);
      });
    };
  }

  bool is_empty() {
    for (const std::string& name : {kOrdered, kFree}) {
      const auto stats = broker_->subscription_stats(name);
      if (!stats || stats->waiting + stats->leased + stats->unread > 0) return false;
    }
    return true;
  }

  void live(int life, bool drains) {
    std::vector<Subscriber> subscribers;
    const SubscriberOptions options{.handlers = 2, .outstanding_messages_max = 20};
    for (int client = 0; client < 2; ++client) {
      const std::string name = std::string("c").append(std::to_string(client));
      auto ordered = broker_->subscribe_async(kOrdered, handler("S", name), options);
      auto free = broker_->subscribe_async(kFree, handler("U", name), options);
      ASSERT_TRUE(ordered && free);
      subscribers.push_back(std::move(*ordered));
      subscribers.push_back(std::move(*free));
    }
    {
      std::vector<std::unique_ptr<Background>> publishers;
      for (int publisher = 0; publisher < kPublishers; ++publisher)
        publishers.push_back(
            std::make_unique<Background>([this, life, publisher] { publish(life, publisher); }));
    }
    if (drains) {
      ASSERT_TRUE(eventually([&] { return is_empty(); }));
    }
    for (Subscriber& subscriber : subscribers)
      EXPECT_TRUE(subscriber.close(CloseHow::drain, TimePoint::max()));
  }

  Watchdog watchdog_{"BrokerHistories"};
  SometimesFull faults_{GetParam()};
  std::shared_ptr<broker::MemoryDisk> disk_ = std::make_shared<broker::MemoryDisk>();
  BrokerHistory history_{meta()};
  std::unique_ptr<Broker> broker_;
};

TEST_P(BrokerHistories, WhatClientsSeeKeepsEveryPromise) {
  open();
  create();
  for (int life = 0; life < kLives; ++life) {
    live(life, life + 1 == kLives);
    if (life + 1 == kLives) break;
    history_.happened("crash");
    broker_.reset();
    open();
    history_.happened("start");
  }
  history_.end();
  EXPECT_TRUE(history_.write("broker_" + std::to_string(GetParam())));
}
INSTANTIATE_TEST_SUITE_P(Seeds, BrokerHistories, testing::Range(1u, 13u));

}  // namespace
}  // namespace ordo

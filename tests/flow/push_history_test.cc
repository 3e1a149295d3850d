// What an endpoint sees of a push subscription that is published to by many, while it refuses some
// messages and hangs up on others, and while the broker is closed and opened again.
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/adapters/push_http/courier.h"
#include "ordo/broker.h"
#include "ordo/broker/store_memory.h"
#include "tests/support/broker_history.h"
#include "tests/support/push_receiver.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;
using testing_support::Background;
using testing_support::BrokerHistory;
using testing_support::BrokerHistoryMeta;
using testing_support::eventually;
using testing_support::PushedRequest;
using testing_support::PushPeer;
using testing_support::PushReceiver;
using testing_support::Watchdog;
using Outcome = BrokerHistory::Outcome;

const std::string kTopic = "projects/test/topics/orders";
const std::string kPushed = "projects/test/subscriptions/pushed";

class PushHistories : public testing::TestWithParam<unsigned> {
 protected:
  static constexpr int kPublishers = 2;
  static constexpr int kRequests = 30;  // Of each, in each life of the broker.
  static constexpr int kLives = 3;

  static BrokerHistoryMeta meta() {
    BrokerHistoryMeta meta;
    meta.subscriptions["S"] = {};
    return meta;
  }

  void open() {
    auto opened = Broker::open(std::make_unique<broker::MemoryStore>(disk_, nullptr),
                               {.callers_run = GetParam() % 2 == 0});
    ASSERT_TRUE(opened) << opened.error().message;
    broker_ = std::move(*opened);
    push_http::CourierOptions options;
    options.window.size_first = 1 + GetParam() % 5;
    options.window.pause_min = 1ms;
    options.window.pause_max = 20ms;
    courier_ = std::make_unique<push_http::Courier>(*broker_, options);
    ASSERT_TRUE(courier_->start());
  }
  void create() {
    ASSERT_TRUE(broker_->create_topic({.name = kTopic, .partitions = 1 + GetParam() % 4}));
    broker::SubscriptionConfig pushed{.name = kPushed, .topic = kTopic};
    pushed.enable_message_ordering = true;
    pushed.push = broker::PushConfig{.endpoint = receiver_.url()};
    pushed.retry_policy = broker::RetryPolicy{1ms, 10ms};
    ASSERT_TRUE(broker_->create_subscription(pushed));
  }

  // What is decided is written down before the other side can know it.
  void take(const PushedRequest& request, PushPeer& peer) {
    const std::uint64_t number = ++delivery_count_;
    const std::string ack = "d" + std::to_string(number);
    history_.delivered("S", "endpoint", request.data, request.key, ack, 0, std::stoull(request.id));
    const bool is_accepted = number % 5 != 0 && number % 7 != 0;
    history_.settled(is_accepted ? "ack" : "nack", "S", ack, BrokerHistory::now(),
                     Outcome::unknown);
    if (number % 7 == 0) {
      peer.close();
    } else {
      peer.answer(is_accepted ? 200 : 503);
    }
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
      for (std::size_t i = 0; i < published.size(); ++i) {
        history_.published(published[i], begin, ids ? Outcome::ok : Outcome::unknown,
                           ids ? (*ids)[i].value() : 0);
      }
    }
  }

  bool is_empty() {
    const auto stats = broker_->subscription_stats(kPushed);
    return stats && stats->waiting + stats->leased + stats->unread == 0;
  }

  void live(int life, bool drains) {
    {
      std::vector<std::unique_ptr<Background>> publishers;
      for (int publisher = 0; publisher < kPublishers; ++publisher)
        publishers.push_back(
            std::make_unique<Background>([this, life, publisher] { publish(life, publisher); }));
    }
    if (drains) {
      ASSERT_TRUE(eventually([&] { return is_empty(); }, 60s));
    }
    EXPECT_TRUE(courier_->close(TimePoint::max()));
  }

  Watchdog watchdog_{"PushHistories"};
  BrokerHistory history_{meta()};
  std::atomic<std::uint64_t> delivery_count_{0};
  PushReceiver receiver_{
      [this](const PushedRequest& request, PushPeer& peer) { take(request, peer); }};
  std::shared_ptr<broker::MemoryDisk> disk_ = std::make_shared<broker::MemoryDisk>();
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<push_http::Courier> courier_;
};

TEST_P(PushHistories, WhatAnEndpointSeesKeepsEveryPromise) {
  open();
  create();
  for (int life = 0; life < kLives; ++life) {
    live(life, life + 1 == kLives);
    if (life + 1 == kLives) break;
    history_.happened("crash");
    courier_.reset();
    broker_.reset();
    open();
    history_.happened("start");
  }
  history_.end();
  EXPECT_TRUE(history_.write("push_" + std::to_string(GetParam())));
}
INSTANTIATE_TEST_SUITE_P(Seeds, PushHistories, testing::Range(1u, 6u));

}  // namespace
}  // namespace ordo

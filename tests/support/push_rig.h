// PushRig: a broker with one topic, and a courier that sends to wherever a test says.
//
//   PushRig rig;
//   rig.create(receiver.url());
//   rig.publish("k", {"first", "second"});
//   ASSERT_TRUE(rig.await_acked(2));
//   rig.restart();                             // what was stored is all there is
//
// Threads: the test's. Time is the real one: sockets know no other.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/adapters/push_http/courier.h"
#include "ordo/broker.h"
#include "ordo/broker/store_memory.h"
#include "tests/support/waiting.h"

namespace ordo::testing_support {

class PushRig {
 public:
  static inline const std::string kTopic = "projects/test/topics/orders";
  static inline const std::string kPushed = "projects/test/subscriptions/pushed";

  explicit PushRig(push_http::CourierOptions options = {}) : options_(std::move(options)) {
    open();
  }
  PushRig(const PushRig&) = delete;
  PushRig& operator=(const PushRig&) = delete;

  void open() {
    auto opened = Broker::open(std::make_unique<broker::MemoryStore>(disk_, nullptr));
    ASSERT_TRUE(opened) << opened.error().message;
    broker_ = std::move(*opened);
    start_courier();
  }
  void start_courier() {
    courier_ = std::make_unique<push_http::Courier>(*broker_, options_);
    const Status started = courier_->start();
    ASSERT_TRUE(started) << started.error().message;
  }
  void restart() {
    courier_.reset();
    broker_.reset();
    open();
  }
  void replace_courier() {
    courier_.reset();
    start_courier();
  }

  // The topic, and an ordered push subscription that fails fast: of a retry policy of milliseconds.
  // There is plenty of time for an answer, unless the test sets a deadline.
  void create(const std::string& url, broker::SubscriptionConfig config = {}) {
    ASSERT_TRUE(broker_->create_topic({.name = kTopic}));
    config.name = kPushed;
    config.topic = kTopic;
    config.enable_message_ordering = true;
    if (config.ack_deadline == broker::SubscriptionConfig().ack_deadline)
      config.ack_deadline = std::chrono::seconds(600);
    if (!config.push) config.push.emplace();
    config.push->endpoint = url;
    if (!config.retry_policy)
      config.retry_policy =
          broker::RetryPolicy{std::chrono::milliseconds(1), std::chrono::milliseconds(20)};
    const auto created = broker_->create_subscription(config);
    ASSERT_TRUE(created) << created.error().message;
  }
  // Without an endpoint: back to pull.
  void aim_at(const std::string& url) {
    broker::SubscriptionConfig config{.name = kPushed};
    if (!url.empty()) config.push = broker::PushConfig{.endpoint = url};
    const auto updated = broker_->update_subscription(config, {"push_config"});
    ASSERT_TRUE(updated) << updated.error().message;
  }
  void publish(const std::string& key, const std::vector<std::string>& data) {
    std::vector<broker::NewMessage> messages;
    for (const std::string& text : data) {
      messages.push_back({.data = text});
      if (!key.empty()) messages.back().ordering_key = key;
    }
    const auto ids = broker_->publish(kTopic, messages);
    ASSERT_TRUE(ids) << ids.error().message;
  }

  std::uint64_t acked() {
    const auto stats = broker_->subscription_stats(kPushed);
    return stats ? stats->acked : 0;
  }
  bool await_acked(std::uint64_t count) {
    return eventually([&] { return acked() >= count; });
  }

  Broker& broker() { return *broker_; }
  push_http::Courier& courier() { return *courier_; }

 private:
  const push_http::CourierOptions options_;
  std::shared_ptr<broker::MemoryDisk> disk_ = std::make_shared<broker::MemoryDisk>();
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<push_http::Courier> courier_;
};

}  // namespace ordo::testing_support

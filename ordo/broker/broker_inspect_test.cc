// Looking at a broker's keys and messages over all partitions, and acting on keys.
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/broker/broker.h"
#include "ordo/broker/store_memory.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using broker::KeyFacts;
using broker::KeyOrder;
using broker::NewMessage;
using broker::PeekedMessage;
using broker::PeekState;
using testing_support::eventually;
using testing_support::Watchdog;
using Verb = broker::OperateKey::Verb;

const std::string kTopic = "projects/p/topics/orders";
const std::string kSubscription = "projects/p/subscriptions/billing";

class BrokerInspectTest : public testing::Test {
 protected:
  BrokerInspectTest() {
    auto opened = Broker::open(
        std::make_unique<broker::MemoryStore>(std::make_shared<broker::MemoryDisk>(), nullptr));
    broker_ = std::move(*opened);
    EXPECT_TRUE(broker_->create_topic({.name = kTopic}));
    EXPECT_TRUE(broker_->create_subscription(
        {.name = kSubscription, .topic = kTopic, .enable_message_ordering = true}));
  }

  void publish(const std::string& key, const std::vector<std::string>& texts) {
    std::vector<NewMessage> messages;
    for (const std::string& text : texts) {
      NewMessage message{.data = text};
      if (!key.empty()) message.ordering_key = key;
      messages.push_back(std::move(message));
    }
    ASSERT_TRUE(broker_->publish(kTopic, messages));
  }
  static std::string name(const std::string& text, int number) {
    return text + std::to_string(number);
  }
  // All pages.
  std::vector<PeekedMessage> peek_all(PeekOptions options) {
    std::vector<PeekedMessage> all;
    for (int pages = 0; pages < 1'000; ++pages) {
      Result<PeekPage> page = broker_->peek(kSubscription, options);
      EXPECT_TRUE(page);
      EXPECT_LE(page->messages.size(), options.messages_max);
      std::move(page->messages.begin(), page->messages.end(), std::back_inserter(all));
      options.page_token = page->next_page_token;
      if (options.page_token.empty()) break;
    }
    return all;
  }

  Watchdog watchdog_{"BrokerInspectTest"};
  std::unique_ptr<Broker> broker_;
};

TEST_F(BrokerInspectTest, AllMessagesAreSeenOnceAndThoseOfAKeyInOrder) {
  for (int i = 0; i < 200; ++i)
    publish(name("key-", i % 7), {name("m", i)});
  for (const std::size_t messages_max : {1u, 13u, 1'000u}) {
    const std::vector<PeekedMessage> all = peek_all({.messages_max = messages_max});
    ASSERT_EQ(all.size(), 200u) << messages_max;
    std::map<std::string, broker::MessageId> last;
    for (const PeekedMessage& message : all) {
      broker::MessageId& before = last[std::string(message.message.key())];
      EXPECT_LT(before, message.message.id());
      before = message.message.id();
    }
  }
}

TEST_F(BrokerInspectTest, OfAKeyThatNobodyHasComeToTheFirstIsReadyAndTheOthersWait) {
  publish("a", {"1", "2"});
  publish("b", {"3"});
  publish("", {"4", "5"});
  std::map<PeekState, int> counts;
  for (const PeekedMessage& message : peek_all({}))
    ++counts[message.state];
  EXPECT_EQ(counts[PeekState::ready], 4);
  EXPECT_EQ(counts[PeekState::waiting], 1);
}

TEST_F(BrokerInspectTest, OneKeyAloneAndFewBytesAtATime) {
  for (int i = 0; i < 30; ++i)
    publish(name("key-", i % 3), {name("m", i)});
  EXPECT_EQ(peek_all({.key = "key-1"}).size(), 10u);
  EXPECT_EQ(peek_all({.key = "key-1", .bytes_max = 1}).size(), 10u);
  EXPECT_TRUE(peek_all({.key = "nobody"}).empty());
}

TEST_F(BrokerInspectTest, BadLimitsAndTokensAreRefused) {
  const auto code = [&](const PeekOptions& options) {
    const Result<PeekPage> page = broker_->peek(kSubscription, options);
    return page ? ErrorCode::unknown : page.error().code;
  };
  EXPECT_EQ(code({.messages_max = 0}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.messages_max = 1'001}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.bytes_max = 0}), ErrorCode::invalid_argument);
  for (const char* token : {"x", "1", "1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17.18.19", "-", "."})
    EXPECT_EQ(code({.page_token = token}), ErrorCode::invalid_argument) << token;
  EXPECT_EQ(broker_->list_keys(kSubscription, {.count_max = 0}).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(broker_->peek("projects/p/subscriptions/none").error().code, ErrorCode::not_found);
}

TEST_F(BrokerInspectTest, AStuckKeyIsFoundAndSkippingItsHeadFreesIt) {
  for (int i = 0; i < 20; ++i)
    publish(name("good-", i), {"fine"});
  publish("bad", {"poison", "after"});
  auto subscriber = broker_->subscribe(kSubscription, [](const ReceivedMessage& message) {
    return message.data() == "poison" ? HandlerAnswer::nack : HandlerAnswer::ack;
  });
  ASSERT_TRUE(subscriber);
  KeyListOptions options{.stuck_only = true};
  std::vector<KeyFacts> keys;
  ASSERT_TRUE(eventually([&] {
    keys = broker_->list_keys(kSubscription, options).value();
    return keys.size() == 1 && keys[0].waiting == 1;
  }));
  EXPECT_EQ(keys[0].key, "bad");
  EXPECT_EQ(keys[0].last_failure, "nack");
  EXPECT_GT(keys[0].head_id, broker::MessageId());
  // Paused first, so that the head is not in flight when it is skipped.
  ASSERT_TRUE(broker_->operate_key(kSubscription, "bad", Verb::pause));
  ASSERT_TRUE(
      eventually([&] { return !!broker_->operate_key(kSubscription, "bad", Verb::skip_head); }));
  ASSERT_TRUE(broker_->operate_key(kSubscription, "bad", Verb::resume));
  EXPECT_TRUE(eventually([&] { return broker_->subscription_stats(kSubscription)->acked == 21; }));
  EXPECT_TRUE(eventually([&] { return broker_->list_keys(kSubscription, options)->empty(); }));
}

TEST_F(BrokerInspectTest, TheDeepestKeysOfAllPartitionsComeFirst) {
  for (int key = 0; key < 40; ++key) {
    std::vector<std::string> texts(static_cast<std::size_t>(key + 1), "m");
    publish(name("key-", key), texts);
  }
  // Whoever takes them keeps them.
  auto stream = broker_->open_stream(kSubscription, {}, {.deliver = [](auto&&) {}});
  ASSERT_TRUE(stream);
  std::vector<KeyFacts> keys;
  ASSERT_TRUE(eventually([&] {
    keys = broker_->list_keys(kSubscription, {.count_max = 3, .order = KeyOrder::deepest}).value();
    return keys.size() == 3 && keys[0].waiting == 39 && keys[1].waiting == 38 &&
           keys[2].waiting == 37;
  }));
  EXPECT_EQ(keys[0].key, "key-39");
}

TEST_F(BrokerInspectTest, WhatIsAskedOfAClosedBrokerIsUnavailable) {
  broker_->close(system_clock().now());
  EXPECT_EQ(broker_->peek(kSubscription).error().code, ErrorCode::unavailable);
  EXPECT_EQ(broker_->list_keys(kSubscription).error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace ordo

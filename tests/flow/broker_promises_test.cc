// Every promise of a broker about an ordered subscription, by its number, on every store.
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/flow/broker_rig.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;
using broker::BlockReason;
using broker::KeyFacts;
using broker::OperateKey;
using broker::SettleOutcome;
using broker::SubscriptionConfig;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using testing_support::BrokerRig;
using testing_support::data_of;
using testing_support::eventually;
using testing_support::kSubscription;
using testing_support::kTopic;
using testing_support::StoreKind;
using testing_support::Watchdog;

const std::string kDeadTopic = "projects/test/topics/dead-letters";
const std::string kDeadSubscription = "projects/test/subscriptions/undertaker";

class BrokerPromises : public testing::TestWithParam<StoreKind> {
 protected:
  // A subscription that dead-letters after `attempts`, and one that gets the dead letters.
  void create_with_dead_letters(std::uint32_t attempts) {
    broker::TopicConfig topic;
    topic.name = kDeadTopic;
    ASSERT_TRUE(rig_.broker().create_topic(topic));
    SubscriptionConfig dead;
    dead.name = kDeadSubscription;
    dead.topic = kDeadTopic;
    dead.enable_message_ordering = true;
    ASSERT_TRUE(rig_.broker().create_subscription(dead));
    SubscriptionConfig config;
    config.dead_letter_policy = broker::DeadLetterPolicy{kDeadTopic, attempts};
    rig_.create(config);
  }
  // Pulls and nacks the next message until it does not come again; how often it came.
  std::uint32_t nack_until_gone(const std::string& data) {
    std::uint32_t count = 0;
    while (true) {
      const ReceivedMessage message = rig_.pull_one();
      if (message.data() != data) {
        EXPECT_EQ(rig_.nack(message), SettleOutcome::done);
        return count;
      }
      ++count;
      EXPECT_EQ(message.attempt(), count);
      EXPECT_EQ(rig_.nack(message), SettleOutcome::done);
    }
  }

  Watchdog watchdog_{"BrokerPromises"};
  BrokerRig rig_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Stores, BrokerPromises,
                         testing::Values(StoreKind::memory, StoreKind::rocksdb),
                         testing_support::name_of);

TEST_P(BrokerPromises, Promise1MessagesOfAKeyAreDeliveredInTheOrderTheirPublishesWereAccepted) {
  rig_.create();
  rig_.publish("k", {"1", "2", "3"});
  rig_.publish("k", {"4"});
  rig_.publish("k", {"5", "6"});
  EXPECT_THAT(rig_.drain(), ElementsAre("1", "2", "3", "4", "5", "6"));
}

TEST_P(BrokerPromises, Promise2TheNextMessageOfAKeyComesOnlyAfterTheFirstIsAcknowledged) {
  rig_.create();
  rig_.publish("a", {"a1", "a2"});
  rig_.publish("b", {"b1", "b2"});
  const auto first = rig_.pull();
  EXPECT_THAT(data_of(first), UnorderedElementsAre("a1", "b1"));
  EXPECT_THAT(rig_.pull(), IsEmpty());

  for (const ReceivedMessage& message : first)
    EXPECT_EQ(rig_.ack(message), SettleOutcome::done);
  EXPECT_THAT(data_of(rig_.pull()), UnorderedElementsAre("a2", "b2"));
}

TEST_P(BrokerPromises, Promise2MessagesWithoutAKeyAreNeverBlockedAndNeverBlock) {
  rig_.create();
  rig_.publish("k", {"k1", "k2"});
  ASSERT_THAT(data_of(rig_.pull()), ElementsAre("k1"));
  rig_.publish(std::nullopt, {"u1", "u2", "u3"});
  EXPECT_THAT(data_of(rig_.pull()), UnorderedElementsAre("u1", "u2", "u3"));
  rig_.publish("other", {"o1"});
  EXPECT_THAT(data_of(rig_.pull()), ElementsAre("o1"));
}

TEST_P(BrokerPromises, Promise3AfterANackTheSameMessageComesNext) {
  rig_.create();
  rig_.publish("k", {"1", "2"});
  for (int round = 0; round < 3; ++round) {
    const ReceivedMessage first = rig_.pull_one();
    EXPECT_EQ(first.data(), "1");
    EXPECT_EQ(rig_.nack(first), SettleOutcome::done);
  }
  EXPECT_THAT(rig_.drain(), ElementsAre("1", "2"));
}

TEST_P(BrokerPromises, Promise3AfterAnExpiredDeadlineTheSameMessageComesNext) {
  rig_.create();
  rig_.publish("k", {"1", "2"});
  EXPECT_EQ(rig_.pull_one().data(), "1");
  rig_.advance(999ms);
  EXPECT_THAT(rig_.pull(), IsEmpty());
  rig_.advance(1ms);
  EXPECT_THAT(rig_.drain(), ElementsAre("1", "2"));
}

TEST_P(BrokerPromises, Promise3AfterALostStreamTheSameMessageComesNext) {
  rig_.create();
  rig_.publish("k", {"1", "2"});
  std::atomic<int> delivered = 0;
  auto stream = rig_.broker().open_stream(kSubscription, {.messages_max = 10, .ack_deadline = 600s},
                                          {.deliver = [&](std::vector<broker::Delivery>&& batch) {
                                            delivered += static_cast<int>(batch.size());
                                          }});
  ASSERT_TRUE(stream);
  ASSERT_TRUE(eventually([&] { return delivered == 1; }));

  stream->close(broker::CloseConsumer::How::died);
  rig_.advance(2s);
  EXPECT_THAT(rig_.drain(), ElementsAre("1", "2"));
}

TEST_P(BrokerPromises, Promise3AfterARestartTheSameMessageComesNext) {
  rig_.create();
  rig_.publish("k", {"1", "2", "3"});
  EXPECT_EQ(rig_.ack(rig_.pull_one()), SettleOutcome::done);
  EXPECT_EQ(rig_.pull_one().data(), "2");
  rig_.restart();
  EXPECT_THAT(rig_.drain(), ElementsAre("2", "3"));
}

TEST_P(BrokerPromises, Promise3LaterMessagesWaitDuringTheBackOffToo) {
  SubscriptionConfig config;
  config.retry_policy = broker::RetryPolicy{5s, 600s};
  rig_.create(config);
  rig_.publish("k", {"1", "2"});
  rig_.publish("other", {"o"});
  std::vector<ReceivedMessage> got = rig_.pull();
  ASSERT_EQ(got.size(), 2u);
  if (got[0].data() != "1") std::swap(got[0], got[1]);
  EXPECT_EQ(rig_.nack(got[0]), SettleOutcome::done);
  EXPECT_EQ(rig_.ack(got[1]), SettleOutcome::done);
  EXPECT_THAT(rig_.pull(), IsEmpty());
  rig_.advance(5s);
  EXPECT_THAT(rig_.drain(), ElementsAre("1", "2"));
}

TEST_P(BrokerPromises, Promise4ALateAckFreesNothing) {
  rig_.create();
  rig_.publish("k", {"1", "2"});
  const ReceivedMessage late = rig_.pull_one();
  rig_.advance(1s);
  const ReceivedMessage again = rig_.pull_one();
  ASSERT_EQ(again.data(), "1");

  EXPECT_EQ(rig_.ack(late), SettleOutcome::stale);
  EXPECT_THAT(rig_.pull(), IsEmpty()) << "the second must wait for the newest delivery's ack";
  EXPECT_EQ(rig_.ack(again), SettleOutcome::done);
  EXPECT_THAT(data_of(rig_.pull()), ElementsAre("2"));
}

TEST_P(BrokerPromises, Promise4AnAckOfAnExpiredLeaseCountsWhileNothingWasRedelivered) {
  rig_.create();
  rig_.publish("k", {"1", "2"});
  const ReceivedMessage first = rig_.pull_one();
  rig_.advance(5s);
  EXPECT_EQ(rig_.ack(first), SettleOutcome::done);
  EXPECT_THAT(rig_.drain(), ElementsAre("2"));
}

TEST_P(BrokerPromises, Promise5BlockedKeysNeverHoldUpOthers) {
  rig_.create();
  constexpr int kBlocked = 100;
  for (int key = 0; key < kBlocked; ++key)
    rig_.publish("blocked" + std::to_string(key), std::vector<std::string>(100, "x"));
  EXPECT_EQ(rig_.pull(1000).size(), static_cast<std::size_t>(kBlocked));  // Their heads; not acked.
  rig_.publish("free", {"1", "2"});
  const ReceivedMessage first = rig_.pull_one();
  EXPECT_EQ(first.data(), "1");
  EXPECT_EQ(rig_.ack(first), SettleOutcome::done);
  EXPECT_EQ(rig_.pull_one().data(), "2");
}

TEST_P(BrokerPromises, Promise6EverySubscriptionGetsItsOwnOrderedCopy) {
  rig_.create();
  const std::string other = "projects/test/subscriptions/shipping";
  rig_.subscribe(other);
  rig_.publish("k", {"1", "2"});
  EXPECT_EQ(rig_.pull_one().data(), "1");                 // Blocks its key here,
  EXPECT_THAT(rig_.drain(other), ElementsAre("1", "2"));  // and not there.
}

TEST_P(BrokerPromises, Promise7WhatWasPublishedIsThereAfterARestart) {
  rig_.create();
  rig_.publish("k", {"1", "2"});
  rig_.publish(std::nullopt, {"u"});
  rig_.restart();
  EXPECT_THAT(rig_.drain(), UnorderedElementsAre("1", "2", "u"));
}

TEST_P(BrokerPromises, Promise7AnAcknowledgedAckIsNotUndoneByARestart) {
  rig_.create();
  rig_.publish("k", {"1", "2"});
  EXPECT_EQ(rig_.ack(rig_.pull_one()), SettleOutcome::done);
  rig_.restart();
  EXPECT_THAT(rig_.drain(), ElementsAre("2"));
  rig_.restart();
  EXPECT_THAT(rig_.drain(), IsEmpty());
}

TEST_P(BrokerPromises, Promise7ARequestsMessagesAreStoredAllOrNone) {
  rig_.create();
  const auto mixed = rig_.broker().publish(
      kTopic, {{.data = "1", .ordering_key = "a"}, {.data = "2", .ordering_key = "b"}});
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, ErrorCode::invalid_argument);
  const auto empty = rig_.broker().publish(kTopic, {{.data = "1"}, {.data = ""}});
  ASSERT_FALSE(empty);
  EXPECT_THAT(rig_.drain(), IsEmpty());
}

TEST_P(BrokerPromises, Promise8MessageIdsRiseWithinAKeyAlsoAcrossRestarts) {
  rig_.create();
  std::set<broker::MessageId> ids;
  broker::MessageId last;
  for (int round = 0; round < 4; ++round) {
    for (const broker::MessageId& id : rig_.publish("k", {"1", "2"})) {
      EXPECT_GT(id, last);
      last = id;
      ids.insert(id);
    }
    for (const broker::MessageId& id : rig_.publish("other", {"3"}))
      ids.insert(id);
    rig_.restart();
  }
  EXPECT_EQ(ids.size(), 12u);
}

TEST_P(BrokerPromises, Promise8FencesRiseWithEveryDeliveryOfAKeyAlsoAcrossRestarts) {
  rig_.create();
  rig_.publish("k", {"1", "2"});
  broker::Fence last;
  for (int round = 0; round < 6; ++round) {
    const ReceivedMessage message = rig_.pull_one();
    EXPECT_GT(message.fence(), last);
    last = message.fence();
    if (round % 2 == 0) {
      EXPECT_EQ(rig_.nack(message), SettleOutcome::done);
    } else {
      rig_.restart();
    }
  }
}

TEST_P(BrokerPromises, Promise9ADeadLetterIsSentOnceWithItsKeyAndThenTheKeyGoesOn) {
  create_with_dead_letters(5);
  ASSERT_TRUE(rig_.broker().publish(
      kTopic, {{.data = "bad", .attributes = {{"colour", "red"}}, .ordering_key = "k"}}));
  rig_.publish("k", {"good"});
  EXPECT_EQ(nack_until_gone("bad"), 5u);

  const ReceivedMessage dead = rig_.pull_one(kDeadSubscription);
  EXPECT_EQ(dead.data(), "bad");
  EXPECT_EQ(dead.key(), "k");
  EXPECT_EQ(dead.attribute("colour"), "red");
  EXPECT_EQ(dead.attribute("CloudPubSubDeadLetterSourceDeliveryCount"), "5");
  EXPECT_EQ(dead.attribute("CloudPubSubDeadLetterSourceSubscription"), "billing");
  EXPECT_EQ(rig_.ack(dead, kDeadSubscription), SettleOutcome::done);
  rig_.restart();
  EXPECT_THAT(rig_.drain(kDeadSubscription), IsEmpty());
  EXPECT_THAT(rig_.drain(), ElementsAre("good"));
}

TEST_P(BrokerPromises, Promise9AttemptsAreCountedAcrossRestarts) {
  create_with_dead_letters(5);
  rig_.publish("k", {"bad"});
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    const ReceivedMessage message = rig_.pull_one();
    EXPECT_EQ(message.attempt(), attempt);
    EXPECT_EQ(rig_.nack(message), SettleOutcome::done);
  }
  rig_.restart();
  const ReceivedMessage message = rig_.pull_one();
  EXPECT_GE(message.attempt(), 4u);
  EXPECT_LE(message.attempt(), 5u);
}

TEST_P(BrokerPromises, Promise9WithoutItsTopicTheKeyStaysBlockedAndSaysSo) {
  create_with_dead_letters(5);
  rig_.publish("k", {"bad", "good"});
  ASSERT_TRUE(rig_.broker().delete_topic(kDeadTopic));
  for (int attempt = 0; attempt < 5; ++attempt)
    EXPECT_EQ(rig_.nack(rig_.pull_one()), SettleOutcome::done);
  rig_.advance(5s);
  EXPECT_THAT(rig_.pull(), IsEmpty());
  auto blocked = rig_.broker().blocked_keys(kSubscription);
  ASSERT_TRUE(blocked);
  ASSERT_EQ(blocked->size(), 1u);
  EXPECT_EQ(blocked->front().key, "k");
  EXPECT_EQ(blocked->front().reason, BlockReason::dead_letter_gone);
  EXPECT_EQ(blocked->front().waiting, 1u);
}

TEST_P(BrokerPromises, ParkedKeysWaitInOrderUntilSomebodyDecides) {
  SubscriptionConfig config;
  config.labels = {{"ordo-failure-policy", "park"}, {"ordo-park-attempts", "2"}};
  rig_.create(config);
  rig_.publish("k", {"1", "2", "3"});
  for (int attempt = 0; attempt < 2; ++attempt)
    EXPECT_EQ(rig_.nack(rig_.pull_one()), SettleOutcome::done);
  EXPECT_THAT(rig_.pull(), IsEmpty());
  rig_.restart();
  EXPECT_THAT(rig_.pull(), IsEmpty());

  ASSERT_TRUE(rig_.broker().operate_key(kSubscription, "k", OperateKey::Verb::skip_head));
  EXPECT_THAT(rig_.drain(), ElementsAre("2", "3"));
}

TEST_P(BrokerPromises, AnExactlyOnceSubscriptionRefusesStaleAcks) {
  SubscriptionConfig config;
  config.enable_exactly_once_delivery = true;
  rig_.create(config);
  rig_.publish("k", {"1"});
  const ReceivedMessage late = rig_.pull_one();
  rig_.advance(1s);
  const ReceivedMessage newest = rig_.pull_one();
  EXPECT_EQ(rig_.ack(late), SettleOutcome::stale);
  EXPECT_EQ(rig_.modify(late, 10s), SettleOutcome::stale);
  EXPECT_EQ(rig_.ack(newest), SettleOutcome::done);
}

TEST_P(BrokerPromises, AWindowAboveOneRewindsTheWholeKey) {
  SubscriptionConfig config;
  config.labels = {{"ordo-ordered-window", "3"}};
  rig_.create(config);
  rig_.publish("k", {"1", "2", "3", "4"});
  const auto got = rig_.pull();
  ASSERT_THAT(data_of(got), ElementsAre("1", "2", "3"));
  EXPECT_EQ(rig_.ack(got[0]), SettleOutcome::done);
  EXPECT_EQ(rig_.nack(got[1]), SettleOutcome::done);
  EXPECT_EQ(rig_.ack(got[2]), SettleOutcome::stale) << "its ack id was voided by the rewind";
  EXPECT_THAT(rig_.drain(), ElementsAre("2", "3", "4"));
}

}  // namespace
}  // namespace ordo

// What a user meets, line by line, in one process: order, one at a time, redelivery, batching, many
// keys.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/flow/broker_rig.h"
#include "tests/support/gates.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::BrokerRig;
using testing_support::data_of;
using testing_support::eventually;
using testing_support::Gates;
using testing_support::kSubscription;
using testing_support::kTopic;
using testing_support::StoreKind;
using testing_support::Watchdog;

class BrokerAcceptance : public testing::TestWithParam<StoreKind> {
 protected:
  Watchdog watchdog_{"BrokerAcceptance"};
  BrokerRig rig_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Stores, BrokerAcceptance,
                         testing::Values(StoreKind::memory, StoreKind::rocksdb),
                         testing_support::name_of);

TEST_P(BrokerAcceptance, ThreeMessagesOfOneKeyArriveAsFirstSecondThird) {
  rig_.create();
  std::mutex mutex;
  std::vector<std::string> seen;
  auto subscriber = rig_.broker().subscribe(kSubscription, [&](const ReceivedMessage& message) {
    const std::lock_guard lock(mutex);
    seen.emplace_back(message.data());
    return HandlerAnswer::ack;
  });
  ASSERT_TRUE(subscriber);
  rig_.publish("k", {"first"});
  rig_.publish("k", {"second"});
  rig_.publish("k", {"third"});
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return seen.size() == 3;
  }));
  EXPECT_THAT(seen, ElementsAre("first", "second", "third"));
}

TEST_P(BrokerAcceptance, FiveMessagesOfOneKeyAreNeverHandledTwoAtOnce) {
  rig_.create();
  Gates<HandlerAnswer> gates;
  auto subscriber = rig_.broker().subscribe(kSubscription, [&](const ReceivedMessage& message) {
    return gates.enter(std::stoull(std::string(message.data())));
  });
  ASSERT_TRUE(subscriber);
  rig_.publish("k", {"0", "1", "2", "3", "4"});
  for (std::uint64_t item = 0; item < 5; ++item) {
    ASSERT_TRUE(gates.await(item));
    EXPECT_FALSE(gates.has_started(item + 1));
    gates.open(item, HandlerAnswer::ack);
  }
  ASSERT_TRUE(gates.await_left_count(5));
  EXPECT_EQ(gates.inside_peak(), 1u);
}

TEST_P(BrokerAcceptance, ThreeKeysAreHandledMoreThanOneAtOnce) {
  rig_.create();
  Gates<HandlerAnswer> gates;
  auto subscriber = rig_.broker().subscribe(kSubscription, [&](const ReceivedMessage& message) {
    return gates.enter(std::stoull(std::string(message.data())));
  });
  ASSERT_TRUE(subscriber);
  rig_.publish("a", {"0"});
  rig_.publish("b", {"1"});
  rig_.publish("c", {"2"});
  EXPECT_TRUE(gates.await_inside(3));
  gates.open_all(HandlerAnswer::ack);
  ASSERT_TRUE(gates.await_left_count(3));
}

TEST_P(BrokerAcceptance, FirstNotAcknowledgedWithADeadlineOfOneSecondComesAgainBeforeSecond) {
  rig_.create();
  rig_.publish("k", {"first", "second"});
  EXPECT_EQ(rig_.pull_one().data(), "first");
  rig_.advance(1s);
  const ReceivedMessage again = rig_.pull_one();
  EXPECT_EQ(again.data(), "first");
  rig_.ack(again);
  EXPECT_EQ(rig_.pull_one().data(), "second");
}

TEST_P(BrokerAcceptance, BesideABlockedKeyAMessageWithoutAKeyArrivesAtOnce) {
  rig_.create();
  rig_.publish("k", {"1", "2"});
  EXPECT_EQ(rig_.pull_one().data(), "1");
  rig_.publish(std::nullopt, {"free"});
  EXPECT_THAT(data_of(rig_.pull()), ElementsAre("free"));
}

TEST_P(BrokerAcceptance, TwoSubscriptionsGetEverythingInOrderIndependently) {
  rig_.create();
  const std::string other = "projects/test/subscriptions/other";
  rig_.subscribe(other);
  rig_.publish("k", {"1", "2", "3"});
  EXPECT_THAT(rig_.drain(), ElementsAre("1", "2", "3"));
  EXPECT_THAT(rig_.drain(other), ElementsAre("1", "2", "3"));
}

TEST_P(BrokerAcceptance, TopicsAndSubscriptionsOfAllProjectsAreThereByName) {
  Broker& broker = rig_.broker();
  for (const char* project : {"b", "a"}) {
    const std::string of = std::string("projects/") + project;
    ASSERT_TRUE(broker.create_topic({.name = of + "/topics/ttt"}));
    ASSERT_TRUE(broker.create_subscription(
        {.name = of + "/subscriptions/sss", .topic = of + "/topics/ttt"}));
  }
  EXPECT_THAT(broker.topic_names(), ElementsAre("projects/a/topics/ttt", "projects/b/topics/ttt"));
  const std::vector<broker::SubscriptionConfig> all = broker.subscription_configs();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "projects/a/subscriptions/sss");
  EXPECT_EQ(all[0].topic, "projects/a/topics/ttt");
  EXPECT_EQ(all[1].name, "projects/b/subscriptions/sss");
}

TEST_P(BrokerAcceptance, AWindowMayBeSetForAllSubscriptionsThatDoNotSay) {
  BrokerOptions options;
  options.ordered_window = 3;
  BrokerRig rig(GetParam(), options);
  rig.create();
  EXPECT_EQ(rig.broker().get_subscription(kSubscription)->ordered_window, 3u);
  options.ordered_window = 0;
  EXPECT_EQ(check_options(options).error().message,
            "ordered_window is 0; it must be between 1 and 1000.");
}

TEST_P(BrokerAcceptance, TwentyMessagesOverFiveKeysThroughABatchingPublisherGetTwentyIds) {
  rig_.create();
  auto publisher = rig_.broker().publisher(kTopic, {.batch_messages_max = 3});
  ASSERT_TRUE(publisher);
  std::mutex mutex;
  std::set<broker::MessageId> ids;
  for (int i = 0; i < 20; ++i) {
    publisher->publish({.data = std::to_string(i), .ordering_key = "k" + std::to_string(i % 5)},
                       [&](const Result<broker::MessageId>& id) {
                         ASSERT_TRUE(id);
                         const std::lock_guard lock(mutex);
                         ids.insert(*id);
                       });
  }
  ASSERT_TRUE(publisher->close(TimePoint::max()));
  EXPECT_EQ(ids.size(), 20u);
  std::map<int, int> last;
  const std::vector<std::string> data = rig_.drain();
  EXPECT_EQ(data.size(), 20u);
  for (const std::string& text : data) {
    const int number = std::stoi(text);
    EXPECT_TRUE(!last.contains(number % 5) || last[number % 5] < number);
    last[number % 5] = number;
  }
}

TEST_P(BrokerAcceptance, AHundredThousandKeysAreAllServedInOrderAndLeaveNothingBehind) {
  constexpr int kMost = testing_support::kIsSanitized ? 10'000 : 100'000;
  const int keys = GetParam() == StoreKind::memory ? kMost : kMost / 5;
  rig_.create();
  auto publisher = rig_.broker().publisher(kTopic, {.batch_messages_max = 3});
  ASSERT_TRUE(publisher);
  std::vector<std::atomic<int>> next(static_cast<std::size_t>(keys));
  std::atomic<int> handled = 0;
  std::atomic<int> wrong = 0;
  auto subscriber = rig_.broker().subscribe(kSubscription,
                                            [&](const ReceivedMessage& message) {
                                              const int key = std::stoi(std::string(message.key()));
                                              const int sequence =
                                                  std::stoi(std::string(message.data()));
                                              if (next[static_cast<std::size_t>(key)]++ != sequence)
                                                ++wrong;
                                              ++handled;
                                              return HandlerAnswer::ack;
                                            },
                                            {.handlers = 2});
  ASSERT_TRUE(subscriber);
  std::atomic<int> failed = 0;
  for (int key = 0; key < keys; ++key) {
    for (int sequence = 0; sequence < 3; ++sequence)
      publisher->publish({.data = std::to_string(sequence), .ordering_key = std::to_string(key)},
                         [&](const Result<broker::MessageId>& id) { failed += id ? 0 : 1; });
  }
  ASSERT_TRUE(publisher->close(TimePoint::max()));
  ASSERT_TRUE(eventually([&] { return handled == 3 * keys; }, 90s)) << handled;
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(failed, 0);
  ASSERT_TRUE(eventually([&] {
    const broker::SubscriptionStats stats = rig_.stats();
    return stats.lanes == 0 && stats.leased == 0 && stats.waiting == 0 && stats.unread == 0;
  }));
  EXPECT_EQ(rig_.stats().acked, static_cast<std::uint64_t>(3 * keys));
}

}  // namespace
}  // namespace ordo

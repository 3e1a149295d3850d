// Subscribers, live subscriptions and streams: handlers, flow control, deadlines, the end.
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/flow/broker_rig.h"
#include "tests/support/gates.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;
using broker::SettleOutcome;
using broker::SubscriptionConfig;
using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::Background;
using testing_support::BrokerRig;
using testing_support::data_of;
using testing_support::eventually;
using testing_support::Gates;
using testing_support::HangingDisk;
using testing_support::kSubscription;
using testing_support::kTopic;
using testing_support::StoreKind;
using testing_support::Watchdog;

class BrokerSubscriberTest : public testing::Test {
 protected:
  void note(const ReceivedMessage& message) {
    const std::lock_guard lock(mutex_);
    seen_.emplace_back(message.data());
  }
  std::vector<std::string> seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  bool await_seen(std::size_t count) {
    return eventually([&] { return seen().size() >= count; });
  }
  AckHandle take_handle() {
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex_);
      return !handles_.empty();
    }));
    const std::lock_guard lock(mutex_);
    AckHandle handle = handles_.front();
    handles_.erase(handles_.begin());
    return handle;
  }
  // Its one handler is at message "0", and "1" of another key waits for it.
  Result<Subscriber> busy_subscriber(Gates<HandlerAnswer>& gates) {
    Result<Subscriber> subscriber =
        rig_.broker().subscribe(kSubscription,
                                [&gates](const ReceivedMessage& message) {
                                  return gates.enter(std::stoull(std::string(message.data())));
                                },
                                {.handlers = 1});
    rig_.publish("a", {"0"});
    EXPECT_TRUE(gates.await(0));
    rig_.publish("b", {"1"});
    EXPECT_TRUE(eventually([&] { return subscriber && subscriber->stats().outstanding == 2; }));
    return subscriber;
  }
  // Notes messages and keeps their handles for take_handle().
  AsyncHandler keeping() {
    return [this](const ReceivedMessage& message, AckHandle handle) {
      note(message);
      const std::lock_guard lock(mutex_);
      handles_.push_back(std::move(handle));
    };
  }

  Watchdog watchdog_{"BrokerSubscriberTest"};
  std::mutex mutex_;
  std::vector<std::string> seen_;
  std::vector<AckHandle> handles_;
  HangingDisk disk_;
  BrokerRig rig_{StoreKind::memory};
};

TEST_F(BrokerSubscriberTest, AnExceptionOfTheHandlerIsANack) {
  rig_.create();
  auto subscriber = rig_.broker().subscribe(kSubscription, [&](const ReceivedMessage& message) {
    note(message);
    if (seen().size() == 1) throw std::runtime_error("no");
    return HandlerAnswer::ack;
  });
  ASSERT_TRUE(subscriber);
  rig_.publish("k", {"1", "2"});
  ASSERT_TRUE(await_seen(3));
  EXPECT_THAT(seen(), ElementsAre("1", "1", "2"));
  ASSERT_TRUE(eventually([&] { return subscriber->stats().acked == 2; }));
  EXPECT_EQ(subscriber->stats().threw, 1u);
}

TEST_F(BrokerSubscriberTest, AnAnswerMayComeLaterFromAnotherThread) {
  rig_.create();
  auto subscriber = rig_.broker().subscribe_async(kSubscription, keeping(), {.handlers = 1});
  ASSERT_TRUE(subscriber);
  rig_.publish("a", {"1", "2"});
  const AckHandle first = take_handle();
  rig_.publish("b", {"3"});
  ASSERT_TRUE(await_seen(2)) << "its handler has returned: the thread is free for other keys";
  EXPECT_THAT(seen(), ElementsAre("1", "3"));

  EXPECT_TRUE(first.ack());
  EXPECT_FALSE(first.ack());
  EXPECT_FALSE(first.nack());
  ASSERT_TRUE(await_seen(3));
  EXPECT_EQ(seen().back(), "2");
}

TEST_F(BrokerSubscriberTest, AHandleThatIsDroppedIsANack) {
  rig_.create();
  std::atomic<int> count = 0;
  auto subscriber = rig_.broker().subscribe_async(
      kSubscription, [&](const ReceivedMessage& message, const AckHandle& handle) {
        note(message);
        if (++count > 1) handle.ack();
      });
  ASSERT_TRUE(subscriber);
  rig_.publish("k", {"1", "2"});
  ASSERT_TRUE(await_seen(3));
  EXPECT_THAT(seen(), ElementsAre("1", "1", "2"));
}

TEST_F(BrokerSubscriberTest, AnAckCanBeConfirmed) {
  rig_.create();
  auto subscriber = rig_.broker().subscribe_async(kSubscription, keeping());
  ASSERT_TRUE(subscriber);
  rig_.publish("k", {"1"});
  std::atomic<int> confirmed = 0;
  take_handle().ack([&](const Status& status) { confirmed = status ? 1 : 2; });
  ASSERT_TRUE(eventually([&] { return confirmed != 0; }));
  EXPECT_EQ(confirmed, 1);
  rig_.disk().crash();
  subscriber->close(CloseHow::nack, TimePoint::min());
  rig_.restart();
  EXPECT_THAT(rig_.drain(), IsEmpty());
}

TEST_F(BrokerSubscriberTest, AnAckThatNobodyWaitsForIsStoredWhenTheBrokerCloses) {
  rig_.create();
  {
    auto subscriber = rig_.broker().subscribe_async(kSubscription, keeping());
    ASSERT_TRUE(subscriber);
    rig_.publish("k", {"1"});
    EXPECT_TRUE(take_handle().ack());
  }
  rig_.restart();
  EXPECT_THAT(rig_.drain(), IsEmpty());
}

TEST_F(BrokerSubscriberTest, NoMoreMessagesAreOutstandingThanAllowed) {
  rig_.create();
  auto subscriber =
      rig_.broker().subscribe_async(kSubscription, keeping(), {.outstanding_messages_max = 3});
  ASSERT_TRUE(subscriber);
  for (int i = 0; i < 10; ++i)
    rig_.publish("k" + std::to_string(i), {std::to_string(i)});
  ASSERT_TRUE(await_seen(3));
  testing_support::let_others_fall_asleep();
  EXPECT_EQ(seen().size(), 3u);
  for (std::size_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(take_handle().ack());
    EXPECT_LE(rig_.stats().leased, 3u);
  }
  EXPECT_EQ(seen().size(), 10u);
}

TEST_F(BrokerSubscriberTest, DeadlinesAreExtendedWhileTheHandlerWorks) {
  rig_.create();
  auto subscriber = rig_.broker().subscribe_async(kSubscription, keeping());
  ASSERT_TRUE(subscriber);
  rig_.publish("k", {"1", "2"});
  const AckHandle handle = take_handle();
  for (int i = 0; i < 40; ++i)
    rig_.advance(250ms);
  EXPECT_THAT(seen(), ElementsAre("1"));
  EXPECT_GT(subscriber->stats().extensions, 0u);
  EXPECT_TRUE(handle.ack());
  ASSERT_TRUE(await_seen(2));
}

TEST_F(BrokerSubscriberTest, DeadlinesAreNotExtendedBeyondTheMaximum) {
  rig_.create();
  auto subscriber = rig_.broker().subscribe_async(kSubscription, keeping(), {.extension_max = 3s});
  ASSERT_TRUE(subscriber);
  rig_.publish("k", {"1"});
  const AckHandle handle = take_handle();
  for (int i = 0; i < 24; ++i)
    rig_.advance(250ms);
  // It comes again, and waits here until the handler that still has it is done with it.
  ASSERT_TRUE(eventually([&] { return rig_.stats().redeliveries > 0; }));
  EXPECT_THAT(seen(), ElementsAre("1"));
  EXPECT_TRUE(handle.ack());
  ASSERT_TRUE(await_seen(2));
  EXPECT_THAT(seen(), ElementsAre("1", "1"));
}

TEST_F(BrokerSubscriberTest, AfterANackNothingBehindItIsHandledBeforeItCameAgain) {
  SubscriptionConfig config;
  config.labels = {{"ordo-ordered-window", "4"}};
  rig_.create(config);
  std::atomic<int> count = 0;
  auto subscriber =
      rig_.broker().subscribe(kSubscription,
                              [&](const ReceivedMessage& message) {
                                note(message);
                                return ++count == 2 ? HandlerAnswer::nack : HandlerAnswer::ack;
                              },
                              {.handlers = 3});
  ASSERT_TRUE(subscriber);
  rig_.publish("k", {"1", "2", "3", "4", "5"});
  ASSERT_TRUE(await_seen(6));
  EXPECT_THAT(seen(), ElementsAre("1", "2", "2", "3", "4", "5"));
}

TEST_F(BrokerSubscriberTest, ClosingWithDrainHandlesWhatWasDelivered) {
  rig_.create();
  Gates<HandlerAnswer> gates;
  auto subscriber = busy_subscriber(gates);
  ASSERT_TRUE(subscriber);
  Background closing([&] { EXPECT_TRUE(subscriber->close(CloseHow::drain, TimePoint::max())); });
  gates.open_all(HandlerAnswer::ack);
  ASSERT_TRUE(closing.finished());
  EXPECT_EQ(gates.left_count(), 2u);
  EXPECT_TRUE(subscriber->close(CloseHow::drain, TimePoint::max()));
  rig_.publish("c", {"2"});
  EXPECT_THAT(rig_.drain(), ElementsAre("2"));
}

TEST_F(BrokerSubscriberTest, AfterADrainTheBrokerHasEveryAnswer) {
  rig_.create();
  for (std::uint64_t round = 1; round <= 100; ++round) {
    std::atomic<bool> is_handled = false;
    auto subscriber = rig_.broker().subscribe(kSubscription, [&](const ReceivedMessage&) {
      is_handled = true;
      return HandlerAnswer::ack;
    });
    ASSERT_TRUE(subscriber);
    rig_.publish("k", {"1"});
    ASSERT_TRUE(eventually([&] { return is_handled.load(); }));
    EXPECT_TRUE(subscriber->close(CloseHow::drain, TimePoint::max()));
    ASSERT_EQ(rig_.stats().acked, round);
  }
}

TEST_F(BrokerSubscriberTest, ADrainHasEndedWhenTheConfirmedAcksAreStoredAndTold) {
  rig_.set_faults(&disk_);
  rig_.restart();
  rig_.create();
  auto subscriber = rig_.broker().subscribe_async(kSubscription, keeping());
  ASSERT_TRUE(subscriber);
  rig_.publish("k", {"1"});
  const AckHandle handle = take_handle();
  disk_.set_hanging(true);
  std::atomic<int> confirmed = 0;
  EXPECT_TRUE(handle.ack([&](const Status& status) { confirmed = status ? 1 : 2; }));
  EXPECT_FALSE(subscriber->close(CloseHow::drain, TimePoint::min()));
  std::atomic<int> known_at_end = 0;
  Background closing([&] {
    EXPECT_TRUE(subscriber->close(CloseHow::drain, TimePoint::max()));
    known_at_end = confirmed.load();
  });
  EXPECT_EQ(confirmed, 0);
  disk_.set_hanging(false);
  ASSERT_TRUE(closing.finished());
  EXPECT_EQ(known_at_end, 1);
}

TEST_F(BrokerSubscriberTest, ClosingWithNackGivesBackWhatHasNotBegun) {
  rig_.create();
  Gates<HandlerAnswer> gates;
  auto subscriber = busy_subscriber(gates);
  ASSERT_TRUE(subscriber);
  Background closing([&] { EXPECT_TRUE(subscriber->close(CloseHow::nack, TimePoint::max())); });
  EXPECT_EQ(rig_.pull_one().data(), "1") << "given back at once";
  gates.open_all(HandlerAnswer::ack);
  ASSERT_TRUE(closing.finished());
  EXPECT_FALSE(gates.has_started(1));
  EXPECT_EQ(rig_.stats().acked, 1u);
}

TEST_F(BrokerSubscriberTest, WhatAClosingSubscriberGivesBackUnseenIsNoFailedAttempt) {
  SubscriptionConfig config;
  config.labels = {{"ordo-failure-policy", "park"}, {"ordo-park-attempts", "5"}};
  rig_.create(config);
  Gates<HandlerAnswer> gates;
  auto subscriber = busy_subscriber(gates);
  ASSERT_TRUE(subscriber);
  Background closing([&] { EXPECT_TRUE(subscriber->close(CloseHow::nack, TimePoint::max())); });
  const ReceivedMessage unseen = rig_.pull_one();
  EXPECT_EQ(unseen.data(), "1");
  EXPECT_EQ(unseen.attempt(), 1u);
  gates.open_all(HandlerAnswer::nack);
  ASSERT_TRUE(closing.finished());
  const ReceivedMessage failed = rig_.pull_one();
  EXPECT_EQ(failed.data(), "0");
  EXPECT_EQ(failed.attempt(), 2u);
}

TEST_F(BrokerSubscriberTest, ClosingEndsAtTheDeadlineAndTheMessageComesAgain) {
  rig_.create();
  auto subscriber = rig_.broker().subscribe_async(kSubscription, keeping());
  ASSERT_TRUE(subscriber);
  rig_.publish("k", {"1"});
  const AckHandle handle = take_handle();
  EXPECT_FALSE(subscriber->close(CloseHow::drain, TimePoint::min()));
  EXPECT_FALSE(handle.ack()) << "too late: it was given back";
  EXPECT_EQ(rig_.pull_one().data(), "1");
}

TEST_F(BrokerSubscriberTest, ASubscriberMayOutliveItsBroker) {
  rig_.create();
  auto subscriber = rig_.broker().subscribe_async(kSubscription, keeping());
  auto publisher = rig_.broker().publisher(kTopic);
  ASSERT_TRUE(subscriber && publisher);
  rig_.publish("k", {"1"});
  const AckHandle handle = take_handle();
  rig_.close();
  handle.ack();
  auto late = publisher->publish({.data = "late"});
  publisher->flush();
  EXPECT_EQ(late.get().error().code, ErrorCode::unavailable);
  handles_.clear();
}

TEST_F(BrokerSubscriberTest, ADeletedSubscriptionEndsItsConsumers) {
  rig_.create();
  std::atomic<int> code = 0;
  auto subscriber = rig_.broker().subscribe(
      kSubscription, [](const ReceivedMessage&) { return HandlerAnswer::ack; },
      {.on_closed = [&](const Error& error) { code = static_cast<int>(error.code); }});
  ASSERT_TRUE(subscriber);
  ASSERT_TRUE(rig_.broker().delete_subscription(kSubscription));
  ASSERT_TRUE(eventually([&] { return code != 0; }));
  EXPECT_EQ(code, static_cast<int>(ErrorCode::not_found));
  const auto pulled = rig_.broker().pull(kSubscription);
  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, ErrorCode::not_found);
}

TEST_F(BrokerSubscriberTest, APullThatWaitsGetsTheFirstMessageThatComes) {
  rig_.create();
  std::vector<std::string> got;
  Background waiting([&] {
    auto pulled = rig_.broker().pull(kSubscription, {.wait = 1h});
    if (pulled) got = data_of(*pulled);
  });
  testing_support::let_others_fall_asleep();
  rig_.publish("k", {"1"});
  ASSERT_TRUE(waiting.finished());
  EXPECT_THAT(got, ElementsAre("1"));
}

TEST_F(BrokerSubscriberTest, APullThatWaitedLongEnoughReturnsNothing) {
  rig_.create();
  Background waiting([&] {
    auto pulled = rig_.broker().pull(kSubscription, {.wait = 5s});
    EXPECT_TRUE(pulled);
    EXPECT_EQ(pulled ? pulled->size() : 1, 0u);
  });
  testing_support::let_others_fall_asleep();
  rig_.clock().advance(5s);
  ASSERT_TRUE(waiting.finished());
}

TEST_F(BrokerSubscriberTest, ALiveSubscriptionGetsWhatIsStoredWhileItIsThere) {
  rig_.create();
  rig_.publish("k", {"before"});
  auto live = rig_.broker().subscribe_live(kTopic, "dashboard", Priority::normal);
  ASSERT_TRUE(live);
  rig_.publish("k", {"1", "2"});
  for (const char* const expected : {"1", "2"}) {
    auto frame = live->pop();
    ASSERT_TRUE(frame);
    EXPECT_EQ(broker::decode_message((*frame)->body())->data, expected);
  }
  EXPECT_FALSE(live->try_pop());
  ASSERT_TRUE(rig_.broker().delete_topic(kTopic));
  EXPECT_FALSE(live->pop()) << "ends with its topic";
}

TEST_F(BrokerSubscriberTest, LiveSubscriptionsAreShedByPriorityAndCounted) {
  rig_.create();
  auto low = rig_.broker().subscribe_live(kTopic, "low", Priority::best_effort, {.capacity = 10});
  auto high = rig_.broker().subscribe_live(kTopic, "high", Priority::critical, {.capacity = 100});
  ASSERT_TRUE(low && high);
  for (int i = 0; i < 50; ++i)
    rig_.publish("k", {"x"});
  int high_count = 0;
  while (high->try_pop())
    ++high_count;
  EXPECT_EQ(high_count, 50);
  const auto stats = rig_.broker().live_stats(kTopic);
  ASSERT_TRUE(stats);
  EXPECT_GT(stats->subscribers.at("low").dropped, 0u);
  EXPECT_EQ(stats->subscribers.at("low").dropped + stats->subscribers.at("low").sent, 50u);
  EXPECT_EQ(rig_.stats().unread, 50u) << "stored ones lose nothing";
}

TEST_F(BrokerSubscriberTest, ALiveSubscriptionCannotBlockPublishers) {
  rig_.create();
  const auto live = rig_.broker().subscribe_live(kTopic, "greedy", Priority::critical,
                                                 {.overflow = Overflow::block});
  ASSERT_FALSE(live);
  EXPECT_EQ(live.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace ordo

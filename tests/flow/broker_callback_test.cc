// The calls of a broker that do not wait: what a server on a few I/O threads is made of.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/flow/broker_rig.h"

namespace ordo::testing_support {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using Pulled = Result<std::vector<ReceivedMessage>>;

// What a callback was told, seen by the test.
template <class Value>
class Told {
 public:
  void set(Value value) {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(value_) << "told twice";
    value_.emplace(std::move(value));
  }
  bool is_set() {
    const std::lock_guard lock(mutex_);
    return value_.has_value();
  }
  Value wait() {
    EXPECT_TRUE(eventually([this] { return is_set(); }));
    const std::lock_guard lock(mutex_);
    return *value_;
  }

 private:
  std::mutex mutex_;
  std::optional<Value> value_;
};

class BrokerCallbackTest : public testing::Test {
 protected:
  Result<Pull> start(Told<Pulled>& told, const PullOptions& options = {}) {
    return rig_.broker().start_pull(kSubscription, options,
                                    [&told](Pulled pulled) { told.set(std::move(pulled)); });
  }

  Watchdog watchdog_{"BrokerCallbackTest"};
  BrokerRig rig_{StoreKind::memory};
};

TEST_F(BrokerCallbackTest, APullThatIsStartedIsToldTheFirstMessagesThatCome) {
  rig_.create();
  Told<Pulled> told;
  ASSERT_TRUE(start(told));
  rig_.publish("k", {"1", "2"});
  EXPECT_THAT(data_of(*told.wait()), ElementsAre("1"));
}

TEST_F(BrokerCallbackTest, APullThatIsStartedIsToldNothingWhenItsTimeIsOver) {
  rig_.create();
  Told<Pulled> told;
  ASSERT_TRUE(start(told, {.wait = 5s}));
  rig_.advance(4s);
  EXPECT_FALSE(told.is_set());
  rig_.advance(1s);
  EXPECT_THAT(*told.wait(), IsEmpty());
}

TEST_F(BrokerCallbackTest, ACancelledPullTakesNothingAndCountsNoFailure) {
  broker::SubscriptionConfig config;
  config.dead_letter_policy.emplace();
  config.dead_letter_policy->topic = kTopic;
  rig_.create(config);
  Told<Pulled> told;
  const Result<Pull> pull = start(told, {.messages_max = 10, .wait = 1min});
  ASSERT_TRUE(pull);
  pull->cancel();
  pull->cancel();
  const Pulled pulled = told.wait();
  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, ErrorCode::cancelled);
  rig_.publish("k", {"1"});
  EXPECT_EQ(rig_.pull_one().attempt(), 1u);
}

TEST_F(BrokerCallbackTest, PullsThatAreCancelledWhileMessagesComeLoseNone) {
  rig_.create();
  constexpr int kRounds = 50;
  std::vector<std::string> expected;
  std::vector<std::string> got;
  for (int round = 0; round < kRounds; ++round) {
    const std::string data = std::to_string(round);
    expected.push_back(data);
    Told<Pulled> told;
    const Result<Pull> pull = start(told, {.messages_max = 1, .wait = 1min});
    ASSERT_TRUE(pull);
    Background publisher([&] { rig_.publish("key-" + data, {data}); });
    pull->cancel();
    const Pulled pulled = told.wait();
    if (pulled) {
      for (const ReceivedMessage& message : *pulled) {
        got.emplace_back(message.data());
        EXPECT_EQ(rig_.ack(message), broker::SettleOutcome::done);
      }
    }
    ASSERT_TRUE(publisher.finished());
  }
  for (std::string& data : rig_.drain())
    got.push_back(std::move(data));
  std::sort(got.begin(), got.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(got, expected);
}

TEST_F(BrokerCallbackTest, APullThatWaitsIsToldThatItsSubscriptionIsGone) {
  rig_.create();
  Told<Pulled> told;
  ASSERT_TRUE(start(told));
  ASSERT_TRUE(rig_.broker().delete_subscription(kSubscription));
  const Pulled pulled = told.wait();
  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, ErrorCode::not_found);
}

TEST_F(BrokerCallbackTest, APullThatWaitsIsToldThatTheBrokerCloses) {
  rig_.create();
  Told<Pulled> told;
  ASSERT_TRUE(start(told));
  EXPECT_TRUE(rig_.broker().close(TimePoint::max()));
  const Pulled pulled = told.wait();
  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().code, ErrorCode::unavailable);
}

TEST_F(BrokerCallbackTest, AnAckIsToldOnceItIsStoredAndANackAtOnce) {
  rig_.create();
  rig_.publish("a", {"1"});
  rig_.publish("b", {"2"});
  std::vector<ReceivedMessage> got{rig_.pull_one(), rig_.pull_one()};
  Told<std::vector<broker::SettleOutcome>> acked;
  ASSERT_TRUE(rig_.broker().acknowledge(
      kSubscription, {got[0].ack_id()},
      [&](std::vector<broker::SettleOutcome>&& outcomes) { acked.set(std::move(outcomes)); }));
  EXPECT_THAT(acked.wait(), ElementsAre(broker::SettleOutcome::done));
  Told<std::vector<broker::SettleOutcome>> nacked;
  ASSERT_TRUE(rig_.broker().modify_ack_deadline(
      kSubscription, {got[1].ack_id()}, 0s,
      [&](std::vector<broker::SettleOutcome>&& outcomes) { nacked.set(std::move(outcomes)); }));
  EXPECT_THAT(nacked.wait(), ElementsAre(broker::SettleOutcome::done));
  EXPECT_EQ(rig_.pull_one().id(), got[1].id());
}

TEST_F(BrokerCallbackTest, WhatCannotBeAskedIsRefusedAndNothingIsTold) {
  rig_.create();
  const auto never = [](std::vector<broker::SettleOutcome>&&) { ADD_FAILURE(); };
  EXPECT_EQ(rig_.broker().acknowledge(kSubscription, {}, never).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(rig_.broker()
                .acknowledge("projects/test/subscriptions/none", {broker::AckId()}, never)
                .error()
                .code,
            ErrorCode::not_found);
  EXPECT_EQ(
      rig_.broker().modify_ack_deadline(kSubscription, {broker::AckId()}, 601s, never).error().code,
      ErrorCode::invalid_argument);
}

TEST_F(BrokerCallbackTest, TheSettingsOfASubscriptionAreThoseOfTheMoment) {
  rig_.create();
  const auto before = rig_.broker().settings_of(kSubscription);
  ASSERT_TRUE(before);
  EXPECT_FALSE((*before)->enable_exactly_once_delivery);
  broker::SubscriptionConfig config;
  config.name = kSubscription;
  config.enable_exactly_once_delivery = true;
  ASSERT_TRUE(rig_.broker().update_subscription(config, {"enable_exactly_once_delivery"}));
  EXPECT_TRUE((*rig_.broker().settings_of(kSubscription))->enable_exactly_once_delivery);
  EXPECT_FALSE((*before)->enable_exactly_once_delivery) << "what was given is not changed";
  ASSERT_TRUE(rig_.broker().detach_subscription(kSubscription));
  EXPECT_EQ(rig_.broker().settings_of(kSubscription).error().code, ErrorCode::failed_precondition);
}

}  // namespace
}  // namespace ordo::testing_support

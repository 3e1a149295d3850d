// What an endpoint sees of its subscription, and what becomes of that when things change.
#include "ordo/adapters/push_http/courier.h"

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/push_receiver.h"
#include "tests/support/push_rig.h"
#include "tests/support/waiting.h"

namespace ordo::push_http {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing_support::eventually;
using testing_support::HeldAnswers;
using testing_support::let_others_fall_asleep;
using testing_support::PushedRequest;
using testing_support::PushPeer;
using testing_support::PushReceiver;
using testing_support::PushRig;
using testing_support::Watchdog;

PushReceiver::Script accept_all() {
  return [](const PushedRequest&, const PushPeer& peer) { peer.answer(200); };
}

std::vector<std::string> numbered(const std::string& text, int count) {
  std::vector<std::string> all;
  for (int i = 1; i <= count; ++i)
    all.push_back(text + std::to_string(i));
  return all;
}

class CourierTest : public testing::Test {
 protected:
  Watchdog watchdog_{"CourierTest"};
};

TEST_F(CourierTest, AMessageIsPostedAndAcknowledgedWhenItIsAccepted) {
  PushReceiver receiver(accept_all());
  PushRig rig;
  rig.create(receiver.url("/orders?shop=7"));
  rig.publish("k", {"hello"});
  ASSERT_TRUE(rig.await_acked(1));
  ASSERT_THAT(receiver.requests(), SizeIs(1));
  const PushedRequest request = receiver.requests()[0];
  EXPECT_THAT(request.head, HasSubstr("POST /orders?shop=7 HTTP/1.1\r\n"));
  EXPECT_THAT(request.head, HasSubstr("Content-Type: application/json"));
  EXPECT_THAT(request.body, HasSubstr(R"("subscription":"projects/test/subscriptions/pushed")"));
  EXPECT_EQ(request.data, "hello");
  EXPECT_EQ(request.key, "k");
  EXPECT_EQ(request.attempt, 0) << "there is no dead-letter policy";
  EXPECT_EQ(rig.courier().stats().accepted, 1u);
  EXPECT_EQ(rig.courier().stats().subscriptions, 1u);
}

TEST_F(CourierTest, MessagesOfAKeyComeInOrderOneAtATimeAndKeysSideBySide) {
  PushReceiver receiver(accept_all());
  PushRig rig;
  rig.create(receiver.url());
  for (int i = 1; i <= 20; ++i) {
    for (const std::string key : {"a", "b", "c"})
      rig.publish(key, {key + std::to_string(i)});
  }
  ASSERT_TRUE(rig.await_acked(60));
  for (const std::string key : {"a", "b", "c"})
    EXPECT_EQ(receiver.data_of(key), numbered(key, 20));
  EXPECT_LT(receiver.connection_count(), 60u) << "connections are kept";
}

TEST_F(CourierTest, AKeyThatIsRefusedWaitsInItsPlaceWhileOthersFlow) {
  std::atomic<int> others{0};
  PushReceiver receiver([&](const PushedRequest& request, const PushPeer& peer) {
    if (request.key == "other") ++others;
    peer.answer(request.data == "a1" && others < 10 ? 503 : 200);
  });
  PushRig rig;
  rig.create(receiver.url());
  rig.publish("a", numbered("a", 3));
  ASSERT_TRUE(eventually([&] { return receiver.count() >= 2; }));
  rig.publish("other", numbered("o", 10));
  ASSERT_TRUE(rig.await_acked(13));
  EXPECT_EQ(receiver.data_of("other"), numbered("o", 10));
  std::vector<std::string> of_a = receiver.data_of("a");
  ASSERT_GE(of_a.size(), 5u);
  EXPECT_EQ(of_a.back(), "a3");
  of_a.pop_back();
  EXPECT_EQ(of_a.back(), "a2");
  of_a.pop_back();
  EXPECT_THAT(of_a, Each("a1"));
  EXPECT_EQ(rig.courier().stats().refused, of_a.size() - 1);
}

TEST_F(CourierTest, WhatWasNotAcceptedComesAgainInOrderAfterARestart) {
  std::atomic<int> status{503};
  PushReceiver receiver(
      [&](const PushedRequest&, const PushPeer& peer) { peer.answer(status.load()); });
  PushRig rig;
  rig.create(receiver.url());
  rig.publish("k", numbered("m", 5));
  ASSERT_TRUE(eventually([&] { return receiver.count() >= 1; }));
  rig.restart();
  const std::size_t before = receiver.count();
  status = 204;
  ASSERT_TRUE(rig.await_acked(5));
  std::vector<std::string> after = receiver.data_of("k");
  after.erase(after.begin(), after.begin() + static_cast<std::ptrdiff_t>(before));
  while (after.size() > 5 && after[0] == "m1")  // Those that met the old status.
    after.erase(after.begin());
  EXPECT_EQ(after, numbered("m", 5));
}

TEST_F(CourierTest, OnlySomeStatusesAccept) {
  const std::vector<int> statuses = {500, 404, 302, 203, 101, 201, 202, 204, 200};
  std::atomic<std::size_t> next{0};
  PushReceiver receiver([&](const PushedRequest&, const PushPeer& peer) {
    peer.answer(statuses[next++ % statuses.size()]);
  });
  PushRig rig;
  rig.create(receiver.url());
  rig.publish("k", numbered("m", 4));
  ASSERT_TRUE(rig.await_acked(4));
  EXPECT_EQ(receiver.data_of("k"),
            (std::vector<std::string>{"m1", "m1", "m1", "m1", "m1", "m1", "m2", "m3", "m4"}));
}

TEST_F(CourierTest, AMessageIsSentToTheNewEndpointOnceTheOldOneHasAnswered) {
  HeldAnswers held;
  PushReceiver old_one([&](const PushedRequest&, const PushPeer& peer) {
    held.wait();
    peer.answer(200);
  });
  PushReceiver new_one(accept_all());
  PushRig rig;
  rig.create(old_one.url());
  rig.publish("k", numbered("m", 3));
  ASSERT_TRUE(eventually([&] { return old_one.count() == 1; }));
  rig.aim_at(new_one.url("/new"));
  rig.publish("other", {"o1"});
  ASSERT_TRUE(eventually([&] { return new_one.count() == 1; }));
  held.release();
  ASSERT_TRUE(rig.await_acked(4));
  EXPECT_EQ(old_one.data_of("k"), numbered("m", 1));
  EXPECT_EQ(new_one.data_of("k"), (std::vector<std::string>{"m2", "m3"}));
}

TEST_F(CourierTest, BackToPullTheMessagesCanBeFetchedAndNothingIsPushed) {
  PushReceiver receiver([](const PushedRequest&, const PushPeer& peer) { peer.answer(500); });
  PushRig rig;
  rig.create(receiver.url());
  rig.publish("k", {"m1"});
  ASSERT_TRUE(eventually([&] { return receiver.count() >= 2; }));
  EXPECT_EQ(rig.broker().pull(PushRig::kPushed, {}).error().code, ErrorCode::failed_precondition);
  rig.aim_at("");
  const auto got = rig.broker().pull(PushRig::kPushed, {.messages_max = 1, .wait = 30s});
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_THAT(*got, SizeIs(1));
  EXPECT_EQ((*got)[0].data(), "m1");
  ASSERT_TRUE(eventually([&] { return rig.courier().stats().subscriptions == 0; }));
  const std::size_t before = receiver.count();
  ASSERT_TRUE(rig.broker().acknowledge(PushRig::kPushed, {(*got)[0].ack_id()}));
  rig.publish("k", {"m2"});
  let_others_fall_asleep();
  EXPECT_EQ(receiver.count(), before);
}

TEST_F(CourierTest, FromPullToPushAnOpenStreamEndsAndWhatWaitsIsSent) {
  PushReceiver receiver(accept_all());
  PushRig rig;
  rig.create(receiver.url());
  rig.aim_at("");
  rig.publish("k", numbered("m", 2));
  std::atomic<bool> is_closed{false};
  std::atomic<int> delivered{0};
  broker::ConsumerEvents events;
  events.deliver = [&](std::vector<broker::Delivery>&&) { ++delivered; };
  events.closed = [&](const Error&) { is_closed = true; };
  auto stream = rig.broker().open_stream(PushRig::kPushed, {.ack_deadline = 1s}, events);
  ASSERT_TRUE(stream);
  ASSERT_TRUE(eventually([&] { return delivered == 1; }));
  rig.aim_at(receiver.url());
  ASSERT_TRUE(eventually([&] { return is_closed.load(); }));
  ASSERT_TRUE(rig.await_acked(2)) << "m1 when its lease has run out";
  EXPECT_EQ(receiver.data_of("k"), numbered("m", 2));
}

TEST_F(CourierTest, AfterTooManyAttemptsAMessageIsADeadLetterAndItsKeyGoesOn) {
  PushReceiver receiver([](const PushedRequest& request, const PushPeer& peer) {
    peer.answer(request.data == "bad" ? 400 : 200);
  });
  PushRig rig;
  const std::string letters = "projects/test/topics/letters";
  ASSERT_TRUE(rig.broker().create_topic({.name = letters}));
  ASSERT_TRUE(rig.broker().create_subscription(
      {.name = "projects/test/subscriptions/letters", .topic = letters}));
  broker::SubscriptionConfig config;
  config.dead_letter_policy = broker::DeadLetterPolicy{letters, 5};
  rig.create(receiver.url(), config);
  rig.publish("k", {"bad", "good"});
  ASSERT_TRUE(rig.await_acked(1));
  EXPECT_THAT(receiver.data_of("k"), ElementsAre("bad", "bad", "bad", "bad", "bad", "good"));
  std::vector<int> attempts;
  for (const PushedRequest& request : receiver.requests())
    attempts.push_back(request.attempt);
  EXPECT_THAT(attempts, ElementsAre(1, 2, 3, 4, 5, 1));
  const auto letter =
      rig.broker().pull("projects/test/subscriptions/letters", {.messages_max = 1, .wait = 30s});
  ASSERT_TRUE(letter);
  ASSERT_THAT(*letter, SizeIs(1));
  EXPECT_EQ((*letter)[0].data(), "bad");
}

TEST_F(CourierTest, ADeletedOrDetachedSubscriptionIsPushedNoMore) {
  PushReceiver receiver([](const PushedRequest&, const PushPeer& peer) { peer.answer(500); });
  PushRig rig;
  rig.create(receiver.url());
  rig.publish("k", {"m"});
  ASSERT_TRUE(eventually([&] { return receiver.count() >= 1; }));
  ASSERT_TRUE(rig.broker().detach_subscription(PushRig::kPushed));
  ASSERT_TRUE(eventually([&] { return rig.courier().stats().subscriptions == 0; }));
  ASSERT_TRUE(rig.broker().delete_subscription(PushRig::kPushed));
  broker::SubscriptionConfig again{.name = PushRig::kPushed, .topic = PushRig::kTopic};
  again.push = broker::PushConfig{.endpoint = receiver.url("/again")};
  ASSERT_TRUE(rig.broker().create_subscription(again));
  ASSERT_TRUE(eventually([&] { return rig.courier().stats().subscriptions == 1; }));
  ASSERT_TRUE(rig.broker().delete_subscription(PushRig::kPushed));
  ASSERT_TRUE(eventually([&] { return rig.courier().stats().subscriptions == 0; }));
}

TEST_F(CourierTest, ASeekBringsBackWhatWasAccepted) {
  PushReceiver receiver(accept_all());
  PushRig rig;
  broker::SubscriptionConfig config;
  config.retain_acked_messages = true;
  rig.create(receiver.url(), config);
  rig.publish("k", numbered("m", 3));
  ASSERT_TRUE(rig.await_acked(3));
  ASSERT_TRUE(rig.broker().seek(PushRig::kPushed, WallTime()));
  ASSERT_TRUE(eventually([&] { return receiver.count() == 6; }));
  EXPECT_THAT(receiver.data_of("k"), ElementsAre("m1", "m2", "m3", "m1", "m2", "m3"));
}

TEST_F(CourierTest, WithoutAWrapperTheDataIsTheBody) {
  PushReceiver receiver(accept_all());
  PushRig rig;
  broker::SubscriptionConfig config;
  config.push = broker::PushConfig{.form = broker::PushForm::bare_with_head};
  rig.create(receiver.url(), config);
  rig.publish("k", {"raw"});
  ASSERT_TRUE(rig.await_acked(1));
  EXPECT_EQ(receiver.requests()[0].body, "raw");
  EXPECT_THAT(receiver.requests()[0].head, HasSubstr("x-goog-pubsub-ordering-key: k"));
}

TEST_F(CourierTest, ClosingWaitsForThePushesUnderWay) {
  HeldAnswers held;
  PushReceiver receiver([&](const PushedRequest&, const PushPeer& peer) {
    held.wait();
    peer.answer(200);
  });
  PushRig rig;
  rig.create(receiver.url());
  rig.publish("k", numbered("m", 2));
  ASSERT_TRUE(eventually([&] { return receiver.count() == 1; }));
  std::atomic<bool> was_complete{false};
  testing_support::Background closing(
      [&] { was_complete = rig.courier().close(TimePoint::max()); });
  let_others_fall_asleep();
  EXPECT_FALSE(closing.is_finished());
  held.release();
  ASSERT_TRUE(closing.finished());
  EXPECT_TRUE(was_complete);
  ASSERT_TRUE(rig.await_acked(1));
  EXPECT_EQ(receiver.count(), 1u);
}

TEST_F(CourierTest, WhatHasNoAnswerAtTheEndIsGivenBackAndHasNotFailed) {
  HeldAnswers held;
  PushReceiver receiver([&](const PushedRequest&, const PushPeer& peer) {
    held.wait();
    peer.answer(200);
  });
  PushRig rig;
  const std::string letters = "projects/test/topics/letters";
  ASSERT_TRUE(rig.broker().create_topic({.name = letters}));
  broker::SubscriptionConfig config;
  config.dead_letter_policy = broker::DeadLetterPolicy{letters, 5};
  rig.create(receiver.url(), config);
  rig.publish("k", {"m"});
  ASSERT_TRUE(eventually([&] { return receiver.count() == 1; }));
  EXPECT_FALSE(rig.courier().close(TimePoint::min()));
  ASSERT_TRUE(eventually([&] {
    const auto stats = rig.broker().subscription_stats(PushRig::kPushed);
    return stats && stats->leased == 0 && stats->waiting == 1;
  }));
  held.release();
  rig.replace_courier();
  ASSERT_TRUE(rig.await_acked(1));
  EXPECT_EQ(receiver.requests().back().attempt, 1);
}

}  // namespace
}  // namespace ordo::push_http

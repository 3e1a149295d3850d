// Looking at keys and messages of a partition: what is shown, in pieces, and that nothing happens
// by it.
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/partition_rig.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;
using Verb = OperateKey::Verb;

std::string text_of(const PeekedMessage& message) {
  if (!message.message) return "(unreadable)";
  return std::string(decode_message(message.message.body())->data);
}

std::string word_of(PeekState state) {
  switch (state) {
    case PeekState::ready:
      return "ready";
    case PeekState::in_flight:
      return "in flight";
    case PeekState::waiting:
      return "waiting";
    case PeekState::blocked:
      return "blocked";
  }
  return "";
}

std::string shown(const PeekReply& reply) {
  std::string text;
  for (const PeekedMessage& message : reply.messages)
    text += (text.empty() ? "" : ", ") + text_of(message) + " " + word_of(message.state);
  return text;
}

std::string names(const std::vector<KeyFacts>& keys) {
  std::string text;
  for (const KeyFacts& key : keys)
    text += (text.empty() ? "" : " ") + key.key;
  return text;
}

// ------------------------------------------------------------------------------------ keys

TEST(PartitionLookTest, EveryKeyIsListedOnceWhateverThePieces) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  for (int key = 0; key < 50; ++key)
    rig.publish(numbered("k", key), {numbered("m", key)});
  for (const std::uint32_t lanes_max : {1u, 7u, 50u, 1'000u}) {
    ListKeys list;
    list.lanes_max = lanes_max;
    std::set<std::string> seen;
    for (const KeyFacts& key : rig.keys(list))
      EXPECT_TRUE(seen.insert(key.key).second) << key.key << " twice, by " << lanes_max;
    EXPECT_EQ(seen.size(), 50u);
  }
}

TEST(PartitionLookTest, OnePieceLooksAtNoMoreThanItMay) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  for (int key = 0; key < 10; ++key)
    rig.publish(numbered("k", key), {"m"});
  ListKeys list;
  list.request = rig.next_request();
  list.subscription = kSubscription;
  list.lanes_max = 4;
  rig.send(list);
  const KeysReply reply = rig.take<KeysReply>().back();
  EXPECT_EQ(reply.keys.size(), 4u);
  EXPECT_EQ(reply.next, 4u);
}

TEST(PartitionLookTest, TheDeepestKeysComeFirst) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("shallow", {"a"});
  rig.publish("deep", {"b", "c", "d", "e"});
  rig.publish("middle", {"f", "g"});
  ListKeys list;
  list.order = KeyOrder::deepest;
  const std::vector<KeyFacts> keys = rig.keys(list);
  EXPECT_EQ(names(keys), "deep middle shallow");
  EXPECT_EQ(keys[0].waiting, 3u);
}

TEST(PartitionLookTest, StuckAreKeysThatFailedOrAreHeldOrWaitTooLong) {
  PartitionRig rig;
  rig.set_ack_deadline(600s);
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("busy", {"1"});
  rig.publish("failing", {"2", "3"});
  rig.publish("paused", {"4"});
  rig.nack("2");
  EXPECT_FALSE(rig.operate("paused", Verb::pause));
  ListKeys list;
  list.stuck_only = true;
  std::vector<KeyFacts> keys = rig.keys(list);
  EXPECT_EQ(names(keys), "failing paused");
  EXPECT_EQ(keys.at(0).last_failure, "nack");
  EXPECT_EQ(keys.at(0).waiting, 1u);
  EXPECT_EQ(keys.at(1).reason, BlockReason::paused);
  rig.pass(kStuckTime);
  EXPECT_EQ(names(rig.keys(list)), "busy failing paused");
}

TEST(PartitionLookTest, AKeyThatIsServedOftenIsHotAlsoWhenNothingOfItWaits) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  for (int i = 0; i < 2'000; ++i) {
    rig.publish("hot", {"h"});
    rig.ack("h");
    if (i % 50 == 0) {
      rig.publish("mild", {"m"});
      rig.ack("m");
    }
    rig.pass(1ms);
  }
  rig.publish("new", {"n"});
  ListKeys list;
  list.order = KeyOrder::hottest;
  const std::vector<KeyFacts> keys = rig.keys(list);
  ASSERT_FALSE(keys.empty());
  EXPECT_EQ(keys[0].key, "hot");
  EXPECT_EQ(keys[0].reason, BlockReason::no_message);
  EXPECT_NEAR(keys[0].per_second, 1'000, 200);
}

// ------------------------------------------------------------------------------------ peek

TEST(PartitionLookTest, SaysOfEachMessageWhatItWaitsFor) {
  PartitionRig rig;
  SubscriptionSetup setup = ordered();
  setup.config.retry_policy = RetryPolicy{10s, 10s};
  rig.subscribe(setup);
  const ConsumerNumber consumer = rig.consume(4, 1'000'000);
  rig.publish("a", {"a1", "a2"});
  rig.publish("b", {"b1", "b2"});
  rig.publish("", {"free"});
  rig.nack("b1");
  rig.publish("c", {"c1", "c2"});
  const PeekReply reply = rig.peek();
  EXPECT_EQ(shown(reply),
            "a1 in flight, a2 waiting, b1 blocked, b2 waiting, free in flight, c1 in flight, "
            "c2 waiting");
  EXPECT_EQ(reply.next, Offset());
  EXPECT_EQ(reply.messages.at(0).holder, consumer);
  EXPECT_EQ(reply.messages.at(2).reason, BlockReason::backoff);
  EXPECT_EQ(reply.messages.at(2).attempts, 1u);
}

TEST(PartitionLookTest, LookingConsumesNothing) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.publish("k", {"1", "2"});
  rig.publish("", {"3"});
  const SubscriptionStats before = rig.stats();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(shown(rig.peek()), "1 ready, 2 ready, 3 ready");  // Nobody has come to them yet.
  EXPECT_EQ(rig.stats().unread, before.unread);
  EXPECT_EQ(rig.stats().routed, 0u);
  EXPECT_EQ(rig.count_of_commits(), 2u);
  rig.consume();
  EXPECT_EQ(rig.texts(), "1 3");
}

TEST(PartitionLookTest, WhatIsAcknowledgedOrFilteredIsNotShown) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1", "2", "3"});
  rig.ack("1");
  rig.ack("2");
  EXPECT_EQ(shown(rig.peek()), "3 in flight");
}

TEST(PartitionLookTest, GoesOnWhereThePieceBeforeEnded) {
  for (const PartitionOptions& options : {PartitionOptions(), cold()}) {
    PartitionRig rig(options);
    rig.subscribe(ordered());
    for (int i = 0; i < 20; ++i)
      rig.publish(numbered("k", i % 3), {numbered("m", i)});
    std::string all;
    Peek peek;
    peek.messages_max = 3;
    peek.offsets_max = 7;
    for (int pieces = 0; pieces < 100; ++pieces) {
      const PeekReply reply = rig.peek(peek);
      ASSERT_FALSE(reply.error);
      EXPECT_LE(reply.messages.size(), 3u);
      for (const PeekedMessage& message : reply.messages)
        all += text_of(message) + " ";
      peek.from = reply.next;
      if (peek.from == Offset()) break;
    }
    std::string wanted;
    for (int i = 0; i < 20; ++i)
      wanted += numbered("m", i) + " ";
    EXPECT_EQ(all, wanted);
  }
}

TEST(PartitionLookTest, TheMessagesOfOneKeyAloneAndTheBytesAreBounded) {
  PartitionRig rig;
  rig.subscribe(ordered());
  for (int i = 0; i < 4; ++i) {
    rig.publish("k", {numbered("k", i)});
    rig.publish("other", {numbered("o", i)});
  }
  Peek peek;
  peek.key = "k";
  EXPECT_EQ(shown(rig.peek(peek)), "k0 ready, k1 ready, k2 ready, k3 ready");
  peek.bytes_max = 1;  // The first overshoots.
  const PeekReply reply = rig.peek(peek);
  EXPECT_EQ(shown(reply), "k0 ready");
  EXPECT_GT(reply.next, Offset());
}

TEST(PartitionLookTest, WhatIsNotInMemoryIsReadOnce) {
  PartitionOptions options = cold();
  options.read_messages_max = 1'000;
  PartitionRig rig(options);
  rig.subscribe(ordered());
  for (int i = 0; i < 50; ++i)
    rig.publish("k", {numbered("m", i)});
  rig.restart();
  const std::uint64_t before = rig.count_of_reads();
  EXPECT_EQ(rig.peek().messages.size(), 50u);
  EXPECT_EQ(rig.count_of_reads(), before + 1);
}

TEST(PartitionLookTest, DamagedMessagesAreShownAsSuchAndDoNotHideTheRest) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  rig.publish("k", {"1"});
  rig.publish("k", {"2"});
  rig.publish("k", {"3"});
  rig.restart();
  ASSERT_TRUE(rig.damage(Offset(2)));
  std::string all;
  Peek peek;
  do {
    const PeekReply reply = rig.peek(peek);
    all += shown(reply) + "; ";
    peek.from = reply.next;
  } while (peek.from > Offset());
  EXPECT_EQ(all, "1 ready; (unreadable) blocked; 3 ready; ");
}

TEST(PartitionLookTest, ASubscriptionThatIsGoneIsNotFound) {
  PartitionRig rig;
  const PeekReply reply = rig.peek();
  ASSERT_TRUE(reply.error);
  EXPECT_EQ(reply.error->code, ErrorCode::not_found);
}

// The read is under way when the subscription goes.
TEST(PartitionLookTest, ALookThatWaitsForAReadIsAnsweredWhenTheSubscriptionGoes) {
  PartitionRig rig(cold());
  rig.subscribe(ordered());
  rig.publish("k", {"1"});
  rig.publish("k", {"2"});
  rig.restart();
  rig.hold_reads(true);
  Peek peek;
  peek.request = rig.next_request();
  peek.subscription = kSubscription;
  rig.send(std::move(peek));
  EXPECT_TRUE(rig.take<PeekReply>().empty());
  rig.send(Detach{kSubscription, {ErrorCode::not_found, "gone"}});
  rig.hold_reads(false);
  const auto replies = rig.take<PeekReply>();
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].error->code, ErrorCode::not_found);
}

}  // namespace
}  // namespace ordo::broker

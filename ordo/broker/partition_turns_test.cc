// How the consumers of a subscription share what there is: turns, credit, and who waits for whom.
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/partition_rig.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kManyBytes = std::uint64_t{1} << 40;

std::map<ConsumerNumber, std::size_t> count_by_consumer(PartitionRig& rig) {
  std::map<ConsumerNumber, std::size_t> counts;
  for (const auto& received : rig.take_received())
    ++counts[received.consumer];
  return counts;
}

TEST(PartitionTurnsTest, AConsumerWithALimitHasItsTurnsBesideOneWithout) {
  PartitionRig rig;
  rig.subscribe(ordered());
  const ConsumerNumber unlimited = rig.consume();
  const ConsumerNumber limited = rig.consume(10, kManyBytes);
  for (int i = 0; i < 16; ++i)
    rig.publish("", {numbered("m", i)});
  const auto counts = count_by_consumer(rig);
  EXPECT_GE(counts.at(limited), 7u);
  EXPECT_GE(counts.at(unlimited), 7u);
}

TEST(PartitionTurnsTest, OneThatComesLaterHasItsTurnsOfKeysThatOthersHadBefore) {
  for (const std::uint64_t limit : {std::uint64_t{8}, std::uint64_t{1} << 62}) {
    PartitionRig rig;
    rig.subscribe(ordered());
    rig.consume();
    constexpr int kKeys = 16;
    for (int round = 0; round < 10; ++round) {
      for (int key = 0; key < kKeys; ++key)
        rig.publish(numbered("k", key), {numbered(numbered("k", key) + "/", round)});
    }
    rig.take_received();
    const ConsumerNumber later = rig.consume(limit, limit == 8 ? kManyBytes : limit);
    std::size_t of_later = 0;
    for (int round = 0; round < 9; ++round) {
      for (int key = 0; key < kKeys; ++key)
        rig.ack(numbered(numbered("k", key) + "/", round));
      const auto counts = count_by_consumer(rig);
      const auto found = counts.find(later);
      if (found != counts.end()) {
        of_later += found->second;
        if (limit == 8) rig.allow(later, found->second, kManyBytes);
      }
    }
    EXPECT_GE(of_later, 20u) << limit;
  }
}

TEST(PartitionTurnsTest, ConsumersWithLimitsTakeTurnsWithMessagesThatComeOneByOne) {
  PartitionRig rig;
  rig.subscribe(ordered());
  std::vector<ConsumerNumber> consumers;
  for (int i = 0; i < 3; ++i)
    consumers.push_back(rig.consume(100, kManyBytes));
  for (int i = 0; i < 30; ++i) {
    rig.publish("", {numbered("m", i)});
    rig.pass(5s);
    rig.ack(numbered("m", i));
  }
  const auto counts = count_by_consumer(rig);
  for (const ConsumerNumber consumer : consumers)
    EXPECT_EQ(counts.at(consumer), 10u);
}

TEST(PartitionTurnsTest, CreditThatIsNotUsedBesideAnUnlimitedConsumerComesBackInASecond) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  const ConsumerNumber limited = rig.consume(10, kManyBytes);
  for (const char* text : {"1", "2", "3"})
    rig.publish("", {text});
  EXPECT_TRUE(rig.take<ReturnCredit>().empty());
  rig.pass(999ms);
  EXPECT_TRUE(rig.take<ReturnCredit>().empty());
  rig.pass(1ms);
  const auto returned = rig.take<ReturnCredit>();
  ASSERT_EQ(returned.size(), 1u);
  EXPECT_EQ(returned[0].consumer, limited);
  EXPECT_EQ(returned[0].messages, 9u);
}

TEST(PartitionTurnsTest, CreditComesBackAtOnceWhenTheUnlimitedConsumerGoes) {
  PartitionRig rig;
  rig.subscribe(ordered());
  const ConsumerNumber unlimited = rig.consume();
  rig.consume(10, kManyBytes);
  rig.publish("", {"1"});
  EXPECT_TRUE(rig.take<ReturnCredit>().empty());
  rig.send(CloseConsumer{unlimited, CloseConsumer::How::keep_leases});
  EXPECT_EQ(rig.take<ReturnCredit>().size(), 1u);
}

TEST(PartitionTurnsTest, OneThatWantsToKnowWhenNothingIsLeftIsToldAtOnce) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume();
  rig.send(OpenConsumer{ConsumerNumber(77), kSubscription, std::nullopt, true});
  rig.send(GrantCredit{ConsumerNumber(77), 10, kManyBytes});
  EXPECT_EQ(rig.take<ReturnCredit>().size(), 1u);
}

TEST(PartitionTurnsTest, LanesThatWaitForTheirConsumerGoOnAsItsCreditAllows) {
  PartitionRig rig;
  SubscriptionSetup setup = ordered();
  setup.config.ordered_window = 2;
  rig.subscribe(setup);
  const ConsumerNumber consumer = rig.consume(4, kManyBytes);
  for (const char* key : {"a", "b", "c", "d"})
    rig.publish(key, {std::string(key) + "1"});
  const ConsumerNumber other = rig.consume();
  for (const char* key : {"a", "b", "c", "d"})
    rig.publish(key, {std::string(key) + "2"});
  EXPECT_EQ(rig.texts(), "a1 b1 c1 d1");
  rig.allow(consumer, 1, kManyBytes);
  EXPECT_EQ(rig.texts(), "a2");
  rig.allow(consumer, 2, kManyBytes);
  EXPECT_EQ(rig.texts(), "b2 c2");
  rig.ack("d1");  // Nothing of d is out: it waits for nobody in particular.
  const auto received = rig.take_received();
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].text, "d2");
  EXPECT_EQ(received[0].consumer, other);
}

TEST(PartitionTurnsTest, EveryGrantLetsOneLaneGoOfManyThatWait) {
  PartitionRig rig;
  SubscriptionSetup setup = ordered();
  setup.config.ordered_window = 2;
  rig.subscribe(setup);
  constexpr int kLanes = 2'000;
  const ConsumerNumber consumer = rig.consume(kLanes, kManyBytes);
  for (int i = 0; i < kLanes; ++i)
    rig.publish(numbered("k", i), {numbered("1st", i)});
  rig.consume();
  for (int i = 0; i < kLanes; ++i)
    rig.publish(numbered("k", i), {numbered("2nd", i)});
  EXPECT_EQ(rig.take_received().size(), static_cast<std::size_t>(kLanes));
  for (int i = 0; i < kLanes; ++i) {
    rig.allow(consumer, 1, kManyBytes);
    const auto received = rig.take_received();
    ASSERT_EQ(received.size(), 1u);
    EXPECT_EQ(received[0].text, numbered("2nd", i));
    EXPECT_EQ(received[0].consumer, consumer);
  }
}

TEST(PartitionTurnsTest, FromPullToPushTheConsumersAreClosedAndTheirLeasesRunOn) {
  PartitionRig rig;
  rig.subscribe(ordered());
  const ConsumerNumber puller = rig.consume();
  rig.publish("k", {"first", "second"});
  EXPECT_EQ(rig.texts(), "first");
  SubscriptionSetup pushed = ordered();
  pushed.config.push = PushConfig{.endpoint = "http://localhost/"};
  rig.send(Reconfigure{pushed});
  const auto closed = rig.take<ConsumerClosed>();
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0].consumer, puller);
  EXPECT_EQ(closed[0].reason.code, ErrorCode::failed_precondition);
  rig.consume();  // Too late: it is a push subscription by now.
  EXPECT_EQ(rig.take<ConsumerClosed>().size(), 1u);
  EXPECT_EQ(rig.texts(), "");

  rig.send(OpenConsumer{ConsumerNumber(100), kSubscription, std::nullopt, false, true});
  rig.send(GrantCredit{ConsumerNumber(100), 10, kManyBytes});
  EXPECT_EQ(rig.texts(), "") << "the key is out";
  rig.ack("first");
  EXPECT_EQ(rig.texts(), "second");
  rig.send(Reconfigure{ordered()});
  EXPECT_EQ(rig.take<ConsumerClosed>().size(), 1u);
  rig.nack("second");
  rig.consume();
  EXPECT_EQ(rig.texts(), "second");
}

TEST(PartitionTurnsTest, AnotherEndpointClosesNobody) {
  PartitionRig rig;
  SubscriptionSetup pushed = ordered();
  pushed.config.push = PushConfig{.endpoint = "http://localhost/a"};
  rig.subscribe(pushed);
  rig.send(OpenConsumer{ConsumerNumber(100), kSubscription, std::nullopt, false, true});
  rig.send(GrantCredit{ConsumerNumber(100), 10, kManyBytes});
  pushed.config.push->endpoint = "http://localhost/b";
  rig.send(Reconfigure{pushed});
  EXPECT_TRUE(rig.take<ConsumerClosed>().empty());
  rig.publish("", {"m"});
  EXPECT_EQ(rig.texts(), "m");
}

}  // namespace
}  // namespace ordo::broker

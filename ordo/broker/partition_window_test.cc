// The window above one, flow control, consumers that close, filters, and cold backlogs.
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "ordo/broker/filter.h"
#include "tests/support/partition_rig.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;

SubscriptionSetup windowed(std::uint32_t window) {
  SubscriptionSetup setup = ordered();
  setup.config.ordered_window = window;
  return setup;
}

// ------------------------------------------------------------------------------------ window

TEST(PartitionWindowTest, AWindowOfThreeHasThreeOfAKeyOutstandingInOrder) {
  PartitionRig rig;
  rig.subscribe(windowed(3));
  rig.consume();
  rig.publish("k", {"1", "2", "3", "4", "5"});
  EXPECT_EQ(rig.texts(), "1 2 3");
  rig.ack("2");
  EXPECT_EQ(rig.texts(), "4");
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "5");
}

TEST(PartitionWindowTest, ANackReturnsEveryLaterOutstandingMessageAndVoidsItsAckId) {
  PartitionRig rig;
  rig.subscribe(windowed(3));
  rig.consume();
  rig.publish("k", {"1", "2", "3", "4"});
  rig.texts();
  const AckId third = rig.newest("3");
  rig.nack("2");
  EXPECT_EQ(rig.texts(), "");  // 1 is still out, and a failed message goes alone.
  EXPECT_EQ(rig.ack_id(third), SettleOutcome::stale);
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "2");
  rig.ack("2");
  EXPECT_EQ(rig.texts(), "3 4");
}

TEST(PartitionWindowTest, AnExpiryReturnsTheLaterOnesToo) {
  PartitionRig rig;
  rig.subscribe(windowed(2));
  rig.consume();
  rig.publish("k", {"1", "2", "3"});
  rig.texts();
  rig.modify("2", 60s);
  const AckId second = rig.newest("2");
  rig.pass(10s);
  EXPECT_EQ(rig.texts(), "1");
  EXPECT_EQ(rig.ack_id(second), SettleOutcome::stale);
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "2 3");
}

TEST(PartitionWindowTest, AKeyStaysWithItsConsumerWhileAnythingIsOutstanding) {
  PartitionRig rig;
  rig.subscribe(windowed(2));
  const ConsumerNumber first = rig.consume(1, 1'000'000);
  rig.publish("k", {"1", "2", "3"});
  const ConsumerNumber second = rig.consume();
  EXPECT_EQ(rig.texts(), "1");
  rig.allow(first, 1, 1'000'000);
  auto received = rig.take_received();
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].text, "2");
  EXPECT_EQ(received[0].consumer, first);
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "");
  rig.ack("2");
  received = rig.take_received();
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].consumer, second);
}

TEST(PartitionWindowTest, WithAWindowOfOneTheLastConsumerIsPreferredAndAnotherUsedWhenItIsGone) {
  PartitionRig rig;
  rig.subscribe(ordered());
  const ConsumerNumber first = rig.consume();
  rig.publish("k", {"1", "2", "3"});
  rig.consume();
  rig.ack("1");
  EXPECT_EQ(rig.take_received().back().consumer, first);
  rig.send(CloseConsumer{first});
  rig.ack("2");
  EXPECT_NE(rig.take_received().back().consumer, first);
}

// ------------------------------------------------------------------------------------ credit

TEST(PartitionCreditTest, DeliveriesStopAtTheMessagesGranted) {
  PartitionRig rig;
  rig.subscribe(ordered());
  const ConsumerNumber consumer = rig.consume(2, 1'000'000);
  rig.publish("", {"1", "2", "3"});
  EXPECT_EQ(rig.texts(), "1 2");
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "");
  const auto released = rig.take<ReleaseCredit>();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].messages, 1u);
  rig.allow(consumer, 1, 1'000'000);
  EXPECT_EQ(rig.texts(), "3");
}

TEST(PartitionCreditTest, OneMessageMayOvershootTheBytesGranted) {
  PartitionRig rig;
  rig.subscribe(ordered());
  rig.consume(10, 101);
  rig.publish("", {std::string(98, 'a'), std::string(100, 'b'), std::string(100, 'c')});
  EXPECT_EQ(rig.take_received().size(), 2u);
}

TEST(PartitionCreditTest, CreditThatIsOfNoUseIsReturnedAndAskedForAgain) {
  PartitionRig rig;
  rig.subscribe(ordered());
  const ConsumerNumber consumer = rig.consume(5, 1'000);
  EXPECT_TRUE(rig.take<ReturnCredit>().empty());  // It never had any: nothing was there.
  rig.publish("k", {"1", "2"});
  EXPECT_EQ(rig.texts(), "1");
  const auto returned = rig.take<ReturnCredit>();
  ASSERT_EQ(returned.size(), 1u);
  EXPECT_EQ(returned[0].consumer, consumer);
  EXPECT_EQ(returned[0].messages, 4u);
  rig.ack("1");
  EXPECT_EQ(rig.texts(), "2");
}

TEST(PartitionCreditTest, ABacklogWithoutConsumersCostsNoMemory) {
  PartitionOptions options;
  options.cache_bytes_max = 1'000;
  PartitionRig rig(options);
  rig.subscribe(ordered());
  for (int i = 0; i < 1'000; ++i)
    rig.publish(numbered("k", i % 10), {std::to_string(i)});
  EXPECT_LT(rig.partition_stats().memory_bytes, 2'000u);
  EXPECT_EQ(rig.stats().unread, 1'000u);
}

TEST(PartitionCreditTest, ClosingWithReleaseFreesTheLeasesAtOnce) {
  PartitionRig rig;
  rig.subscribe(ordered());
  const ConsumerNumber first = rig.consume();
  rig.publish("k", {"1", "2"});
  rig.consume();
  rig.texts();
  rig.send(CloseConsumer{first, CloseConsumer::How::release});
  EXPECT_EQ(rig.texts(), "1");
}

TEST(PartitionCreditTest, ClosingKeepsTheLeasesAndTheirAcksCount) {
  PartitionRig rig;
  rig.subscribe(ordered());
  const ConsumerNumber first = rig.consume();
  rig.publish("k", {"1", "2"});
  rig.consume();
  rig.texts();
  rig.send(CloseConsumer{first});
  EXPECT_EQ(rig.texts(), "");
  EXPECT_EQ(rig.ack("1"), SettleOutcome::done);
  EXPECT_EQ(rig.texts(), "2");
}

TEST(PartitionCreditTest, ADeadStreamsUntouchedLeasesEndAfterASecond) {
  PartitionRig rig;
  rig.subscribe(ordered());
  const ConsumerNumber first = rig.consume();
  rig.publish("a", {"touched"});
  rig.publish("b", {"untouched"});
  rig.modify("touched", 10s);
  rig.consume();
  rig.texts();
  rig.send(CloseConsumer{first, CloseConsumer::How::died});
  rig.pass(999ms);
  EXPECT_EQ(rig.texts(), "");
  rig.pass(1ms);
  EXPECT_EQ(rig.texts(), "untouched");
  rig.pass(10s);
  EXPECT_EQ(rig.stats().redeliveries, 3u);
}

TEST(PartitionCreditTest, ADeadStreamOfAnExactlyOnceSubscriptionKeepsItsLeases) {
  PartitionRig rig;
  SubscriptionSetup setup = ordered();
  setup.config.enable_exactly_once_delivery = true;
  rig.subscribe(setup);
  const ConsumerNumber first = rig.consume();
  rig.publish("k", {"1"});
  rig.consume();
  rig.texts();
  rig.send(CloseConsumer{first, CloseConsumer::How::died});
  rig.pass(9s);
  EXPECT_EQ(rig.texts(), "");
  rig.pass(1s);
  EXPECT_EQ(rig.texts(), "1");
}

TEST(PartitionCreditTest, LeasesAreBoundedWhateverTheCredit) {
  PartitionOptions options;
  options.leases_max = 3;
  PartitionRig rig(options);
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("", {"1", "2", "3", "4"});
  EXPECT_EQ(rig.texts(), "1 2 3");
  rig.ack("2");
  EXPECT_EQ(rig.texts(), "4");
}

TEST(PartitionCreditTest, APublishBeyondTheBoundIsRefusedAndLaterOnesGo) {
  PartitionOptions options;
  options.pending_publish_bytes_max = 100;
  PartitionRig rig(options);
  rig.hold_commits(true);
  rig.publish("k", {std::string(80, 'a')});
  rig.publish("k", {std::string(80, 'b')});
  EXPECT_EQ(rig.take<PublishReply>().at(0).first_id.error().code, ErrorCode::resource_exhausted);
  rig.hold_commits(false);
  rig.publish("k", {std::string(80, 'c')});
  EXPECT_EQ(rig.take<PublishReply>().size(), 2u);
}

TEST(PartitionCreditTest, DetachingClosesTheConsumersAndForgetsTheRows) {
  PartitionRig rig;
  rig.subscribe(ordered());
  const ConsumerNumber consumer = rig.consume();
  rig.publish("k", {"1"});
  rig.send(Detach{kSubscription, Error{ErrorCode::not_found, "deleted"}});
  const auto closed = rig.take<ConsumerClosed>();
  ASSERT_EQ(closed.size(), 1u);
  EXPECT_EQ(closed[0].consumer, consumer);
  EXPECT_EQ(rig.ack("1"), SettleOutcome::stale);
}

// ------------------------------------------------------------------------------------ reading

TEST(PartitionReadTest, AColdBacklogIsReadAndDeliveredInOrderPerKey) {
  PartitionOptions options;
  options.cache_bytes_max = 1;
  options.ready_bytes_max = 1;
  options.read_messages_max = 7;
  PartitionRig rig(options);
  rig.subscribe(ordered());
  for (int i = 0; i < 300; ++i)
    rig.publish(numbered("k", i % 3), {std::to_string(i)});
  rig.restart();
  rig.consume();
  EXPECT_EQ(rig.texts(), "0 1 2");
  for (int i = 0; i < 297; ++i) {
    rig.ack(std::to_string(i));
    ASSERT_EQ(rig.texts(), std::to_string(i + 3));
  }
}

TEST(PartitionReadTest, KeysThatGoOnSideBySideShareTheirReads) {
  PartitionOptions options;
  options.cache_bytes_max = 1;
  PartitionRig rig(options);
  rig.subscribe(ordered());
  for (int i = 0; i < 20'000; ++i)
    rig.publish(numbered("k", i % 200), {std::to_string(i)});
  rig.restart();
  rig.consume();
  std::size_t count = 0;
  for (auto received = rig.take_received(); !received.empty(); received = rig.take_received()) {
    Acknowledge acknowledge{rig.next_request(), true, {}};
    for (const auto& one : received)
      acknowledge.ids.push_back(one.delivery.ack_id);
    count += received.size();
    rig.send(std::move(acknowledge));
  }
  EXPECT_EQ(count, 20'000u);
  EXPECT_LT(rig.count_of_reads(), 2'000u);
}

TEST(PartitionReadTest, AReadThatFailedIsTriedAgainAndNothingOvertakesItsMessage) {
  struct Faults : StoreFaults {
    bool fails = false;
    std::optional<Error> on_read(PartitionAddress, Offset) override {
      if (!fails) return std::nullopt;
      return Error{ErrorCode::unavailable, "the read failed"};
    }
  } faults;
  PartitionOptions options;
  options.cache_bytes_max = 1;
  options.ready_bytes_max = 1;
  PartitionRig rig(options, &faults);
  rig.subscribe(ordered());
  rig.consume();
  rig.publish("k", {"1"});
  rig.publish("k", {"2"});
  rig.publish("x", {"x"});
  rig.texts();
  faults.fails = true;
  rig.nack("1");
  EXPECT_EQ(rig.texts(), "");
  EXPECT_EQ(rig.blocked_keys().at(0).last_failure, "could not be read");
  faults.fails = false;
  rig.pass(1s);
  EXPECT_EQ(rig.texts(), "1");
}

TEST(PartitionReadTest, FilteredMessagesNeverBlockAndAreNotCountedAsAcked) {
  PartitionRig rig;
  SubscriptionSetup setup = ordered();
  setup.filter = std::make_shared<Filter>(Filter::parse("attributes:wanted").value());
  rig.subscribe(setup);
  rig.consume();
  Publish publish{rig.next_request(), {}};
  for (const char* text : {"1", "2", "3", "4"}) {
    NewMessage message{.data = text, .attributes = {}, .ordering_key = "k"};
    if (text[0] % 2 == 0) message.attributes.emplace_back("wanted", "yes");
    publish.messages.push_back(encode_message(message).value());
  }
  rig.send(std::move(publish));
  EXPECT_EQ(rig.texts(), "2");
  rig.ack("2");
  EXPECT_EQ(rig.texts(), "4");
  rig.ack("4");
  EXPECT_EQ(rig.stats().filtered, 2u);
  EXPECT_EQ(rig.stats().acked, 2u);
  EXPECT_EQ(rig.stats().acked_intervals, 0u);
}

}  // namespace
}  // namespace ordo::broker

// What is left of a broker: handles that outlive it, topics that are gone, options that changed.
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/flow/broker_rig.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;
using broker::AckId;
using broker::Delivery;
using broker::SettleOutcome;
using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::Background;
using testing_support::BrokerRig;
using testing_support::eventually;
using testing_support::HangingDisk;
using testing_support::kPatience;
using testing_support::kSubscription;
using testing_support::kTopic;
using testing_support::StoreKind;
using testing_support::Watchdog;

TEST(BrokerEndTest, ClosingWhileTheStoreHangsAnswersEverybodyAndSaysWhatItWaitsFor) {
  const Watchdog watchdog("ClosingWhileTheStoreHangsAnswersEverybodyAndSaysWhatItWaitsFor");
  HangingDisk disk;
  std::atomic<int> named = 0;
  BrokerOptions options;
  options.on_error = [&](const Error& error) {
    if (error.code == ErrorCode::deadline_exceeded) ++named;
  };
  BrokerRig rig(StoreKind::memory, options);
  rig.set_faults(&disk);
  rig.restart();
  rig.create();
  rig.publish("k", {"1"});
  const ReceivedMessage message = rig.pull_one();
  disk.set_hanging(true);
  std::atomic<int> publishes = 0;
  std::vector<broker::MessageBody> bodies;
  bodies.push_back(*broker::encode_message({.data = "2", .ordering_key = "k"}));
  rig.broker().publish(kTopic, std::move(bodies), [&](const Result<broker::MessageId>& id) {
    publishes = !id && id.error().code == ErrorCode::unavailable ? 1 : 2;
  });
  std::atomic<bool> is_complete = true;
  Background acker([&] { (void)rig.broker().acknowledge(kSubscription, {message.ack_id()}); });
  Background creator([&] {
    broker::TopicConfig topic;
    topic.name = kTopic + "-more";
    (void)rig.broker().create_topic(topic);
  });
  Background closer([&] { is_complete = rig.broker().close(rig.clock().now() + 1s); });
  ASSERT_TRUE(eventually([&] {
    rig.clock().advance(100ms);
    return publishes == 1 && acker.is_finished() && named == 1;
  }));
  EXPECT_FALSE(closer.is_finished()) << "the store has not come back";
  disk.set_hanging(false);
  EXPECT_TRUE(closer.finished());
  EXPECT_TRUE(creator.finished());
  EXPECT_FALSE(is_complete);
}

TEST(BrokerEndTest, ChangesOfTheCatalogThatTheStoreHeldUpAreAnsweredAfterTheEnd) {
  const Watchdog watchdog("ChangesOfTheCatalogThatTheStoreHeldUpAreAnsweredAfterTheEnd");
  HangingDisk disk;
  BrokerRig rig(StoreKind::memory);
  rig.set_faults(&disk);
  rig.restart();
  rig.create();
  rig.publish("k", {"1"});
  const ReceivedMessage message = rig.pull_one();
  Broker& broker = rig.broker();
  const std::string topic = kTopic + "-new";
  disk.set_hanging(true);
  Background creator([&] { EXPECT_TRUE(broker.create_topic({.name = topic})); });
  ASSERT_TRUE(disk.await_write());
  // They wait for the one that is being made, and some need its partitions.
  std::vector<std::unique_ptr<Background>> waiting;
  const auto behind = [&](const auto& change) {
    waiting.push_back(std::make_unique<Background>([change] { EXPECT_FALSE(change()); }));
    testing_support::let_others_fall_asleep();
  };
  behind(
      [&] { return broker.create_subscription({.name = kSubscription + "-new", .topic = topic}); });
  behind([&] {
    return broker.update_topic({.name = topic, .retention = 1h}, {"message_retention_duration"});
  });
  behind(
      [&] { return broker.create_snapshot({.name = "projects/test/snapshots/s"}, kSubscription); });
  behind([&] { return broker.seek(kSubscription, rig.clock().wall_now()); });
  behind([&] {
    return broker.update_subscription({.name = kSubscription, .ack_deadline = 20s},
                                      {"ack_deadline_seconds"});
  });
  behind([&] { return broker.detach_subscription(kSubscription); });
  behind([&] { return broker.delete_subscription(kSubscription); });
  behind([&] { return broker.delete_topic(topic); });
  behind([&] { return broker.create_topic({.name = kTopic + "-other"}); });
  Background acker([&] { (void)broker.acknowledge(kSubscription, {message.ack_id()}); });
  testing_support::let_others_fall_asleep();
  Background closer([&] { EXPECT_FALSE(broker.close(rig.clock().now() + 1s)); });
  ASSERT_TRUE(eventually([&] {
    rig.clock().advance(100ms);
    return acker.is_finished();
  }));
  disk.let_one_through();  // The next write hangs again, and with it whoever closes.
  EXPECT_TRUE(creator.finished());
  for (const auto& change : waiting)
    EXPECT_TRUE(change->finished());
  disk.set_hanging(false);
  EXPECT_TRUE(closer.finished());
}

TEST(BrokerEndTest, AcksThatWaitBehindACommitAreStoredWhenTheBrokerCloses) {
  const Watchdog watchdog("AcksThatWaitBehindACommitAreStoredWhenTheBrokerCloses");
  HangingDisk disk;
  BrokerRig rig(StoreKind::memory);
  rig.set_faults(&disk);
  rig.restart();
  rig.create({}, 1);
  rig.publish("a", {"1"});
  rig.publish("b", {"2"});
  rig.publish("c", {"3"});
  const std::vector<ReceivedMessage> messages{rig.pull_one(), rig.pull_one(), rig.pull_one()};
  auto stream =
      rig.broker().open_stream(kSubscription, {}, {.deliver = [](std::vector<Delivery>&&) {}});
  ASSERT_TRUE(stream);
  disk.set_hanging(true);
  const auto acknowledge = [&](const ReceivedMessage& message) {
    const auto outcomes = rig.broker().acknowledge(kSubscription, {message.ack_id()});
    ASSERT_TRUE(outcomes);
    EXPECT_EQ(outcomes->front(), SettleOutcome::done);
  };
  Background first([&] { acknowledge(messages[0]); });
  ASSERT_TRUE(disk.await_write());
  Background second([&] { acknowledge(messages[1]); });
  stream->acknowledge({messages[2].ack_id()});  // Nobody waits for this one.
  testing_support::let_others_fall_asleep();
  Background closer([&] { EXPECT_TRUE(rig.broker().close(TimePoint::max())); });
  testing_support::let_others_fall_asleep();
  disk.set_hanging(false);
  EXPECT_TRUE(closer.finished());
  EXPECT_TRUE(first.finished());
  EXPECT_TRUE(second.finished());
  rig.restart();
  EXPECT_THAT(rig.drain(), IsEmpty());
}

TEST(BrokerEndTest, StatsTellHowLongTheStoreHasBeenWriting) {
  const Watchdog watchdog("StatsTellHowLongTheStoreHasBeenWriting");
  HangingDisk disk;
  BrokerRig rig(StoreKind::memory);
  rig.set_faults(&disk);
  rig.restart();
  rig.create();
  EXPECT_EQ(rig.broker().stats().commit_time, 0s);
  disk.set_hanging(true);
  Background publisher([&] { (void)rig.broker().publish(kTopic, {{.data = "1"}}); });
  ASSERT_TRUE(eventually([&] {
    rig.clock().advance(1s);
    return rig.broker().stats().commit_time >= 1s;
  }));
  disk.set_hanging(false);
  EXPECT_TRUE(publisher.finished());
  EXPECT_TRUE(eventually([&] { return rig.broker().stats().commit_time == 0s; }));
}

TEST(BrokerEndTest, ASubscriberOfADeletedTopicEndsAfterItsBroker) {
  const Watchdog watchdog("ASubscriberOfADeletedTopicEndsAfterItsBroker");
  BrokerRig rig(StoreKind::memory);
  rig.create();
  std::optional<Subscriber> subscriber = std::move(*rig.broker().subscribe(
      kSubscription, [](const ReceivedMessage&) { return HandlerAnswer::ack; }));
  ASSERT_TRUE(rig.broker().delete_subscription(kSubscription));
  ASSERT_TRUE(rig.broker().delete_topic(kTopic));
  rig.close();
  subscriber.reset();
}

TEST(BrokerEndTest, AStreamOfADeletedTopicIsAnsweredAfterItsBroker) {
  const Watchdog watchdog("AStreamOfADeletedTopicIsAnsweredAfterItsBroker");
  BrokerRig rig(StoreKind::memory);
  rig.create();
  auto stream =
      rig.broker().open_stream(kSubscription, {}, {.deliver = [](std::vector<Delivery>&&) {}});
  ASSERT_TRUE(stream);
  rig.publish("k", {"1"});
  ASSERT_TRUE(eventually([&] { return rig.stats().leased == 1; }));
  AckId id;
  id.subscription = rig.stats().subscription;
  ASSERT_TRUE(rig.broker().delete_subscription(kSubscription));
  ASSERT_TRUE(rig.broker().delete_topic(kTopic));
  rig.close();
  std::promise<SettleOutcome> outcome;
  stream->acknowledge(
      {id}, [&](std::vector<SettleOutcome>&& outcomes) { outcome.set_value(outcomes.front()); });
  EXPECT_NE(outcome.get_future().get(), SettleOutcome::done);
}

TEST(BrokerEndTest, MessagesThatWaitForTheirBatchAreAnsweredWhenTheBrokerCloses) {
  const Watchdog watchdog("MessagesThatWaitForTheirBatchAreAnsweredWhenTheBrokerCloses");
  BrokerRig rig(StoreKind::memory);
  rig.create();
  Publisher publisher = std::move(*rig.broker().publisher(kTopic, {.batch_delay_max = 10min}));
  auto keyed = publisher.publish({.data = "1", .ordering_key = "k"});
  auto unkeyed = publisher.publish({.data = "2"});
  rig.broker().close(TimePoint::max());
  for (auto* waiting : {&keyed, &unkeyed}) {
    ASSERT_EQ(waiting->wait_for(kPatience), std::future_status::ready);
    const auto id = waiting->get();
    ASSERT_FALSE(id);
    EXPECT_EQ(id.error().code, ErrorCode::unavailable);
  }
}

TEST(BrokerEndTest, APublisherOfAClosedBrokerAnswersAtOnce) {
  const Watchdog watchdog("APublisherOfAClosedBrokerAnswersAtOnce");
  BrokerRig rig(StoreKind::memory);
  rig.create();
  Publisher publisher = std::move(*rig.broker().publisher(kTopic, {.batch_delay_max = 10min}));
  rig.close();
  for (const std::optional<std::string>& key :
       {std::optional<std::string>(), std::optional<std::string>("k")}) {
    auto waiting = publisher.publish({.data = "1", .ordering_key = key});
    ASSERT_EQ(waiting.wait_for(kPatience), std::future_status::ready);
    EXPECT_EQ(waiting.get().error().code, ErrorCode::unavailable);
  }
}

TEST(BrokerEndTest, APublisherThatWaitsForRoomIsLetGoWhenTheBrokerCloses) {
  const Watchdog watchdog("APublisherThatWaitsForRoomIsLetGoWhenTheBrokerCloses");
  BrokerRig rig(StoreKind::memory);
  rig.create();
  Publisher publisher = std::move(
      *rig.broker().publisher(kTopic, {.batch_messages_max = 1, .outstanding_messages_max = 1}));
  std::vector<std::future<Result<broker::MessageId>>> answers;
  Background busy([&] {
    for (int i = 0; i < 10'000; ++i)
      answers.push_back(publisher.publish({.data = "x", .ordering_key = "k"}));
  });
  EXPECT_TRUE(eventually([&] { return publisher.stats().published > 10; }));
  rig.close();
  ASSERT_TRUE(busy.finished());
  for (auto& answer : answers)
    EXPECT_EQ(answer.wait_for(kPatience), std::future_status::ready);
}

TEST(BrokerEndTest, TheLongestTimesAreNoShortOnes) {
  const Watchdog watchdog("TheLongestTimesAreNoShortOnes");
  BrokerRig rig(StoreKind::memory);
  rig.create();
  rig.advance(1h);  // From here on they would pass the end of time.
  AckHandle kept;
  std::optional<Subscriber> subscriber = std::move(*rig.broker().subscribe_async(
      kSubscription, [&](const ReceivedMessage&, const AckHandle& handle) { kept = handle; },
      {.extension_max = std::chrono::nanoseconds::max()}));
  rig.publish("k", {"1"});
  ASSERT_TRUE(eventually([&] { return subscriber->stats().received == 1; }));
  EXPECT_TRUE(eventually([&] {
    rig.advance(100ms);
    return subscriber->stats().extensions >= 3;
  }));
  subscriber.reset();
  kept = {};
  Background patient([&] {
    const auto pulled = rig.broker().pull(kSubscription, {.wait = std::chrono::nanoseconds::max()});
    EXPECT_TRUE(pulled && pulled->size() == 1);
  });
  EXPECT_TRUE(patient.finished());
}

TEST(BrokerEndTest, AStreamWithoutTimeToAcknowledgeIsRefused) {
  BrokerRig rig(StoreKind::memory);
  rig.create();
  for (const std::chrono::nanoseconds bad : {-1ns, 0ns, 999'999'999ns, 601'000'000'000ns}) {
    const auto stream = rig.broker().open_stream(kSubscription, {.ack_deadline = bad},
                                                 {.deliver = [](std::vector<Delivery>&&) {}});
    ASSERT_FALSE(stream);
    EXPECT_EQ(stream.error().code, ErrorCode::invalid_argument);
  }
}

TEST(BrokerEndTest, AChangedRetentionOfATopicHoldsAtOnce) {
  const Watchdog watchdog("AChangedRetentionOfATopicHoldsAtOnce");
  BrokerRig rig(StoreKind::memory);
  rig.create({}, 1);
  const WallTime start = rig.clock().wall_now();
  ASSERT_TRUE(
      rig.broker().update_topic({.name = kTopic, .retention = 1h}, {"message_retention_duration"}));
  rig.publish("k", {"1", "2"});
  rig.drain();
  for (int i = 0; i < 5; ++i)
    rig.advance(2s);
  ASSERT_TRUE(rig.broker().seek(kSubscription, start));
  EXPECT_THAT(rig.drain(), ElementsAre("1", "2"));
}

TEST(BrokerEndTest, MorePartitionsThanOptionsAllowGoOnWhereTheyWereStored) {
  const Watchdog watchdog("MorePartitionsThanOptionsAllowGoOnWhereTheyWereStored");
  constexpr int kTopics = 200;
  const auto disk = std::make_shared<broker::MemoryDisk>();
  const auto open = [&](std::size_t partitions_max) {
    auto opened =
        Broker::open(std::make_unique<broker::MemoryStore>(disk, nullptr),
                     {.threads = 1, .callers_run = false, .partitions_max = partitions_max});
    EXPECT_TRUE(opened);
    return std::move(*opened);
  };
  const auto topic = [](int i) { return kTopic + std::to_string(i); };
  {
    const auto broker = open(kTopics);
    for (int i = 0; i < kTopics; ++i)
      ASSERT_TRUE(broker->create_topic({.name = topic(i), .partitions = 1}));
  }
  const auto broker = open(1);
  std::promise<void> go_on;
  std::atomic<int> stored{0};
  const auto publish = [&](int i, Publisher::OnPublished on_published) {
    std::vector<broker::MessageBody> bodies;
    bodies.push_back(*broker::encode_message({.data = "x"}));
    broker->publish(topic(i), std::move(bodies), std::move(on_published));
  };
  publish(0, [&](const Result<broker::MessageId>& id) {
    go_on.get_future().wait();  // Its thread looks after nobody meanwhile.
    stored += id ? 1 : 0;
  });
  for (int i = 1; i < kTopics; ++i)
    publish(i, [&](const Result<broker::MessageId>& id) { stored += id ? 1 : 0; });
  go_on.set_value();
  EXPECT_TRUE(eventually([&] { return stored == kTopics; }));
}

}  // namespace
}  // namespace ordo

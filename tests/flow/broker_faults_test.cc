// What a broker does at its bounds and with a store that is full, broken, slow or damaged; and how
// it ends.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/flow/broker_rig.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;
using broker::MessageBody;
using broker::MessageId;
using broker::SettleOutcome;
using broker::StoreFaults;
using broker::SubscriptionConfig;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::Background;
using testing_support::BrokerRig;
using testing_support::data_of;
using testing_support::eventually;
using testing_support::kSubscription;
using testing_support::kTopic;
using testing_support::StoreKind;
using testing_support::Watchdog;

// A store that does what the test says.
class Moods : public StoreFaults {
 public:
  Commit on_commit(const broker::CommitBatch& batch) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !is_slow_; });
    const bool appends = std::any_of(batch.begin(), batch.end(), [](const broker::CommitOp& op) {
      return std::holds_alternative<broker::Append>(op);
    });
    if (is_full_ && appends) return Commit::full;
    return is_broken_ ? Commit::error_not_kept : Commit::none;
  }
  void set_full(bool is_full) {
    const std::lock_guard lock(mutex_);
    is_full_ = is_full;
  }
  void set_broken() {
    const std::lock_guard lock(mutex_);
    is_broken_ = true;
  }
  void set_slow(bool is_slow) {
    const std::lock_guard lock(mutex_);
    is_slow_ = is_slow;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_full_ = false;
  bool is_broken_ = false;
  bool is_slow_ = false;
};

class BrokerFaultsTest : public testing::Test {
 protected:
  BrokerFaultsTest() {
    options_.on_error = [this](const Error& error) {
      const std::lock_guard lock(mutex_);
      errors_.push_back(error);
    };
    start();
  }
  ~BrokerFaultsTest() override { moods_.set_slow(false); }

  void start() {
    rig_.reset();
    rig_ = std::make_unique<BrokerRig>(StoreKind::memory, options_);
    rig_->set_faults(&moods_);
    rig_->restart();
  }
  std::vector<Error> errors() {
    const std::lock_guard lock(mutex_);
    return errors_;
  }
  static std::vector<MessageBody> body(const std::string& data,
                                       std::optional<std::string> key = std::nullopt) {
    std::vector<MessageBody> bodies;
    bodies.push_back(*broker::encode_message({.data = data, .ordering_key = std::move(key)}));
    return bodies;
  }
  Result<std::vector<MessageId>> publish(const std::string& data) {
    return rig_->broker().publish(kTopic, {{.data = data, .ordering_key = "k"}});
  }

  Watchdog watchdog_{"BrokerFaultsTest"};
  Moods moods_;
  std::mutex mutex_;
  std::vector<Error> errors_;
  BrokerOptions options_;
  std::unique_ptr<BrokerRig> rig_;
};

TEST_F(BrokerFaultsTest, OnAFullDiskPublishersAreRefusedAcksGoOnAndItRecoversByItself) {
  rig_->create();
  ASSERT_TRUE(publish("1"));
  ASSERT_TRUE(publish("2"));
  const ReceivedMessage first = rig_->pull_one();
  moods_.set_full(true);
  const auto refused = publish("never");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(rig_->ack(first), SettleOutcome::done);
  EXPECT_EQ(rig_->pull_one().data(), "2");

  moods_.set_full(false);
  ASSERT_TRUE(publish("3"));
  rig_->restart();
  EXPECT_THAT(rig_->drain(), ElementsAre("2", "3"));
}

TEST_F(BrokerFaultsTest, OnAFullDiskWhatAppendsNothingIsStoredWithoutTheRest) {
  rig_->create();
  for (int i = 0; i < 20; ++i)
    rig_->publish("k" + std::to_string(i), {"x"});
  const auto got = rig_->pull(100);
  ASSERT_EQ(got.size(), 20u);
  moods_.set_full(true);
  moods_.set_slow(true);  // So that acks and publishes are merged.
  std::atomic<int> refused = 0;
  for (int i = 0; i < 10; ++i)
    rig_->broker().publish(kTopic, body("never"),
                           [&](const Result<MessageId>& id) { refused += id ? 0 : 1; });
  std::vector<broker::AckId> ids;
  for (const ReceivedMessage& message : got)
    ids.push_back(message.ack_id());
  Background acking([&] {
    const auto outcomes = rig_->broker().acknowledge(kSubscription, ids);
    ASSERT_TRUE(outcomes);
    EXPECT_THAT(*outcomes, testing::Each(SettleOutcome::done));
  });
  testing_support::let_others_fall_asleep();
  moods_.set_slow(false);
  ASSERT_TRUE(acking.finished());
  ASSERT_TRUE(eventually([&] { return refused == 10; }));
  rig_->restart();
  EXPECT_THAT(rig_->drain(), IsEmpty());
}

TEST_F(BrokerFaultsTest, ABrokenStoreEndsEverythingWithUnavailableAndSaysWhy) {
  rig_->create();
  ASSERT_TRUE(publish("1"));
  moods_.set_broken();
  const auto refused = publish("2");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_EQ(publish("3").error().code, ErrorCode::unavailable);
  EXPECT_FALSE(rig_->broker().stats().failure.empty());
  ASSERT_TRUE(eventually([&] { return !errors().empty(); }));
  EXPECT_EQ(errors().size(), 1u);
  const auto created = rig_->broker().create_topic({.name = "projects/test/topics/another"});
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, ErrorCode::unavailable);
}

TEST_F(BrokerFaultsTest, AnAckThatCouldNotBeStoredIsNotConfirmed) {
  rig_->create();
  ASSERT_TRUE(publish("1"));
  const ReceivedMessage first = rig_->pull_one();
  moods_.set_broken();
  EXPECT_EQ(rig_->ack(first), SettleOutcome::not_now);
}

TEST_F(BrokerFaultsTest, RequestsThatWaitForASlowStoreAreMergedIntoOneWrite) {
  rig_->create();
  const std::uint64_t commits_before = rig_->broker().stats().commits;
  moods_.set_slow(true);
  std::atomic<int> stored = 0;
  for (int i = 0; i < 200; ++i)
    rig_->broker().publish(kTopic, body("x"),
                           [&](const Result<MessageId>& id) { stored += id ? 1 : 0; });
  testing_support::let_others_fall_asleep();
  moods_.set_slow(false);
  ASSERT_TRUE(eventually([&] { return stored == 200; }));
  EXPECT_LE(rig_->broker().stats().commits - commits_before, 20u);
}

TEST_F(BrokerFaultsTest, PublishesBeyondTheMemoryBoundAreRefusedNotKept) {
  options_.memory_max = 16u << 20;  // 2 MiB of publishes.
  start();
  rig_->create();
  moods_.set_slow(true);
  std::atomic<int> stored = 0;
  std::atomic<int> refused = 0;
  for (int i = 0; i < 10; ++i) {
    rig_->broker().publish(
        kTopic, body(std::string(500'000, 'x')), [&](const Result<MessageId>& id) {
          const bool is_full = !id && id.error().code == ErrorCode::resource_exhausted;
          stored += id ? 1 : 0;
          refused += is_full ? 1 : 0;
        });
  }
  EXPECT_EQ(refused, 6);
  moods_.set_slow(false);
  ASSERT_TRUE(eventually([&] { return stored == 4; }));
  EXPECT_EQ(rig_->drain().size(), 4u);
}

// The bound of memory is small here, so that tails have to leave it.
TEST_F(BrokerFaultsTest, AThousandBlockedKeysWithLongTailsStayWithinMemoryAndHoldUpNobody) {
  options_.memory_max = 64u << 20;
  options_.partitions_max = 4;
  start();
  rig_->create();
  constexpr int kBlocked = 1000;
  auto blocker = rig_->broker().open_stream(kSubscription, {.messages_max = kBlocked},
                                            {.deliver = [](std::vector<broker::Delivery>&&) {}});
  ASSERT_TRUE(blocker);
  for (int key = 0; key < kBlocked; ++key)
    rig_->publish("blocked" + std::to_string(key), std::vector<std::string>(100, "x"));
  ASSERT_TRUE(eventually([&] { return rig_->stats().leased == kBlocked; }));

  std::atomic<int> handled = 0;
  auto subscriber = rig_->broker().subscribe(kSubscription, [&](const ReceivedMessage& message) {
    EXPECT_EQ(message.key().substr(0, 4), "free");
    ++handled;
    return HandlerAnswer::ack;
  });
  ASSERT_TRUE(subscriber);
  for (int i = 0; i < 200; ++i)
    rig_->publish("free" + std::to_string(i % 20), {"y", "y", "y", "y", "y"});
  ASSERT_TRUE(eventually([&] { return handled == 1000; })) << handled;
  const BrokerStats stats = rig_->broker().stats();
  EXPECT_LE(stats.memory_bytes, options_.memory_max);
  EXPECT_TRUE(eventually([&] { return rig_->stats().lanes == kBlocked; }));
}

TEST_F(BrokerFaultsTest, ARequestLargerThanTheMemoryBoundIsTakenAlone) {
  options_.memory_max = 16u << 20;
  start();
  rig_->create();
  ASSERT_TRUE(publish(std::string(9'000'000, 'x')));
  EXPECT_EQ(rig_->drain().size(), 1u);
}

TEST_F(BrokerFaultsTest, DamageInTheStoreIsReportedAndNothingBehindItIsDelivered) {
  rig_->create({}, 1);
  rig_->publish("k", {"damaged", "behind"});
  ASSERT_TRUE(rig_->disk().damage({broker::TopicNumber(1), 0}, broker::Offset(1)));
  rig_->restart();
  std::atomic<int> delivered = 0;
  auto stream = rig_->broker().open_stream(kSubscription, {},
                                           {.deliver = [&](std::vector<broker::Delivery>&& batch) {
                                             delivered += static_cast<int>(batch.size());
                                           }});
  ASSERT_TRUE(stream);
  ASSERT_TRUE(eventually([&] { return !errors().empty(); }));
  for (int i = 0; i < 5; ++i)
    rig_->advance(1s);
  EXPECT_EQ(delivered, 0);
  ASSERT_EQ(errors().size(), 1u);
  EXPECT_EQ(errors().front().code, ErrorCode::data_loss);
}

// Changes a byte of what is read, behind the back of every check of the store.
class FlippingStore : public broker::Store {
 public:
  FlippingStore(std::shared_ptr<broker::MemoryDisk> disk, std::string what)
      : store_(std::move(disk)),
        what_(std::move(what)) {}

  Result<broker::Recovered> recover() override { return store_.recover(); }
  Status commit(broker::CommitBatch& batch) override { return store_.commit(batch); }
  Result<broker::ReadBatches> read(broker::PartitionAddress partition, broker::Offset from,
                                   std::size_t messages_max, std::size_t bytes_max) override {
    auto result = store_.read(partition, from, messages_max, bytes_max);
    if (!result) return result;
    for (auto& batch : result->batches) {
      auto changed = std::make_shared<broker::MessageBatch>(*batch);
      const std::size_t at = changed->bytes.find(what_);
      if (at != std::string::npos) changed->bytes[at] = '#';
      batch = changed;
    }
    return result;
  }
  Result<broker::Offset> find_time(broker::PartitionAddress partition, WallTime time) override {
    return store_.find_time(partition, time);
  }
  Status write_spill(const broker::SpillKey& key, std::string_view bytes) override {
    return store_.write_spill(key, bytes);
  }
  Result<std::string> read_spill(const broker::SpillKey& key) override {
    return store_.read_spill(key);
  }
  Status erase_spill(const broker::SpillKey& first, std::uint64_t chunk_count) override {
    return store_.erase_spill(first, chunk_count);
  }
  broker::StoreStats stats() const override { return store_.stats(); }

 private:
  broker::MemoryStore store_;
  const std::string what_;
};

TEST_F(BrokerFaultsTest, APullThatMeetsOnlyADamagedMessageSaysSoAtOnceAndTheNextGetsOthers) {
  rig_->create({}, 1);
  rig_->publish("k", {"damaged", "behind"});
  const std::shared_ptr<broker::MemoryDisk> disk = rig_->shared_disk();
  rig_->close();
  options_.clock = &rig_->clock();  // It stands still: nobody waits for its end.
  auto opened = Broker::open(std::make_unique<FlippingStore>(disk, "damaged"), options_);
  ASSERT_TRUE(opened);
  const auto first = (*opened)->pull(kSubscription, {.messages_max = 1});
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::data_loss);
  ASSERT_TRUE((*opened)->publish(kTopic, {{.data = "fine", .ordering_key = "other"}}));
  const auto second = (*opened)->pull(kSubscription, {.messages_max = 1});
  ASSERT_TRUE(second);
  EXPECT_THAT(data_of(*second), ElementsAre("fine"));
}

TEST_F(BrokerFaultsTest, ADamagedMessageIsNeverDeliveredItsKeyIsBlockedAndOthersFlow) {
  rig_->create({}, 1);
  rig_->publish("k", {"damaged", "behind"});
  rig_->publish("other", {"fine"});
  rig_->publish(std::nullopt, {"free"});
  const std::shared_ptr<broker::MemoryDisk> disk = rig_->shared_disk();
  rig_->close();
  options_.clock = &rig_->clock();
  auto opened = Broker::open(std::make_unique<FlippingStore>(disk, "damaged"), options_);
  ASSERT_TRUE(opened);
  std::mutex mutex;
  std::vector<std::string> seen;
  auto subscriber = (*opened)->subscribe(kSubscription, [&](const ReceivedMessage& message) {
    const std::lock_guard lock(mutex);
    seen.emplace_back(message.data());
    return HandlerAnswer::ack;
  });
  ASSERT_TRUE(subscriber);
  ASSERT_TRUE(eventually([&] {
    const auto stats = (*opened)->subscription_stats(kSubscription);
    return stats && stats->acked == 2;
  }));
  EXPECT_THAT(seen, testing::UnorderedElementsAre("fine", "free"));
  ASSERT_EQ(errors().size(), 1u);
  EXPECT_EQ(errors().front().code, ErrorCode::data_loss);
  EXPECT_THAT(errors().front().message, HasSubstr("'k'"));
  EXPECT_EQ((*opened)->stats().damaged, 1u);
  const auto blocked = (*opened)->blocked_keys(kSubscription);
  ASSERT_TRUE(blocked);
  ASSERT_EQ(blocked->size(), 1u);
  EXPECT_EQ(blocked->front().key, "k");
  EXPECT_EQ(blocked->front().reason, broker::BlockReason::data_loss);
}

TEST_F(BrokerFaultsTest, ASubscriberWithRoomForOneIsNotHeldUpByADamagedMessageWhichCanBeSkipped) {
  SubscriptionConfig config;
  config.ordered_window = 2;
  rig_->create(config, 1);
  rig_->publish("k", {"damaged", "behind"});
  rig_->publish("other", {"fine"});
  const std::shared_ptr<broker::MemoryDisk> disk = rig_->shared_disk();
  rig_->close();
  options_.clock = &rig_->clock();  // It stands still: nothing waits for a lease to end.
  auto opened = Broker::open(std::make_unique<FlippingStore>(disk, "damaged"), options_);
  ASSERT_TRUE(opened);
  std::mutex mutex;
  std::vector<std::string> seen;
  const auto has_seen = [&](std::size_t count) {
    return eventually([&] {
      const std::lock_guard lock(mutex);
      return seen.size() == count;
    });
  };
  SubscriberOptions one;
  one.outstanding_messages_max = 1;
  auto subscriber = (*opened)->subscribe(
      kSubscription,
      [&](const ReceivedMessage& message) {
        const std::lock_guard lock(mutex);
        seen.emplace_back(message.data());
        return HandlerAnswer::ack;
      },
      one);
  ASSERT_TRUE(subscriber);
  ASSERT_TRUE(has_seen(1));
  ASSERT_TRUE(
      (*opened)->operate_key(kSubscription, "k", broker::OperateKey::Verb::skip_head).has_value());
  ASSERT_TRUE(has_seen(2));
  const std::lock_guard lock(mutex);
  EXPECT_THAT(seen, ElementsAre("fine", "behind"));
}

TEST_F(BrokerFaultsTest, ClosingAnswersEverythingThatIsUnderWay) {
  rig_->create();
  moods_.set_slow(true);
  std::atomic<int> answered = 0;
  for (int i = 0; i < 50; ++i)
    rig_->broker().publish(kTopic, body("x"),
                           [&](const Result<MessageId>& id) { answered += id ? 1 : 100; });
  Background closing([&] { EXPECT_TRUE(rig_->broker().close(TimePoint::max())); });
  testing_support::let_others_fall_asleep();
  const auto late = publish("late");
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::unavailable);
  moods_.set_slow(false);
  ASSERT_TRUE(closing.finished());
  EXPECT_EQ(answered, 50);
  rig_->restart();
  EXPECT_EQ(rig_->drain().size(), 50u);
}

TEST_F(BrokerFaultsTest, AfterTheEndEveryCallIsAnswered) {
  rig_->create();
  ASSERT_TRUE(publish("1"));
  Broker& broker = rig_->broker();
  ASSERT_TRUE(broker.close(TimePoint::max()));
  EXPECT_TRUE(broker.close(TimePoint::max()));
  EXPECT_EQ(publish("2").error().code, ErrorCode::unavailable);
  EXPECT_EQ(broker.pull(kSubscription).error().code, ErrorCode::unavailable);
  EXPECT_EQ(broker.create_topic({.name = "projects/test/topics/late"}).error().code,
            ErrorCode::unavailable);
  EXPECT_EQ(broker.get_topic(kTopic).error().code, ErrorCode::unavailable);
  EXPECT_EQ(broker.stats().topics, 1u);
}

TEST_F(BrokerFaultsTest, AStreamThatIsOpenWhenTheBrokerClosesIsTold) {
  rig_->create();
  std::atomic<int> code = 0;
  auto stream = rig_->broker().open_stream(
      kSubscription, {},
      {.deliver = [](std::vector<broker::Delivery>&&) {},
       .closed = [&](const Error& error) { code = static_cast<int>(error.code); }});
  ASSERT_TRUE(stream);
  ASSERT_TRUE(rig_->broker().close(TimePoint::max()));
  EXPECT_EQ(code, static_cast<int>(ErrorCode::unavailable));
}

TEST_F(BrokerFaultsTest, TheBoundsOfTheOptionsHold) {
  options_.partitions_max = 6;
  options_.consumers_max = 1;
  start();
  rig_->create();
  const auto second = rig_->broker().create_topic({.name = "projects/test/topics/second"});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::resource_exhausted);
  EXPECT_THAT(second.error().message, HasSubstr("partitions"));
  auto stream = rig_->broker().open_stream(kSubscription, {},
                                           {.deliver = [](std::vector<broker::Delivery>&&) {}});
  ASSERT_TRUE(stream);
  EXPECT_EQ(rig_->broker().pull(kSubscription).error().code, ErrorCode::resource_exhausted);
}

TEST_F(BrokerFaultsTest, OptionsThatMakeNoSenseAreNamed) {
  const auto open = [](const BrokerOptions& options) {
    auto disk = std::make_shared<broker::MemoryDisk>();
    auto opened = Broker::open(std::make_unique<broker::MemoryStore>(disk), options);
    return opened ? std::string() : opened.error().message;
  };
  EXPECT_EQ(open({}), "");
  EXPECT_THAT(open({.threads = 0}), HasSubstr("threads"));
  EXPECT_THAT(open({.reader_threads = 17}), HasSubstr("reader_threads"));
  EXPECT_THAT(open({.memory_max = 1}), HasSubstr("memory_max"));
  EXPECT_THAT(open({.partitions_max = 0}), HasSubstr("partitions_max"));
  EXPECT_THAT(open({.consumers_max = 0}), HasSubstr("consumers_max"));
  EXPECT_THAT(open({.live_bytes_max = 0}), HasSubstr("live_bytes_max"));
  EXPECT_THAT(open({.ack_deadline_min = 0s}), HasSubstr("ack_deadline_min"));
}

TEST_F(BrokerFaultsTest, ATopicThatIsStrictRefusesKeysWhileNobodyKeepsTheirOrder) {
  broker::TopicConfig topic;
  topic.name = kTopic;
  topic.strict_keys = true;
  ASSERT_TRUE(rig_->broker().create_topic(topic));
  const auto refused = publish("1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::failed_precondition);
  rig_->subscribe(kSubscription);
  EXPECT_TRUE(publish("1"));
}

TEST_F(BrokerFaultsTest, WithoutCallersThatRunPartitionsItDoesTheSame) {
  options_.callers_run = false;
  start();
  rig_->create();
  rig_->publish("k", {"1", "2", "3"});
  EXPECT_THAT(rig_->drain(), ElementsAre("1", "2", "3"));
}

TEST_F(BrokerFaultsTest, SeekingBackReplaysWhatIsRetained) {
  SubscriptionConfig config;
  config.retain_acked_messages = true;
  rig_->create(config);
  const WallTime before = rig_->clock().wall_now();
  rig_->advance(1s);
  rig_->publish("k", {"1", "2"});
  EXPECT_THAT(rig_->drain(), ElementsAre("1", "2"));
  ASSERT_TRUE(rig_->broker().seek(kSubscription, before));
  EXPECT_THAT(rig_->drain(), ElementsAre("1", "2"));
  rig_->publish("k", {"3"});
  rig_->advance(1s);
  ASSERT_TRUE(rig_->broker().seek(kSubscription, rig_->clock().wall_now()));
  EXPECT_THAT(rig_->drain(), IsEmpty());
}

TEST_F(BrokerFaultsTest, ASnapshotBringsAPositionBack) {
  rig_->create();
  rig_->publish("k", {"1", "2", "3"});
  EXPECT_EQ(rig_->ack(rig_->pull_one()), SettleOutcome::done);
  const std::string snapshot = "projects/test/snapshots/before";
  ASSERT_TRUE(rig_->broker().create_snapshot({.name = snapshot}, kSubscription));
  EXPECT_THAT(rig_->drain(), ElementsAre("2", "3"));
  rig_->restart();
  ASSERT_TRUE(rig_->broker().seek(kSubscription, snapshot));
  EXPECT_THAT(rig_->drain(), ElementsAre("2", "3"));
  ASSERT_TRUE(rig_->broker().delete_snapshot(snapshot));
  EXPECT_EQ(rig_->broker().seek(kSubscription, snapshot).error().code, ErrorCode::not_found);
}

TEST_F(BrokerFaultsTest, ADetachedSubscriptionCanNotBeConsumed) {
  rig_->create();
  ASSERT_TRUE(publish("1"));
  ASSERT_TRUE(rig_->broker().detach_subscription(kSubscription));
  EXPECT_EQ(rig_->broker().pull(kSubscription).error().code, ErrorCode::failed_precondition);
  EXPECT_TRUE(rig_->broker().get_subscription(kSubscription)->detached);
}

TEST_F(BrokerFaultsTest, ADeletedTopicLeavesItsSubscriptionsTheirBacklog) {
  rig_->create();
  rig_->publish("k", {"1", "2"});
  ASSERT_TRUE(rig_->broker().delete_topic(kTopic));
  EXPECT_EQ(publish("3").error().code, ErrorCode::not_found);
  EXPECT_EQ(rig_->broker().get_subscription(kSubscription)->topic, "_deleted-topic_");
  EXPECT_THAT(rig_->drain(), ElementsAre("1", "2"));
  ASSERT_TRUE(rig_->broker().delete_subscription(kSubscription));
  ASSERT_TRUE(rig_->broker().create_topic({.name = kTopic}));
  EXPECT_EQ(rig_->broker().stats().partitions, 4u);
}

TEST_F(BrokerFaultsTest, AFilterKeepsWhatDoesNotMatchFromASubscription) {
  SubscriptionConfig config;
  config.filter = "attributes.colour = \"red\"";
  rig_->create(config);
  ASSERT_TRUE(rig_->broker().publish(
      kTopic, {{.data = "1", .attributes = {{"colour", "red"}}, .ordering_key = "k"},
               {.data = "2", .attributes = {{"colour", "blue"}}, .ordering_key = "k"},
               {.data = "3", .attributes = {{"colour", "red"}}, .ordering_key = "k"}}));
  EXPECT_THAT(rig_->drain(), ElementsAre("1", "3"));
}

}  // namespace
}  // namespace ordo

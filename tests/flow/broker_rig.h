// BrokerRig: a broker with one topic and one ordered subscription, on a store that can be opened
// again.
//
//   BrokerRig rig(GetParam());
//   rig.publish("k", {"1", "2"});
//   std::vector<ReceivedMessage> got = rig.pull();
//   rig.ack(got);
//   rig.restart();
//
// Time is the rig's: advance() moves it.
//
// Threads: the test's.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/adapters/store_rocksdb/open_broker.h"
#include "ordo/broker.h"
#include "ordo/broker/store_memory.h"
#include "tests/support/waiting.h"

namespace ordo::testing_support {

enum class StoreKind : std::uint8_t { memory, rocksdb };

inline std::string name_of(const testing::TestParamInfo<StoreKind>& info) {
  return info.param == StoreKind::memory ? "Memory" : "RocksDB";
}

inline const std::string kTopic = "projects/test/topics/orders";
inline const std::string kSubscription = "projects/test/subscriptions/billing";

// A disk that does not come back from a write until it is let go.
class HangingDisk : public broker::StoreFaults {
 public:
  ~HangingDisk() override { set_hanging(false); }
  Commit on_commit(const broker::CommitBatch&) override {
    std::unique_lock lock(mutex_);
    is_writing_ = true;
    changed_.wait(lock, [&] { return !is_hanging_ || passes_ > 0; });
    if (is_hanging_) --passes_;
    is_writing_ = false;
    return Commit::none;
  }
  void set_hanging(bool is_hanging) {
    const std::lock_guard lock(mutex_);
    is_hanging_ = is_hanging;
    changed_.notify_all();
  }
  // The write that hangs, or the next one.
  void let_one_through() {
    const std::lock_guard lock(mutex_);
    ++passes_;
    changed_.notify_all();
  }
  // Waits until a write hangs.
  bool await_write() {
    return eventually([&] {
      const std::lock_guard lock(mutex_);
      return is_hanging_ && is_writing_ && passes_ == 0;
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_hanging_ = false;
  bool is_writing_ = false;
  int passes_ = 0;
};

class BrokerRig {
 public:
  explicit BrokerRig(StoreKind kind, BrokerOptions options = {}) : kind_(kind), options_(options) {
    options_.clock = &clock_;
    static int next = 0;
    directory_ = std::filesystem::temp_directory_path() /
                 ("ordo_broker_" + std::to_string(::getpid()) + "_" + std::to_string(next++));
    forget();  // What a process with the same number may have left when it was killed.
    open();
  }
  BrokerRig(const BrokerRig&) = delete;
  BrokerRig& operator=(const BrokerRig&) = delete;
  ~BrokerRig() {
    broker_.reset();
    forget();
  }

  // The topic, and an ordered subscription with a deadline of one second.
  void create(broker::SubscriptionConfig config = {}, std::uint32_t partitions = 4) {
    broker::TopicConfig topic;
    topic.name = kTopic;
    topic.partitions = partitions;
    ASSERT_TRUE(broker_->create_topic(topic));
    subscribe(kSubscription, std::move(config));
  }
  void subscribe(const std::string& name, broker::SubscriptionConfig config = {}) {
    config.name = name;
    config.topic = kTopic;
    config.enable_message_ordering = true;
    if (config.ack_deadline == std::chrono::seconds(10))
      config.ack_deadline = std::chrono::seconds(1);
    const auto created = broker_->create_subscription(config);
    ASSERT_TRUE(created) << created.error().message;
  }

  std::vector<broker::MessageId> publish(const std::optional<std::string>& key,
                                         const std::vector<std::string>& data) {
    std::vector<broker::NewMessage> messages;
    for (const std::string& text : data)
      messages.push_back({.data = text, .ordering_key = key});
    auto ids = broker_->publish(kTopic, messages);
    EXPECT_TRUE(ids) << ids.error().message;
    return ids ? *ids : std::vector<broker::MessageId>();
  }

  // What there is now.
  std::vector<ReceivedMessage> pull(std::size_t count_max = 100,
                                    const std::string& subscription = kSubscription) {
    auto got = broker_->pull(subscription,
                             {.messages_max = count_max, .wait = std::chrono::nanoseconds(0)});
    EXPECT_TRUE(got) << got.error().message;
    return got ? *got : std::vector<ReceivedMessage>();
  }
  // The next one; waits for it.
  ReceivedMessage pull_one(const std::string& subscription = kSubscription) {
    std::vector<ReceivedMessage> got;
    EXPECT_TRUE(eventually([&] {
      got = pull(1, subscription);
      return !got.empty();
    }));
    return got.empty() ? ReceivedMessage(broker::Delivery{}) : got.front();
  }

  broker::SettleOutcome ack(const ReceivedMessage& message,
                            const std::string& subscription = kSubscription) {
    auto outcomes = broker_->acknowledge(subscription, {message.ack_id()});
    EXPECT_TRUE(outcomes) << outcomes.error().message;
    return outcomes ? outcomes->front() : broker::SettleOutcome::not_now;
  }
  broker::SettleOutcome nack(const ReceivedMessage& message) {
    return modify(message, std::chrono::nanoseconds(0));
  }
  broker::SettleOutcome modify(const ReceivedMessage& message, std::chrono::nanoseconds deadline) {
    auto outcomes = broker_->modify_ack_deadline(kSubscription, {message.ack_id()}, deadline);
    EXPECT_TRUE(outcomes) << outcomes.error().message;
    return outcomes ? outcomes->front() : broker::SettleOutcome::not_now;
  }
  // Acknowledges everything of `subscription` until nothing is left; the data, in order.
  std::vector<std::string> drain(const std::string& subscription = kSubscription) {
    std::vector<std::string> data;
    EXPECT_TRUE(eventually([&] {
      for (const ReceivedMessage& message : pull(1000, subscription)) {
        data.emplace_back(message.data());
        EXPECT_EQ(ack(message, subscription), broker::SettleOutcome::done);
      }
      const broker::SubscriptionStats left = stats(subscription);
      return left.waiting + left.leased + left.unread == 0;
    }));
    return data;
  }
  broker::SubscriptionStats stats(const std::string& subscription = kSubscription) {
    auto stats = broker_->subscription_stats(subscription);
    EXPECT_TRUE(stats);
    return stats ? *stats : broker::SubscriptionStats();
  }

  // Time passes, for those who wait for it.
  void advance(std::chrono::nanoseconds span) {
    let_others_fall_asleep();
    clock_.advance(span);
    let_others_fall_asleep();
  }

  void close() { broker_.reset(); }
  void open() {
    broker_.reset();
    if (kind_ == StoreKind::memory) {
      auto opened = Broker::open(std::make_unique<broker::MemoryStore>(disk_, faults_), options_);
      ASSERT_TRUE(opened) << opened.error().message;
      broker_ = std::move(*opened);
    } else {
      auto opened = open_broker(directory_, options_);
      ASSERT_TRUE(opened) << opened.error().message;
      broker_ = std::move(*opened);
    }
  }
  void restart() { open(); }
  void set_faults(broker::StoreFaults* faults) { faults_ = faults; }

  Broker& broker() { return *broker_; }
  broker::MemoryDisk& disk() { return *disk_; }
  std::shared_ptr<broker::MemoryDisk> shared_disk() const { return disk_; }
  ManualClock& clock() { return clock_; }

 private:
  void forget() {
    std::filesystem::remove_all(directory_);
    std::filesystem::remove(directory_.string() + ".witness");
  }

  const StoreKind kind_;
  BrokerOptions options_;
  ManualClock clock_;
  std::filesystem::path directory_;
  std::shared_ptr<broker::MemoryDisk> disk_ = std::make_shared<broker::MemoryDisk>();
  broker::StoreFaults* faults_ = nullptr;
  std::unique_ptr<Broker> broker_;
};

inline std::vector<std::string> data_of(const std::vector<ReceivedMessage>& messages) {
  std::vector<std::string> data;
  for (const ReceivedMessage& message : messages)
    data.emplace_back(message.data());
  return data;
}

}  // namespace ordo::testing_support

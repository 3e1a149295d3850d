// ConsumerDesk: whoever takes deliveries of a subscription, over all partitions of its topic.
//
//   auto consumer = std::make_shared<ConsumerDesk>(number, subscription, hosts, settings, events);
//   consumer->open();
//   ...
//   consumer->close(CloseConsumer::How::keep_leases, [] { /* nothing will come any more */ });
//
// Its limits are split over the partitions by a credit desk, where they are used up, given back
// and asked for.
//
// Threads: any. Events are called by the partitions' threads, those of different partitions side by
//          side; within a partition in order. They must not block.
// Bounds:  its limits; one message may overshoot the bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "ordo/broker/credit_desk.h"
#include "ordo/broker/partition_io.h"

namespace ordo::broker {

class PartitionHost;
using Hosts = std::vector<std::shared_ptr<PartitionHost>>;  // Of a topic, by partition index.

struct ConsumerEvents {
  std::function<void(std::vector<Delivery>&&)> deliver;
  // At most once: the subscription is gone, or from pull to push or back.
  std::function<void(const Error&)> closed{};
  // A message that was for it is not what was published (data_loss), and is not handed out.
  std::function<void(const Error&)> kept_back{};
  // No partition has anything for it, or is about to deliver; may come often.
  std::function<void()> quiet{};
};

struct ConsumerSettings {
  CreditLimits limits{};
  std::optional<std::chrono::nanoseconds> ack_deadline{};  // The subscription's, if none.
  std::shared_ptr<const void> place{};                     // Let go of with the consumer.
  bool pushes = false;                                     // OpenConsumer::pushes.
};

class ConsumerDesk : public std::enable_shared_from_this<ConsumerDesk> {
 public:
  ConsumerDesk(ConsumerNumber number, CursorNumber subscription, Hosts hosts,
               const ConsumerSettings& settings, ConsumerEvents events);
  ConsumerDesk(const ConsumerDesk&) = delete;
  ConsumerDesk& operator=(const ConsumerDesk&) = delete;

  void open();
  // `after` is called once every partition has closed it. Later calls only do that.
  void close(CloseConsumer::How how, std::function<void()> after = {});

  // So many messages may be outstanding from now on; 0: none more. What is on its way still comes.
  // REQUIRES: its settings have a limit of messages.
  void limit_messages(std::int64_t messages);

  // Of what is delivered from now on.
  void set_ack_deadline(std::chrono::nanoseconds ack_deadline);

  ConsumerNumber number() const { return number_; }
  CursorNumber subscription() const { return subscription_; }
  const Hosts& hosts() const { return hosts_; }
  // Delivered and not ended.
  std::int64_t leased_messages() const;

  // For the hosts.
  // What a partition has leased to it; then deliver() with the same.
  void count_delivered(std::uint32_t partition, std::uint64_t messages, std::uint64_t bytes);
  void deliver(std::vector<Delivery>&& deliveries);
  void keep_back(const Error& reason);
  void want_credit(std::uint32_t partition);
  void return_credit(std::uint32_t partition);
  void release_credit(std::uint32_t partition, std::uint64_t messages, std::uint64_t bytes);
  void closed(const Error& reason);

 private:
  // What a partition was granted and has not used.
  struct Unused {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
  };

  // REQUIRE: mutex_ is held.
  void set_unused(std::uint32_t partition, Unused unused);
  void note_grants(const CreditDesk::Grants& grants);

  void send(const CreditDesk::Grants& grants);
  void opened();
  void report_if_quiet();

  const ConsumerNumber number_;
  const CursorNumber subscription_;
  const Hosts hosts_;
  const std::optional<std::chrono::nanoseconds> ack_deadline_;
  const bool pushes_;
  const std::shared_ptr<const void> place_;
  const ConsumerEvents events_;
  std::atomic<bool> is_closed_{false};

  mutable std::mutex mutex_;  // Guards all below.
  CreditDesk desk_;
  std::size_t unopened_;        // Partitions that have not seen it yet.
  std::vector<Unused> unused_;  // By partition.
  std::size_t busy_count_ = 0;  // Partitions that hold credit: they will use it or return it.
};

}  // namespace ordo::broker

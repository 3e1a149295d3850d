// SubscriberCore: the messages of a Subscriber between their delivery and their settlement.
//
//   auto core = std::make_shared<SubscriberCore>(settings, handler);
//   core->start(stream);                     // workers run, deliveries come
//   core->deliver(batch);                    // the stream's event
//   core->settle(held, HandlerAnswer::ack, {});
//
// Threads: any; owns the workers.
// Bounds:  the stream's limits.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "ordo/broker/subscriber.h"
#include "ordo/lane/keyed_queue.h"
#include "ordo/runtime/threads.h"

namespace ordo::broker {

// A delivered message that is not settled yet.
struct Held {
  explicit Held(Delivery delivery) : message(std::move(delivery)) {}

  const ReceivedMessage message;
  TimePoint extended_at;  // When its lease began, or was last extended.
  TimePoint give_up_at;   // Not extended after this.
  LaneHandle lane;        // Of its turn, if it has a key that orders.
  bool is_ordered = false;
  bool is_begun = false;  // Its handler was called.
};

struct SubscriberSettings {
  SubscriberOptions options{};
  std::chrono::nanoseconds lease{};  // How long a delivery may take without extension.
  bool is_ordered = false;           // The subscription keeps order.
  Clock* clock = nullptr;
  Timer* timer = nullptr;
};

class SubscriberCore : public std::enable_shared_from_this<SubscriberCore> {
 public:
  SubscriberCore(const SubscriberSettings& settings, AsyncHandler async, Handler handler);
  SubscriberCore(const SubscriberCore&) = delete;
  SubscriberCore& operator=(const SubscriberCore&) = delete;
  ~SubscriberCore();

  // Of the stream. deliver() may come before start().
  void deliver(std::vector<Delivery>&& deliveries);
  void closed(const Error& reason);

  void start(Stream stream);
  bool close(CloseHow how, TimePoint deadline);
  // Gives back what waits, and ends the workers.
  void end();

  bool settle(const std::shared_ptr<Held>& held, HandlerAnswer answer,
              std::function<void(Status)> done);
  SubscriberCounts stats() const;

 private:
  using HeldSet = std::unordered_set<std::shared_ptr<Held>>;

  void join();
  void work();
  void handle(const std::shared_ptr<Held>& held);
  void extend();
  void schedule_extension();
  void send_ack(const AckId& id, std::function<void(Status)> done);
  void send_nacks(std::vector<AckId> ids);

  // REQUIRE: mutex_ is held.
  std::shared_ptr<Held> take();
  bool has_ready() const { return !free_.empty() || keyed_.ready_count() > 0; }
  bool is_settled() const { return outstanding_.empty() && sending_ == 0; }
  void skip_behind(const Held& held, std::vector<AckId>& nacks);
  void give_back_waiting(std::vector<AckId>& nacks);

  const SubscriberSettings settings_;
  const AsyncHandler async_;
  const Handler handler_;
  Clock& clock_;
  Stream stream_;  // Set once, by start().

  mutable std::mutex mutex_;  // Guards all below.
  std::condition_variable work_;
  std::condition_variable settled_;
  KeyedQueue<std::string, std::shared_ptr<Held>> keyed_;
  std::deque<std::shared_ptr<Held>> free_;  // Those that keep no order.
  HeldSet outstanding_;
  std::size_t sending_ = 0;  // Answers on their way to the broker.
  bool turn_of_free_ = false;
  bool is_closing_ = false;  // Deliveries that still come are given back.
  bool is_quiet_ = false;    // None will come.
  bool is_ended_ = false;    // Nothing is settled any more.
  SubscriberCounts stats_;

  WorkerSet workers_;
};

}  // namespace ordo::broker

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
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "ordo/broker/handler_desk.h"
#include "ordo/broker/subscriber.h"
#include "ordo/runtime/threads.h"

namespace ordo::broker {

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
  void join();
  void work();
  void handle(const std::shared_ptr<Held>& held);
  void extend();
  void schedule_extension();
  bool send_ack(const std::shared_ptr<Held>& held, std::function<void(Status)> done);
  bool send_nack(const std::shared_ptr<Held>& held);
  void give_back(GivenBack back);
  void given_back(const GivenBack& sent, const std::vector<SettleOutcome>& outcomes);
  void ack_settled(const Held& held, SettleOutcome outcome, bool ends_turn);
  void extended(const std::vector<std::shared_ptr<Held>>& asked,
                const std::vector<SettleOutcome>& outcomes, TimePoint asked_at);
  void sent();
  void confirmed();

  // REQUIRES: mutex_ is held.
  bool is_settled() const { return desk_.outstanding_count() == 0 && sending_ == 0; }

  const SubscriberSettings settings_;
  const AsyncHandler async_;
  const Handler handler_;
  Clock& clock_;
  Stream stream_;  // Set once, by start().

  mutable std::mutex mutex_;  // Guards all below.
  std::condition_variable work_;
  std::condition_variable settled_;
  HandlerDesk desk_;
  std::size_t sending_ = 0;      // Answers on their way to the broker.
  std::size_t unconfirmed_ = 0;  // Of them, acks whose outcome is waited for and has not been told.
  bool is_closing_ = false;      // Deliveries that still come are given back.
  bool is_quiet_ = false;        // None will come.
  bool is_ended_ = false;        // Nothing is settled any more.
  SubscriberCounts stats_;

  WorkerSet workers_;
};

}  // namespace ordo::broker

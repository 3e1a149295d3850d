// ServiceCore: what all calls of a Service share: the broker, the form of ack ids, the thread for
// what waits, and the calls that run on until somebody ends them.
//
//   core->run(answer, [=] { give(answer, core->broker().get_topic(name)); });   // may wait
//   if (!core->add(stream)) return call->finish(closed_error());
//
// Threads: any, all calls. Owns the thread "ordo-wire".
// Bounds:  ServiceOptions.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "ordo/adapters/pubsub_wire/answer.h"
#include "ordo/adapters/pubsub_wire/service.h"
#include "ordo/broker/ack_id_text.h"
#include "ordo/runtime/loop.h"

namespace ordo::pubsub_wire {

Error closed_error();

// A call that runs on.
class OpenCall {
 public:
  OpenCall() = default;
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;
  virtual ~OpenCall() = default;

  virtual void end(const Error& reason) = 0;
};

class ServiceCore {
 public:
  ServiceCore(Broker& broker, const ServiceOptions& options);
  ServiceCore(const ServiceCore&) = delete;
  ServiceCore& operator=(const ServiceCore&) = delete;
  ~ServiceCore() { close(); }

  Broker& broker() const { return broker_; }
  const broker::AckIdText& ack_ids() const { return ack_ids_; }
  Clock& clock() const { return clock_; }

  // Runs `work`, which may wait and gives the answer, on a thread of its own. When too many wait,
  // and when this is closed before its turn, the answer is UNAVAILABLE.
  void run(const AnswerPtr& answer, std::function<void()> work);

  // Calls `work` on that thread, now and each time `interval` has passed, while it returns true. It
  // must be short. False: too much waits, or this is closed.
  [[nodiscard]] bool repeat(std::chrono::nanoseconds interval, std::function<bool()> work);

  // For names: a number that nobody else gets.
  std::uint64_t next_number() { return ++last_number_; }

  // From now on close() ends it. False: closed already. Whoever adds it removes it.
  [[nodiscard]] bool add(const std::shared_ptr<OpenCall>& call);
  void remove(const OpenCall* call);

  // So many ack ids go to the broker; false: too many are there.
  [[nodiscard]] bool begin_settling(std::size_t count);
  void end_settling(std::size_t count) { settling_.fetch_sub(count, std::memory_order_relaxed); }

  void close();
  bool is_closed() const;

 private:
  void work_again(std::chrono::nanoseconds interval, const std::function<bool()>& work);

  Broker& broker_;
  const ServiceOptions options_;
  const broker::AckIdText ack_ids_;
  Clock& clock_;
  std::atomic<std::size_t> settling_{0};
  std::atomic<std::uint64_t> last_number_{0};

  mutable std::mutex mutex_;  // Guards the two below.
  std::map<const OpenCall*, std::weak_ptr<OpenCall>> open_;
  bool is_closed_ = false;

  Loop loop_;
};

using CorePtr = std::shared_ptr<ServiceCore>;

}  // namespace ordo::pubsub_wire

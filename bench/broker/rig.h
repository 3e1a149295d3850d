// Rig: a broker on a new directory with one topic and one subscription, and what loads are made of.
//
//   Rig rig(plan, folder);
//   rig.broker().publish(kTopic, rig.bodies(7), on_published);
//
// Threads: one owner; the gate is for all.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/broker/plan.h"
#include "bench/support/measures.h"
#include "ordo/broker.h"

namespace ordo::bench {

inline const std::string kTopic = "projects/bench/topics/topic";
inline const std::string kSubscription = "projects/bench/subscriptions/subscription";

// Ends the run with what went wrong: a number of a run that failed means nothing.
[[noreturn]] void fail(const std::string& why);

class Rig {
 public:
  Rig(const Plan& plan, std::string folder);
  ~Rig();
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  Broker& broker() { return *broker_; }
  void make_names();
  // Publishes so many, in batches of the plan, without a key unless it has keys.
  void store_messages(std::uint64_t messages);

  // A batch as a publisher hands it in, encoded here; of the key with this number, or of none when
  // the plan has no keys. Each message begins with the time of the call.
  std::vector<broker::MessageBody> bodies(std::uint64_t key) const;
  std::vector<broker::MessageBody> bodies(std::uint64_t key, std::size_t count) const;

 private:
  const Plan plan_;
  const std::string folder_;
  const std::string filler_;
  std::unique_ptr<Broker> broker_;
};

// Lets so many through at a time, and counts those that left.
class Gate {
 public:
  explicit Gate(std::int64_t limit) : free_(limit) {}

  // One caller. Waits until there is room; may overshoot by less than `count`.
  void enter(std::int64_t count);
  void leave(std::int64_t count);
  // Waits until at least so many have left.
  void wait_for(std::int64_t count);
  std::int64_t left() const { return left_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> free_;
  std::atomic<std::int64_t> left_{0};
};

// The time that bodies() wrote into a message.
std::uint64_t sent_ns(const broker::Message& message);

std::uint64_t process_rss_bytes();

// Sets p10_us, p50_us and p99_us. On a busy machine the p10 is the least disturbed.
void set_latencies(Measures& measures, std::vector<double>& microseconds);

Measures run_publish(const Plan& plan, const std::string& folder);  // publish, latency.
Measures run_consume(const Plan& plan, const std::string& folder);
Measures run_flow(const Plan& plan, const std::string& folder);  // flow, blocked.
// What the process that crashes does.
[[noreturn]] void run_fill(const Plan& plan, const std::string& folder);
Measures run_backlog(const Plan& plan, const std::string& folder);

}  // namespace ordo::bench

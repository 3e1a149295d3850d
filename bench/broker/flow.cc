// Delivering and acknowledging: of what was stored before, and all the way while it is published.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "bench/broker/rig.h"
#include "bench/support/usage.h"

namespace ordo::bench {
namespace {

constexpr std::int64_t kRequestsAtATime = 64;
constexpr std::uint64_t kSampleEvery = 8;  // Messages whose latency is kept.

Stream open_stream(Rig& rig, std::function<void(std::vector<broker::Delivery>&&)> deliver) {
  broker::ConsumerEvents events;
  events.deliver = std::move(deliver);
  events.closed = [](const Error& why) { fail(why.message); };
  Result<Stream> stream = rig.broker().open_stream(kSubscription, {}, std::move(events));
  if (!stream) fail(stream.error().message);
  return std::move(*stream);
}

// Takes what is delivered, and acknowledges it at once if its key is not a blocked one.
class Consumer {
 public:
  Consumer(Rig& rig, Gate& gate) : gate_(gate) {
    stream_ = open_stream(rig, [this](std::vector<broker::Delivery>&& batch) { take(batch); });
  }

  // From now on messages are to be acknowledged; those delivered before stay as they are.
  void begin() { is_acknowledging_.store(true, std::memory_order_release); }
  std::int64_t held() const { return held_.load(std::memory_order_acquire); }
  void wait_held(std::int64_t count) const {
    for (std::int64_t held = held_.load(); held < count; held = held_.load())
      held_.wait(held);
  }
  std::vector<double> take_microseconds() {
    const std::lock_guard lock(mutex_);
    return std::exchange(microseconds_, {});
  }

 private:
  void take(const std::vector<broker::Delivery>& batch) {
    const auto count = static_cast<std::int64_t>(batch.size());
    if (!is_acknowledging_.load(std::memory_order_acquire)) {
      held_.fetch_add(count);
      held_.notify_all();
      return;
    }
    std::vector<broker::AckId> ids;
    ids.reserve(batch.size());
    for (const broker::Delivery& delivery : batch)
      ids.push_back(delivery.ack_id);
    keep_latencies(batch);
    stream_.acknowledge(std::move(ids));
    gate_.leave(count);
  }

  void keep_latencies(const std::vector<broker::Delivery>& batch) {
    const std::uint64_t now = now_ns();
    const std::lock_guard lock(mutex_);
    for (const broker::Delivery& delivery : batch) {
      if (++seen_ % kSampleEvery == 0)
        microseconds_.push_back(static_cast<double>(now - sent_ns(delivery.message)) / 1e3);
    }
  }

  Gate& gate_;
  std::atomic<bool> is_acknowledging_{false};
  std::atomic<std::int64_t> held_{0};
  std::mutex mutex_;  // Guards the two below.
  std::uint64_t seen_ = 0;
  std::vector<double> microseconds_;
  Stream stream_;  // Last: closed before the others go.
};

struct Passed {
  std::uint64_t messages = 0;
  std::uint64_t ns = 0;
  std::uint64_t cpu_ns = 0;
};

// Publishes batches of the keys in turn; each message is let go of when it was acknowledged.
Passed pass(Rig& rig, const Plan& plan, Gate& gate, std::uint64_t for_ns) {
  Passed run;
  std::uint64_t key = 0;
  const std::int64_t left_before = gate.left();
  const std::uint64_t cpu_begin = process_cpu_ns();
  const std::uint64_t begin = now_ns();
  while (now_ns() - begin < for_ns) {
    gate.enter(static_cast<std::int64_t>(plan.batch));
    rig.broker().publish(kTopic, rig.bodies(key), [](auto answer) {
      if (!answer) fail(answer.error().message);
    });
    run.messages += plan.batch;
    if (plan.keys > 0) key = (key + 1) % plan.keys;
  }
  gate.wait_for(left_before + static_cast<std::int64_t>(run.messages));
  run.ns = now_ns() - begin;
  run.cpu_ns = process_cpu_ns() - cpu_begin;
  return run;
}

// One message of each of 1,000 keys is delivered and kept; all others wait behind them.
void block_keys(Rig& rig, const Plan& plan, Consumer& consumer) {
  constexpr std::uint64_t kBlockedKeys = 1'000;
  const std::size_t batch =
      static_cast<std::size_t>(std::clamp<std::uint64_t>(plan.messages / kBlockedKeys, 1, 100));
  Gate gate(kRequestsAtATime);
  std::int64_t publishes = 0;
  for (std::uint64_t stored = 0; stored < plan.messages; stored += batch, ++publishes) {
    gate.enter(1);
    const std::uint64_t key = 1'000'000 + static_cast<std::uint64_t>(publishes) % kBlockedKeys;
    rig.broker().publish(kTopic, rig.bodies(key, batch), [&gate](auto answer) {
      if (!answer) fail(answer.error().message);
      gate.leave(1);
    });
  }
  gate.wait_for(publishes);
  consumer.wait_held(static_cast<std::int64_t>(std::min(kBlockedKeys, plan.messages)));
}

}  // namespace

Measures run_consume(const Plan& plan, const std::string& folder) {
  Rig rig(plan, folder);
  rig.make_names();
  rig.store_messages(plan.messages);
  Measures measures;
  const auto messages = static_cast<double>(plan.messages);
  std::mutex mutex;
  std::vector<broker::AckId> ids;
  ids.reserve(plan.messages);
  Gate delivered(1);
  const std::uint64_t cpu_begin = process_cpu_ns();
  const std::uint64_t begin = now_ns();
  Stream stream = open_stream(rig, [&](std::vector<broker::Delivery>&& batch) {
    const std::lock_guard lock(mutex);
    for (const broker::Delivery& delivery : batch)
      ids.push_back(delivery.ack_id);
    delivered.leave(static_cast<std::int64_t>(batch.size()));
  });
  delivered.wait_for(static_cast<std::int64_t>(plan.messages));
  const std::uint64_t delivered_ns = now_ns() - begin;
  const std::uint64_t delivered_cpu_ns = process_cpu_ns() - cpu_begin;
  measures.set("delivered_per_s", messages * 1e9 / static_cast<double>(delivered_ns));
  measures.set("deliver_cpu_us_per_message",
               static_cast<double>(delivered_cpu_ns) / 1e3 / messages);

  const std::lock_guard lock(mutex);
  Gate gate(kRequestsAtATime);
  std::int64_t requests = 0;
  const std::uint64_t acked_cpu_begin = process_cpu_ns();
  const std::uint64_t acked_begin = now_ns();
  for (std::size_t at = 0; at < ids.size(); at += plan.batch, ++requests) {
    gate.enter(1);
    const std::size_t end = std::min(at + plan.batch, ids.size());
    stream.acknowledge({ids.begin() + static_cast<long>(at), ids.begin() + static_cast<long>(end)},
                       [&gate](auto&&...) { gate.leave(1); });
  }
  gate.wait_for(requests);
  measures.set("acked_per_s", messages * 1e9 / static_cast<double>(now_ns() - acked_begin));
  measures.set("ack_cpu_us_per_message",
               static_cast<double>(process_cpu_ns() - acked_cpu_begin) / 1e3 / messages);
  return measures;
}

Measures run_flow(const Plan& plan, const std::string& folder) {
  Rig rig(plan, folder);
  rig.make_names();
  Gate gate(static_cast<std::int64_t>(plan.outstanding));
  Consumer consumer(rig, gate);
  const std::uint64_t rss_before = process_rss_bytes();
  if (plan.contender == "with") block_keys(rig, plan, consumer);
  consumer.begin();
  const std::uint64_t for_ns = plan.milliseconds * 1'000'000;
  pass(rig, plan, gate, for_ns / 4);
  consumer.take_microseconds();
  const Passed run = pass(rig, plan, gate, for_ns);
  std::vector<double> microseconds = consumer.take_microseconds();

  Measures measures;
  const auto messages = static_cast<double>(run.messages);
  measures.set("messages_per_s", messages * 1e9 / static_cast<double>(run.ns));
  measures.set("us_per_message", static_cast<double>(run.ns) / 1e3 / messages);
  measures.set("cpu_us_per_message", static_cast<double>(run.cpu_ns) / 1e3 / messages);
  set_latencies(measures, microseconds);
  const Result<broker::SubscriptionStats> stats = rig.broker().subscription_stats(kSubscription);
  if (!stats) fail(stats.error().message);
  measures.set("memory_bytes", static_cast<double>(rig.broker().stats().memory_bytes));
  measures.set("rss_growth_bytes", static_cast<double>(process_rss_bytes() - rss_before));
  return measures;
}

}  // namespace ordo::bench

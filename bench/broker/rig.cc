#include "bench/broker/rig.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>
#include <utility>

#include "bench/support/usage.h"
#include "ordo/adapters/store_rocksdb/open_broker.h"

namespace ordo::bench {

void fail(const std::string& why) {
  std::fprintf(stderr, "bench_broker: %s\n", why.c_str());
  std::_Exit(1);
}

Rig::Rig(const Plan& plan, std::string folder)
    : plan_(plan),
      folder_(std::move(folder)),
      filler_(plan.size, 'x') {
  store_rocksdb::StoreOptions store;
  store.sync = plan_.policy();
  Result<std::unique_ptr<Broker>> opened = open_broker(folder_ + "/data", {}, store);
  if (!opened) fail(opened.error().message);
  broker_ = std::move(*opened);
}

Rig::~Rig() = default;

void Rig::make_names() {
  if (const auto made = broker_->create_topic({.name = kTopic}); !made) fail(made.error().message);
  broker::SubscriptionConfig config;
  config.name = kSubscription;
  config.topic = kTopic;
  config.ack_deadline = std::chrono::seconds(600);
  config.enable_message_ordering = plan_.keys > 0;
  if (const auto made = broker_->create_subscription(config); !made) fail(made.error().message);
}

void Rig::store_messages(std::uint64_t messages) {
  Gate gate(16);
  std::int64_t publishes = 0;
  for (std::uint64_t stored = 0; stored < messages; stored += plan_.batch, ++publishes) {
    gate.enter(1);
    broker_->publish(kTopic, bodies(0), [&gate](auto answer) {
      if (!answer) fail(answer.error().message);
      gate.leave(1);
    });
  }
  gate.wait_for(publishes);
}

std::vector<broker::MessageBody> Rig::bodies(std::uint64_t key) const {
  return bodies(key, plan_.batch);
}

std::vector<broker::MessageBody> Rig::bodies(std::uint64_t key, std::size_t count) const {
  broker::NewMessage message;
  message.data = filler_;
  const std::uint64_t now = now_ns();
  std::memcpy(message.data.data(), &now, sizeof now);
  if (plan_.keys > 0) message.ordering_key = "customers/" + std::to_string(key);
  std::vector<broker::MessageBody> made;
  made.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    Result<broker::MessageBody> body = broker::encode_message(message);
    if (!body) fail(body.error().message);
    made.push_back(std::move(*body));
  }
  return made;
}

void Gate::enter(std::int64_t count) {
  for (;;) {
    const std::int64_t free = free_.load(std::memory_order_acquire);
    if (free > 0) break;
    free_.wait(free, std::memory_order_acquire);
  }
  free_.fetch_sub(count, std::memory_order_acq_rel);
}

void Gate::leave(std::int64_t count) {
  if (free_.fetch_add(count, std::memory_order_acq_rel) <= 0) free_.notify_all();
  // Last: whoever waits for it may end the gate.
  left_.fetch_add(count, std::memory_order_acq_rel);
  left_.notify_all();
}

void Gate::wait_for(std::int64_t count) {
  for (;;) {
    const std::int64_t left = left_.load(std::memory_order_acquire);
    if (left >= count) return;
    left_.wait(left, std::memory_order_acquire);
  }
}

std::uint64_t sent_ns(const broker::Message& message) {
  std::uint64_t sent = 0;
  const Result<broker::MessageView> view = broker::decode_message(message.body());
  if (!view || view->data.size() < sizeof sent) fail("a message came back without its data");
  std::memcpy(&sent, view->data.data(), sizeof sent);
  return sent;
}

std::uint64_t process_rss_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void set_latencies(Measures& measures, std::vector<double>& microseconds) {
  measures.set("p10_us", percentile(microseconds, 0.1));
  measures.set("p50_us", percentile(microseconds, 0.5));
  measures.set("p99_us", percentile(microseconds, 0.99));
}

}  // namespace ordo::bench

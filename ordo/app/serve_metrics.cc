#include <array>
#include <string>
#include <utility>
#include <vector>

#include "ordo/adapters/admin_http/metrics_text.h"
#include "ordo/app/serve_pages.h"
#include "ordo/app/status_page.h"
#include "ordo/app/version.h"

namespace ordo::app {
namespace {

using admin_http::MetricsText;

constexpr std::size_t kSubscriptionsMax = 1'000;

struct Figure {
  const char* name;
  const char* help;
  std::uint64_t value;
};

template <std::size_t N>
void add(MetricsText& metrics, const std::string& prefix, const std::array<Figure, N>& figures) {
  for (const Figure& figure : figures) {
    const std::string name = prefix + figure.name;
    if (name.ends_with("_total")) {
      metrics.counter(name, figure.help);
    } else {
      metrics.gauge(name, figure.help);
    }
    metrics.sample(figure.value);
  }
}

std::uint64_t one_if(bool is_so) {
  return is_so ? 1 : 0;
}

void add_broker(MetricsText& metrics, const BrokerStats& stats) {
  add(metrics, "ordo_",
      std::to_array<Figure>({
          {"topics", "Topics.", stats.topics},
          {"subscriptions", "Subscriptions.", stats.subscriptions},
          {"partitions", "Partitions of all topics.", stats.partitions},
          {"consumers", "Streams and pulls that are open.", stats.consumers},
          {"published_total", "Messages stored.", stats.published},
          {"publish_failures_total", "Messages refused or failed.", stats.publish_failures},
          {"publish_bytes", "Bytes of publishes under way.", stats.publish_bytes},
          {"memory_bytes", "What messages and positions take in memory.", stats.memory_bytes},
          {"commits_total", "Writes of the store.", stats.commits},
          {"commit_requests_total", "Requests merged into them.", stats.commit_requests},
          {"reads_total", "Reads of old messages.", stats.reads},
          {"damaged_total", "Deliveries kept back: their bytes have changed.", stats.damaged},
          {"failed", "1 when nothing is stored any more.", one_if(!stats.failure.empty())},
          {"store_messages", "Messages stored and not trimmed, roughly.", stats.store.messages},
          {"store_bytes", "Disk used by the store.", stats.store.disk_bytes},
          {"store_free_bytes", "Free on its disk.", stats.store.disk_free_bytes},
          {"store_full", "1 while publishes are refused for want of space.",
           one_if(stats.store.is_full)},
          {"store_syncs_total", "Synced writes.", stats.store.syncs},
          {"store_committed_bytes_total", "Bytes written.", stats.store.committed_bytes},
      }));
  metrics.gauge("ordo_commit_seconds", "How long the write under way has taken; 0: none is.");
  metrics.sample(std::chrono::duration<double>(stats.commit_time).count());
}

// One family, a sample for each subscription.
template <class Value>
void each(MetricsText& metrics, const std::vector<SubscriptionFacts>& subscriptions, Value value) {
  for (const SubscriptionFacts& subscription : subscriptions)
    metrics.sample(value(subscription.stats), {{"subscription", subscription.config.name}});
}

void add_subscriptions(MetricsText& metrics, Broker& broker) {
  using Stats = broker::SubscriptionStats;
  std::vector<SubscriptionFacts> all;
  for (broker::SubscriptionConfig& config : broker.subscription_configs()) {
    if (all.size() == kSubscriptionsMax) break;
    auto stats = broker.subscription_stats(config.name);
    if (stats) all.push_back({std::move(config), *stats});
  }
  const WallTime now = system_clock().wall_now();
  metrics.gauge("ordo_subscription_backlog", "Messages not acknowledged.");
  each(metrics, all, [](const Stats& s) { return backlog_of(s); });
  metrics.gauge("ordo_subscription_in_flight", "Messages delivered and not acknowledged.");
  each(metrics, all, [](const Stats& s) { return s.leased; });
  metrics.gauge("ordo_subscription_oldest_unacked_seconds", "Age of the oldest of them.");
  each(metrics, all, [now](const Stats& s) {
    return std::chrono::duration<double>(age_of_oldest(s, now).value_or(std::chrono::seconds(0)))
        .count();
  });
  metrics.gauge("ordo_subscription_keys", "Keys with something waiting or in flight.");
  each(metrics, all, [](const Stats& s) { return s.lanes; });
  metrics.gauge("ordo_subscription_parked_keys", "Keys out of service until somebody decides.");
  each(metrics, all, [](const Stats& s) { return s.parked_lanes; });
  metrics.counter("ordo_subscription_acked_total", "Messages acknowledged.");
  each(metrics, all, [](const Stats& s) { return s.acked; });
  metrics.counter("ordo_subscription_deliveries_total", "Deliveries.");
  each(metrics, all, [](const Stats& s) { return s.deliveries; });
  metrics.counter("ordo_subscription_redeliveries_total", "Deliveries that were not the first.");
  each(metrics, all, [](const Stats& s) { return s.redeliveries; });
  metrics.counter("ordo_subscription_dead_lettered_total", "Messages sent to a dead-letter topic.");
  each(metrics, all, [](const Stats& s) { return s.dead_lettered; });
  metrics.counter("ordo_subscription_skipped_total", "Messages given up.");
  each(metrics, all, [](const Stats& s) { return s.skipped; });
  metrics.counter("ordo_subscription_expired_total", "Messages that outlived their retention.");
  each(metrics, all, [](const Stats& s) { return s.expired; });
  metrics.counter("ordo_subscription_stale_acks_total",
                  "Acks of deliveries that are not the last.");
  each(metrics, all, [](const Stats& s) { return s.stale_acks; });
}

void add_server(MetricsText& metrics, const http2::ServerStats& stats) {
  add(metrics, "ordo_http_",
      std::to_array<Figure>({
          {"connections", "Connections now.", stats.connections_now},
          {"connections_total", "Connections served.", stats.connections_total},
          {"connections_refused_total", "Connections above the limit.", stats.connections_refused},
          {"connections_shed_total", "Idle connections closed to make room.",
           stats.connections_shed},
          {"connections_cut_off_total", "Connections reset because they took no output.",
           stats.connections_cut_off},
          {"accepts_failed_total", "Accepts the system refused.", stats.accepts_failed},
          {"received_bytes_total", "Bytes read.", stats.bytes_received},
          {"sent_bytes_total", "Bytes written.", stats.bytes_sent},
          {"calls_total", "gRPC calls, refused ones included.", stats.calls},
          {"requests_total", "Plain requests, refused ones included.", stats.requests},
          {"cancelled_total", "Calls and requests whose client went.", stats.cancelled},
          {"malformed_total", "What was not HTTP, or not gRPC.", stats.malformed},
          {"calmed_total", "Connections closed because of a flood.", stats.calmed},
          {"timed_out_total", "Connections closed because nothing moved.", stats.timed_out},
          {"input_bytes", "Bytes of requests under way.", stats.input_bytes_now},
          {"output_bytes", "Bytes of answers that are not sent yet.", stats.output_bytes_now},
      }));
}

void add_pushes(MetricsText& metrics, const push_http::CourierStats& stats) {
  add(metrics, "ordo_push_",
      std::to_array<Figure>({
          {"subscriptions", "Subscriptions that are pushed.", stats.subscriptions},
          {"connections", "Connections to endpoints, idle ones included.", stats.connections},
          {"waiting", "Messages that wait for a connection.", stats.waiting},
          {"given_back_total", "Messages not sent after all: a pause, or the end.",
           stats.given_back},
      }));
  metrics.counter("ordo_push_total", "Pushes by how they ended.");
  const std::pair<const char*, std::uint64_t> results[] = {{"accepted", stats.accepted},
                                                           {"refused", stats.refused},
                                                           {"timed_out", stats.timed_out},
                                                           {"unreachable", stats.unreachable},
                                                           {"broken", stats.broken}};
  for (const auto& [result, count] : results)
    metrics.sample(count, {{"result", result}});
}

}  // namespace

std::string serve_metrics(const ServeState& state) {
  MetricsText metrics;
  metrics.gauge("ordo_build_info", "Always 1; the labels say what runs.");
  metrics.sample(std::uint64_t{1}, {{"version", version_text()}});
  metrics.gauge("ordo_ready", "1 while requests are taken.");
  metrics.sample(one_if(state.phase.load(std::memory_order_acquire) == ServeState::Phase::ready));
  if (Broker* const broker = state.broker.load(std::memory_order_acquire)) {
    add_broker(metrics, broker->stats());
    add_subscriptions(metrics, *broker);
  }
  if (const auto* const courier = state.courier.load(std::memory_order_acquire))
    add_pushes(metrics, courier->stats());
  if (const http2::Server* const server = state.server.load(std::memory_order_acquire))
    add_server(metrics, server->stats());
  return metrics.take();
}

}  // namespace ordo::app

#include "ordo/app/gateway_metrics.h"

#include <string>

#include "ordo/adapters/admin_http/metrics_text.h"
#include "ordo/app/json_text.h"
#include "ordo/app/version.h"

namespace ordo::app {
namespace {

using admin_http::AdminReply;
using admin_http::MetricsText;

constexpr std::size_t kBlockedShown = 20;

std::string partition_name(std::size_t index) {
  return std::to_string(index);
}

// One family, a sample for each partition.
template <class Value>
void each_partition(MetricsText& metrics, const EngineStats& stats, Value&& value) {
  for (std::size_t i = 0; i < stats.partitions.size(); ++i) {
    metrics.sample(value(stats.partitions[i]), {{"partition", partition_name(i)}});
  }
}

std::uint64_t wide(std::size_t value) {
  return value;
}

void add_partitions(MetricsText& metrics, const EngineStats& stats) {
  using P = PartitionStats;
  metrics.gauge("ordo_gateway_depth", "Tasks admitted and not done with.");
  each_partition(metrics, stats, [](const P& p) { return wide(p.depth); });
  metrics.gauge("ordo_gateway_in_flight", "Tasks whose handler has begun and not ended.");
  each_partition(metrics, stats, [](const P& p) { return wide(p.in_flight); });
  metrics.gauge("ordo_gateway_ready_lanes", "Ids and uncorrelated tasks that wait for their turn.");
  each_partition(metrics, stats, [](const P& p) { return wide(p.ready_lanes); });
  metrics.gauge("ordo_gateway_lanes", "Correlation ids that have tasks.");
  each_partition(metrics, stats, [](const P& p) { return wide(p.lanes); });
  metrics.counter("ordo_gateway_admitted_total", "Tasks taken in.");
  each_partition(metrics, stats, [](const P& p) { return p.admitted; });
  metrics.counter("ordo_gateway_processed_total", "Tasks answered OK.");
  each_partition(metrics, stats, [](const P& p) { return p.processed; });
  metrics.counter("ordo_gateway_failed_total", "Tasks answered REJ error.");
  each_partition(metrics, stats, [](const P& p) { return p.failed; });
  metrics.counter("ordo_gateway_rejected_total", "Tasks not taken in, by reason.");
  for (std::size_t i = 0; i < stats.partitions.size(); ++i) {
    const P& p = stats.partitions[i];
    const std::string partition = partition_name(i);
    metrics.sample(p.rejected_busy, {{"partition", partition}, {"reason", "busy"}});
    metrics.sample(p.rejected_id_busy, {{"partition", partition}, {"reason", "id-busy"}});
    metrics.sample(p.rejected_closing, {{"partition", partition}, {"reason", "closing"}});
  }
  metrics.histogram("ordo_gateway_wait_seconds", "From admission to the begin of the handler.");
  each_partition(metrics, stats, [](const P& p) -> const Histogram& { return p.wait_ns; });
  metrics.histogram("ordo_gateway_handler_seconds", "From the begin of the handler to its end.");
  each_partition(metrics, stats, [](const P& p) -> const Histogram& { return p.handler_ns; });
}

void add_server(MetricsText& metrics, const order_tcp::ServerStats& stats) {
  const struct {
    const char* name;
    const char* help;
    std::uint64_t value;
  } counters[] = {
      {"connections_total", "Connections served.", stats.connections_total},
      {"connections_refused_total", "Connections above the limit.", stats.connections_refused},
      {"accepts_failed_total", "Accepts the system refused.", stats.accepts_failed},
      {"received_bytes_total", "Bytes read.", stats.bytes_received},
      {"sent_bytes_total", "Bytes written.", stats.bytes_sent},
      {"requests_total", "Well-formed tasks, refused ones included.", stats.requests},
      {"requests_refused_total", "Tasks refused, gaps included.", stats.requests_refused},
      {"malformed_total", "Lines and frames that were no request.", stats.malformed},
      {"replies_total", "Replies given to a connection.", stats.replies},
      {"replies_dropped_total", "Replies whose connection had gone.", stats.replies_dropped},
      {"disconnected_unread_total", "Clients cut off for not reading.", stats.disconnected_unread},
  };
  metrics.gauge("ordo_gateway_connections", "Connections now.");
  metrics.sample(stats.connections_now);
  for (const auto& [name, help, value] : counters) {
    metrics.counter(std::string("ordo_gateway_") + name, help);
    metrics.sample(value);
  }
}

void add_orders(MetricsText& metrics, const gateway::GatewayStats& stats) {
  metrics.gauge("ordo_gateway_open_orders", "Orders that are open.");
  metrics.sample(stats.open_orders);
  metrics.gauge("ordo_gateway_remembered_orders", "Orders that are closed and not forgotten yet.");
  metrics.sample(stats.remembered_orders);
  metrics.counter("ordo_gateway_decisions_total", "Decisions, by kind.");
  for (std::size_t i = 0; i < stats.outcomes.size(); ++i) {
    const std::string_view kind = gateway::name_of(static_cast<gateway::Outcome>(i));
    metrics.sample(stats.outcomes.at(i), {{"kind", kind}});
  }
  metrics.counter("ordo_gateway_order_rejects_total", "Decisions that were reject, by reason.");
  for (std::size_t i = 0; i < stats.rejects.size(); ++i) {
    const std::string_view reason = gateway::name_of(static_cast<gateway::Reject>(i));
    metrics.sample(stats.rejects.at(i), {{"reason", reason}});
  }
}

AdminReply metrics_page(const GatewayParts& parts, bool ready) {
  MetricsText metrics;
  metrics.gauge("ordo_build_info", "Always 1; the labels say what runs.");
  metrics.sample(std::uint64_t{1}, {{"version", version_text()}});
  metrics.gauge("ordo_gateway_ready", "1 while requests are taken.");
  metrics.sample(std::uint64_t{ready ? 1U : 0U});
  metrics.counter("ordo_gateway_reloads_total", "Configurations read again and taken.");
  metrics.sample(parts.reloads.load(std::memory_order_relaxed));
  metrics.counter("ordo_gateway_reloads_failed_total", "Configurations refused; the old stayed.");
  metrics.sample(parts.failed_reloads.load(std::memory_order_relaxed));
  const gateway::GatewayStats stats = parts.gateway.stats();
  add_partitions(metrics, stats.engine);
  add_orders(metrics, stats);
  add_server(metrics, parts.server.stats());
  return {.content_type = std::string(MetricsText::kContentType), .body = metrics.take()};
}

AdminReply blocked_page(const GatewayParts& parts) {
  const TimePoint now = system_clock().now();
  std::string body = "[";
  for (const BlockedId& blocked : parts.gateway.longest_blocked(kBlockedShown)) {
    std::string object = "{";
    append_number_field(object, "correlation_id", blocked.id);
    append_number_field(object, "partition", blocked.partition);
    append_number_field(object, "blocked_ns", (now - blocked.since).count());
    append_number_field(object, "behind", static_cast<long long>(blocked.behind));
    object += blocked.in_flight ? ",\"in_flight\":true}" : ",\"in_flight\":false}";
    body += (body.size() > 1 ? ",\n " : "") + object;
  }
  return {.content_type = "application/json", .body = body + "]\n"};
}

}  // namespace

admin_http::AdminReply gateway_page(const GatewayParts& parts, std::string_view path) {
  const bool ready = parts.ready.load(std::memory_order_acquire);
  if (path == "/livez") return {.body = "ok\n"};
  if (path == "/readyz" && ready) return {.body = "ready\n"};
  if (path == "/readyz") return {.status = 503, .body = "not ready: starting or draining\n"};
  if (path == "/metrics") return metrics_page(parts, ready);
  if (path == "/blocked") return blocked_page(parts);
  if (path == "/") {
    return {.body = version_text() +
                    "\n\n/metrics   figures for Prometheus\n"
                    "/blocked   the ids that have held their lane longest\n"
                    "/livez     whether the process lives\n"
                    "/readyz    whether it takes requests\n"};
  }
  return {.status = 404, .body = "nothing here; see /\n"};
}

}  // namespace ordo::app

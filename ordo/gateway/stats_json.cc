// to_json(GatewayStats): written by hand, since a product uses the standard library alone. All
// names are ours, so nothing needs escaping.
#include <string>
#include <string_view>

#include "ordo/gateway/gateway.h"

namespace ordo::gateway {
namespace {

class JsonObject {
 public:
  JsonObject& add(std::string_view name, std::uint64_t number) {
    return add_text(name, std::to_string(number));
  }
  JsonObject& add_text(std::string_view name, std::string_view json) {
    text_ += text_.empty() ? "{\"" : ",\"";
    text_.append(name).append("\":").append(json);
    return *this;
  }
  std::string text() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;  // Without the end.
};

std::string json_of(const Histogram& histogram) {
  return JsonObject()
      .add("count", histogram.count())
      .add("p50", histogram.quantile(0.5))
      .add("p99", histogram.quantile(0.99))
      .add("p999", histogram.quantile(0.999))
      .add("max", histogram.max())
      .text();
}

std::string json_of(const PartitionStats& partition) {
  return JsonObject()
      .add("depth", partition.depth)
      .add("in_flight", partition.in_flight)
      .add("ready_lanes", partition.ready_lanes)
      .add("lanes", partition.lanes)
      .add("processed", partition.processed)
      .add("failed", partition.failed)
      .text();
}

}  // namespace

std::string to_json(const GatewayStats& stats) {
  const PartitionStats total = stats.engine.total();
  JsonObject rejected;
  rejected.add(name_of(Refusal::busy), total.rejected_busy)
      .add(name_of(Refusal::id_busy), total.rejected_id_busy)
      .add(name_of(Refusal::closing), total.rejected_closing);
  JsonObject decisions;
  for (std::size_t i = 0; i < kOutcomeCount; ++i)
    decisions.add(name_of(static_cast<Outcome>(i)), stats.outcomes[i]);
  JsonObject rejects;
  for (std::size_t i = 1; i < kRejectCount; ++i)  // 0 is none.
    rejects.add(name_of(static_cast<Reject>(i)), stats.rejects[i]);
  std::string partitions = "[";
  for (const PartitionStats& partition : stats.engine.partitions) {
    if (partitions.size() > 1) partitions += ',';
    partitions += json_of(partition);
  }
  partitions += ']';
  return JsonObject()
      .add("admitted", total.admitted)
      .add("processed", total.processed)
      .add("failed", total.failed)
      .add("undone", total.undone)
      .add("depth", total.depth)
      .add("in_flight", total.in_flight)
      .add_text("rejected", rejected.text())
      .add_text("decisions", decisions.text())
      .add_text("order_rejects", rejects.text())
      .add("open_orders", stats.open_orders)
      .add("remembered_orders", stats.remembered_orders)
      .add("forgotten_early", stats.forgotten_early)
      .add_text("wait_ns", json_of(total.wait_ns))
      .add_text("handler_ns", json_of(total.handler_ns))
      .add_text("partitions", partitions)
      .text();
}

}  // namespace ordo::gateway

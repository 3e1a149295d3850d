#include "ordo/gateway/gateway.h"

#include <stdexcept>
#include <utility>

#include "ordo/core/check.h"

namespace ordo::gateway {
namespace {

std::shared_ptr<const OmsSettings> checked(OmsSettings&& settings) {
  if (const Status status = check_settings(settings); !status) {
    // tidy: allow(throw) a constructor names the bad option
    throw std::invalid_argument(status.error().message);
  }
  return std::make_shared<const OmsSettings>(std::move(settings));
}

Refusal refusal_of(Entry entry) {
  switch (entry) {
    case Entry::admitted:
      return Refusal::none;
    case Entry::busy:
      return Refusal::busy;
    case Entry::id_busy:
      return Refusal::id_busy;
    case Entry::closing:
      break;
  }
  return Refusal::closing;
}

}  // namespace

Gateway::Gateway(GatewayOptions options, ReplyPort& replies)
    : latest_(checked(std::move(options.oms))),
      before_task_(std::move(options.before_task)),
      engine_(options.engine, [&](std::size_t) {
        counts_.push_back(std::make_unique<OmsCounts>());
        return std::make_unique<OmsHandler>(
            OmsHandlerParts{symbols_, latest_, replies, *counts_.back(), before_task_});
      }) {}

Admitted Gateway::submit(Request&& request) {
  const std::int64_t id = request.correlation_id;
  const Submitted submitted = engine_.submit(id, std::move(request));
  return {refusal_of(submitted.entry), static_cast<std::int32_t>(submitted.partition)};
}

void Gateway::flush() {
  engine_.flush();
}

std::string Gateway::stats_line() const {
  return to_json(stats());
}

GatewayStats Gateway::stats() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  GatewayStats stats{.engine = engine_.stats()};
  for (const auto& counts : counts_) {
    for (std::size_t i = 0; i < kOutcomeCount; ++i)
      stats.outcomes[i] += counts->outcomes[i].value();
    for (std::size_t i = 0; i < kRejectCount; ++i)
      stats.rejects[i] += counts->rejects[i].value();
    stats.open_orders += counts->open_orders.load(kRelaxed);
    stats.remembered_orders += counts->remembered_orders.load(kRelaxed);
    stats.forgotten_early += counts->forgotten_early.load(kRelaxed);
  }
  return stats;
}

void Gateway::apply(std::shared_ptr<const OmsSettings> settings) {
  ORDO_CHECK(settings != nullptr && check_settings(*settings));
  latest_.put(std::move(settings));
}

std::vector<UndoneRequest> Gateway::drain(std::chrono::nanoseconds grace) {
  std::vector<UndoneRequest> undone;
  for (auto& left : engine_.drain(grace).undone) {
    UndoneRequest& request = undone.emplace_back();
    if (left.task) {
      request.from = left.task->from;
      request.id = std::move(left.task->id);
    }
    request.correlation_id = left.id;
    request.partition = static_cast<std::int32_t>(left.partition);
    request.in_flight = left.in_flight;
  }
  return undone;
}

}  // namespace ordo::gateway

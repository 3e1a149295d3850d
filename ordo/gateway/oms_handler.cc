#include "ordo/gateway/oms_handler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ordo/core/check.h"
#include "ordo/core/describe.h"

namespace ordo::gateway {
namespace {

constexpr std::size_t kDetailBytesMax = 200;

// What an error says, as one line that any front can write.
std::string detail_of(const std::exception_ptr& error) {
  std::string text = describe(error);
  if (text.size() > kDetailBytesMax) text.resize(kDetailBytesMax);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace

OmsHandler::OmsHandler(const OmsHandlerParts& parts)
    : parts_(parts),
      version_(parts.latest.take(settings_)),
      oms_(settings_, parts.symbols) {}

void OmsHandler::handle(const Request& request, const TaskTurn& turn) {
  if (parts_.latest.version() != version_) take_settings();
  if (parts_.before_task) parts_.before_task(request);
  decision_ = oms_.decide(request.correlation_id, request.payload.view(), turn.began);
  parts_.counts.outcomes[static_cast<std::size_t>(decision_->outcome())].add();
  if (decision_->outcome() == Outcome::rejected) {
    parts_.counts.rejects[static_cast<std::size_t>(decision_->reject_reason())].add();
  }
}

void OmsHandler::finished(Request& request, const TaskTurn& turn) noexcept {
  ORDO_CHECK(decision_.has_value());
  answer(request, turn, Refusal::none, decision_->text());
  decision_.reset();
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the engine hands it over.
void OmsHandler::failed(Request& request, const TaskTurn& turn, std::exception_ptr error) noexcept {
  answer(request, turn, Refusal::error, std::string_view(detail_of(error)));
}

void OmsHandler::batch_end() noexcept {
  show_orders();
  parts_.replies.flush();
}

void OmsHandler::run_due(TimePoint now) {
  oms_.forget(now);
  show_orders();
}

void OmsHandler::answer(Request& request, const TaskTurn& turn, Refusal refusal,
                        Words words) noexcept {
  parts_.replies.reply(Reply{.to = request.from,
                             .id = std::move(request.id),
                             .correlation_id = request.correlation_id,
                             .partition = static_cast<std::int32_t>(turn.partition),
                             .refusal = refusal,
                             .words = std::move(words),
                             .began_ns = turn.began.time_since_epoch().count(),
                             .ended_ns = turn.ended.time_since_epoch().count()});
}

void OmsHandler::take_settings() {
  version_ = parts_.latest.take(settings_);
  oms_.use(settings_);
}

void OmsHandler::show_orders() {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  parts_.counts.open_orders.store(oms_.open_count(), kRelaxed);
  parts_.counts.remembered_orders.store(oms_.remembered_count(), kRelaxed);
  parts_.counts.forgotten_early.store(oms_.forgotten_early_count(), kRelaxed);
}

}  // namespace ordo::gateway

#include "ordo/app/serve_pages.h"

#include <string_view>
#include <utility>

#include "ordo/adapters/admin_http/metrics_text.h"
#include "ordo/app/status_page.h"
#include "ordo/app/version.h"
#include "ordo/core/host_check.h"

namespace ordo::app {
namespace {

using http2::ExchangePtr;
using http2::HeaderList;
using http2::Slice;
using Phase = ServeState::Phase;

// No script, no frame, nothing from elsewhere.
HeaderList strict_headers() {
  HeaderList headers;
  headers.add("content-security-policy",
              "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
              "frame-ancestors 'none'");
  headers.add("x-content-type-options", "nosniff");
  headers.add("x-frame-options", "DENY");
  headers.add("referrer-policy", "no-referrer");
  headers.add("cross-origin-resource-policy", "same-origin");
  headers.add("cache-control", "no-store");
  return headers;
}

void answer(const ExchangePtr& exchange, unsigned status, std::string body,
            std::string_view content_type = "text/plain; charset=utf-8") {
  exchange->respond({.status = status,
                     .content_type = std::string(content_type),
                     .headers = strict_headers(),
                     .body = Slice::of(std::move(body))});
}

std::string_view phase_text(Phase phase) {
  switch (phase) {
    case Phase::starting:
      return "starting";
    case Phase::ready:
      return "ready";
    case Phase::draining:
      return "draining";
  }
  return "";
}

void answer_ready(const ExchangePtr& exchange, const ServeState& state) {
  const Phase phase = state.phase.load(std::memory_order_acquire);
  if (phase != Phase::ready) {
    answer(exchange, 503, "not ready: " + std::string(phase_text(phase)) + "\n");
  } else if (state.has_failed.load(std::memory_order_acquire)) {
    answer(exchange, 503, "not ready: nothing is stored any more, see the log\n");
  } else {
    answer(exchange, 200, "ready\n");
  }
}

}  // namespace

ServePages::ServePages(const ServeState& state)
    : state_(state),
      loop_({.name = "ordo-pages", .tasks_max = kWaitingMax, .timers_max = 1}) {}

void ServePages::serve(const ExchangePtr& exchange) {
  const std::string_view path = exchange->path().substr(0, exchange->path().find('?'));
  if (!is_own_host(exchange->headers().find("host").value_or(""))) {
    answer(exchange, 421, "this server answers to its address and to localhost only\n");
  } else if (exchange->method() != "GET" && exchange->method() != "HEAD") {
    HeaderList headers = strict_headers();
    headers.add("allow", "GET, HEAD");
    exchange->respond({.status = 405,
                       .headers = std::move(headers),
                       .body = Slice::constant("only GET and HEAD are allowed here\n")});
  } else if (path == "/livez") {
    answer(exchange, 200, "ok\n");
  } else if (path == "/readyz") {
    answer_ready(exchange, state_);
  } else if (path == kStylePath) {
    answer(exchange, 200, std::string(status_css()), "text/css; charset=utf-8");
  } else if (path == "/" || path == "/metrics") {
    if (!loop_.try_post([this, exchange] { make(exchange); }))
      answer(exchange, 503, "too many ask at once\n");
  } else {
    answer(exchange, 404, "nothing here; see /\n");
  }
}

void ServePages::make(const ExchangePtr& exchange) {
  if (exchange->is_cancelled()) return;
  if (exchange->path().starts_with("/metrics")) {
    answer(exchange, 200, serve_metrics(state_), admin_http::MetricsText::kContentType);
    return;
  }
  Broker* const broker = state_.broker.load(std::memory_order_acquire);
  if (broker == nullptr) {
    answer(exchange, 503, "starting\n");
    return;
  }
  StatusFacts facts = gather_status(*broker);
  facts.version = version_text();
  facts.phase = phase_text(state_.phase.load(std::memory_order_acquire));
  facts.up = system_clock().now() - state_.started_at;
  answer(exchange, 200, status_html(facts), "text/html; charset=utf-8");
}

}  // namespace ordo::app

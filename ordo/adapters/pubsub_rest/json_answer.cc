#include "ordo/adapters/pubsub_rest/json_answer.h"

#include <utility>

#include "ordo/adapters/http2/routes.h"

namespace ordo::pubsub_rest {
namespace {

void respond(const http2::ExchangePtr& exchange, unsigned status, std::string json) {
  http2::HeaderList headers;
  headers.add("cache-control", "no-store");
  headers.add("x-content-type-options", "nosniff");
  exchange->respond({.status = status,
                     .content_type = "application/json; charset=UTF-8",
                     .headers = std::move(headers),
                     .body = http2::Slice::of(std::move(json))});
}

}  // namespace

void respond_with(const http2::ExchangePtr& exchange, const Error& error,
                  std::string_view details) {
  respond(exchange, http_status_of(error.code), error_json(error, details));
}

JsonCore::JsonCore(std::size_t requests_max, std::size_t body_bytes_max)
    : body_bytes_max_(body_bytes_max),
      loop_({.name = "ordo-rest", .tasks_max = requests_max, .timers_max = 1}) {}

void JsonCore::run(Task work) {
  // NOLINTNEXTLINE(bugprone-use-after-move): what is not taken stays here.
  if (loop_.on_loop_thread() || !loop_.try_post(std::move(work))) work();
}

bool JsonCore::hold(std::size_t bytes) {
  const std::size_t before = held_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (before + bytes <= body_bytes_max_ || before == 0) return true;
  release(bytes);
  return false;
}

JsonAnswer::JsonAnswer(std::shared_ptr<JsonCore> core, http2::ExchangePtr exchange,
                       std::string type, JsonStyle style)
    : core_(std::move(core)),
      exchange_(std::move(exchange)),
      type_(std::move(type)),
      style_(style) {}

JsonAnswer::~JsonAnswer() {
  core_->release(exchange_->body().size());
}

void JsonAnswer::reply(std::vector<http2::Slice> pieces) {
  core_->run([self = shared_from_this(), pieces = std::move(pieces)] { self->respond(pieces); });
}

void JsonAnswer::respond(const std::vector<http2::Slice>& pieces) {
  if (is_cancelled()) return;
  try {
    std::string bytes;
    for (const http2::Slice& piece : pieces)
      bytes += piece.bytes;
    Result<std::string> json = json_of(type_, bytes, style_);
    if (!json) return fail(json.error());
    pubsub_rest::respond(exchange_, 200, std::move(*json));
  } catch (...) {
    fail({ErrorCode::internal, http2::reason_of_exception()});
  }
}

void JsonAnswer::fail(const Error& error, std::string_view details) {
  respond_with(exchange_, error, details);
}

void JsonAnswer::on_cancelled(std::function<void()> function) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_cancelled_) {
      on_cancelled_ = std::move(function);
      return;
    }
  }
  function();
}

void JsonAnswer::cancel() {
  std::function<void()> function;
  {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    function = std::exchange(on_cancelled_, nullptr);
  }
  if (function) function();
}

}  // namespace ordo::pubsub_rest

#include "ordo/adapters/pubsub_rest/json_service.h"

#include <string>
#include <utility>

#include "ordo/adapters/http2/gzip.h"
#include "ordo/adapters/pubsub_rest/json_answer.h"
#include "ordo/adapters/pubsub_rest/json_request.h"
#include "ordo/core/host_check.h"

namespace ordo::pubsub_rest {
namespace {

using http2::ExchangePtr;
using pubsub_wire::Methods;

constexpr std::string_view kPrefix = "/v1/";

Error refused(std::string_view why) {
  return {ErrorCode::permission_denied, std::string(why)};
}

// Whether somebody else's page may have sent it.
Status check_sender(const http2::Exchange& exchange) {
  const std::string_view host = exchange.headers().find("host").value_or("");
  if (!is_own_host(host)) return refused("This server answers to its address and to localhost.");
  const std::string_view origin = exchange.headers().find("origin").value_or("");
  constexpr std::string_view kScheme = "http://";
  const bool is_ours = origin.starts_with(kScheme) && origin.substr(kScheme.size()) == host;
  if (!origin.empty() && !is_ours)
    return refused("This server does not answer to pages of other sites.");
  return {};
}

// Clients that cannot say PATCH say it in a header.
std::string_view verb_of(const http2::Exchange& exchange) {
  if (exchange.method() != "POST") return exchange.method();
  return exchange.headers().find("x-http-method-override").value_or("POST");
}

// One request, from its bytes on.
struct Reading {
  std::shared_ptr<JsonCore> core;
  std::shared_ptr<JsonAnswer> answer;
  ExchangePtr exchange;
  JsonRequest request;
  const Methods::Method* method = nullptr;
  std::size_t inflated_bytes_max = 0;

  // REQUIRES: not on an I/O thread.
  void run() const {
    if (exchange->is_cancelled()) return;
    try {
      const Result<std::string> bytes = request_bytes();
      if (!bytes) return answer->fail(bytes.error());
      method->serve(answer, *bytes);
    } catch (...) {
      answer->fail({ErrorCode::internal, http2::reason_of_exception()});
    }
  }

  Result<std::string> request_bytes() const {
    const std::string_view coding =
        exchange->headers().find("content-encoding").value_or("identity");
    if (coding == "identity") return request.bytes_of(core->reader(), exchange->body());
    if (coding != "gzip") {
      return Error{ErrorCode::invalid_argument,
                   "A body is sent as it is or as gzip; this one says " + std::string(coding)};
    }
    Result<std::string> body = http2::inflated(exchange->body(), inflated_bytes_max);
    if (!body) return Error{ErrorCode::invalid_argument, std::move(body).error().message};
    return request.bytes_of(core->reader(), *body);
  }
};

Error busy() {
  return {ErrorCode::unavailable, "The server is busy or shuts down."};
}

void serve(const std::shared_ptr<JsonCore>& core, const Methods& methods,
           const JsonServiceOptions& options, const ExchangePtr& exchange) {
  const auto refuse = [&](const Error& error) { respond_with(exchange, error); };
  if (const Status allowed = check_sender(*exchange); !allowed) return refuse(allowed.error());
  Result<JsonRequest> request = JsonRequest::parse(verb_of(*exchange), exchange->path());
  if (!request) return refuse(request.error());
  const Methods::Method* const method = methods.find(request->method_path());
  if (method == nullptr) {
    return refuse({ErrorCode::unimplemented, "unknown method " + request->method_path()});
  }
  if (!core->hold(exchange->body().size())) return refuse(busy());
  const auto answer = std::make_shared<JsonAnswer>(
      core, exchange, std::string(request->response_type()), request->style());
  if (method->is_waiting) {
    exchange->on_cancelled([weak = std::weak_ptr<JsonAnswer>(answer)] {
      if (const auto still = weak.lock()) still->cancel();
    });
  }
  Reading reading{core, answer, exchange, std::move(*request), method, options.inflated_bytes_max};
  if (!core->try_run([reading = std::move(reading)] { reading.run(); })) refuse(busy());
}

}  // namespace

JsonService::JsonService(const pubsub_wire::Service& service, const JsonServiceOptions& options)
    : methods_(service.methods()),
      options_(options),
      core_(std::make_shared<JsonCore>(options.requests_max, options.body_bytes_max)) {}

JsonService::~JsonService() {
  close();
}

void JsonService::add_to(http2::Routes& routes) {
  routes.plain(std::string(kPrefix),
               [core = core_, methods = &methods_, options = options_](
                   const ExchangePtr& exchange) { serve(core, *methods, options, exchange); });
}

void JsonService::close() {
  core_->close();
}

void add_refusal(http2::Routes& routes, const Error& error) {
  routes.plain(std::string(kPrefix),
               [error](const ExchangePtr& exchange) { respond_with(exchange, error); });
}

}  // namespace ordo::pubsub_rest

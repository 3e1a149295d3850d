// gRPC's health service: SERVING until the service closes.
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <grpc/health/v1/health.pb.h>

#include "ordo/adapters/pubsub_wire/catalog_call.h"
#include "ordo/adapters/pubsub_wire/groups.h"

namespace ordo::pubsub_wire {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// The whole server, and what it serves.
bool is_known(std::string_view service) {
  constexpr std::array<std::string_view, 4> kServices = {
      "", "google.pubsub.v1.Publisher", "google.pubsub.v1.Subscriber", "ordo.operate.v1.Operator"};
  for (const std::string_view known : kServices) {
    if (known == service) return true;
  }
  return false;
}

http2::Slice response_of(HealthCheckResponse::ServingStatus status) {
  HealthCheckResponse response;
  response.set_status(status);
  return http2::Slice::of(response.SerializeAsString());
}

void check(const ServiceCore& core, const http2::CallPtr& call, std::string_view bytes) {
  HealthCheckRequest request;
  if (!parse(request, bytes)) return call->finish(malformed_request());
  if (!is_known(request.service()))
    return call->finish({ErrorCode::not_found, "unknown service " + request.service()});
  call->reply(response_of(core.is_closed() ? HealthCheckResponse::NOT_SERVING
                                           : HealthCheckResponse::SERVING));
}

// Says how it is, and again when the service closes.
class Watch final : public OpenCall {
 public:
  Watch(CorePtr core, http2::CallPtr call) : core_(std::move(core)), call_(std::move(call)) {}
  ~Watch() override { core_->remove(this); }

  void end(const Error& reason) override {
    (void)call_->send(response_of(HealthCheckResponse::NOT_SERVING));
    call_->finish(reason);
  }

 private:
  const CorePtr core_;
  const http2::CallPtr call_;
};

class WatchHandler final : public http2::CallHandler {
 public:
  WatchHandler(CorePtr core, http2::CallPtr call)
      : core_(std::move(core)),
        call_(std::move(call)) {}

  void on_message(std::string_view bytes) override {
    HealthCheckRequest request;
    if (watch_ || !parse(request, bytes)) return call_->finish(malformed_request());
    watch_ = std::make_shared<Watch>(core_, call_);
    (void)call_->send(response_of(is_known(request.service())
                                      ? HealthCheckResponse::SERVING
                                      : HealthCheckResponse::SERVICE_UNKNOWN));
    if (!core_->add(watch_)) watch_->end(closed_error());
  }
  void on_half_close() override {}

 private:
  const CorePtr core_;
  const http2::CallPtr call_;
  std::shared_ptr<Watch> watch_;
};

}  // namespace

void add_health_calls(http2::Routes& routes, const CorePtr& core) {
  routes.unary(
      "/grpc.health.v1.Health/Check",
      [core](const http2::CallPtr& call, std::string_view bytes) { check(*core, call, bytes); });
  routes.streaming("/grpc.health.v1.Health/Watch", [core](const http2::CallPtr& call) {
    return std::make_unique<WatchHandler>(core, call);
  });
}

}  // namespace ordo::pubsub_wire

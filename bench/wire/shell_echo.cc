// The small call: the health service's Check, in the forms the library has for it.
#include <memory>
#include <thread>
#include <vector>

#include <grpc/health/v1/health.grpc.pb.h>

#include "bench/wire/shell_parts.h"

namespace ordo::bench {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

void answer(const HealthCheckRequest& /*request*/, HealthCheckResponse& response) {
  response.set_status(HealthCheckResponse::SERVING);
}

class CallbackEcho final : public Health::CallbackService {
 public:
  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const HealthCheckRequest* request,
                                  HealthCheckResponse* response) override {
    answer(*request, *response);
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

}  // namespace

void serve_echo(const std::string& form) {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  CallbackEcho of_callbacks;
  Health::AsyncService of_queues;
  std::vector<std::unique_ptr<Queue>> queues;
  if (form == "callback") {
    builder.RegisterService(&of_callbacks);
  } else {
    builder.RegisterService(&of_queues);
    const std::size_t count = form == "cq2" ? 2 : 1;
    while (queues.size() < count)
      queues.push_back(builder.AddCompletionQueue());
  }
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  std::vector<std::thread> threads;
  for (const auto& queue : queues) {
    constexpr int kCallsAsked = 256;
    for (int i = 0; i < kCallsAsked; ++i) {
      new PlainCall<Health::AsyncService, HealthCheckRequest, HealthCheckResponse,
                    decltype(&answer)>(of_queues, *queue, &Health::AsyncService::RequestCheck,
                                       &answer);
    }
    threads.emplace_back([&queue] { serve(*queue); });
  }
  announce(port);
  server->Wait();
  give_up("the server has ended");
}

}  // namespace ordo::bench

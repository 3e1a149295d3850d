// How a unary call that asks or changes the catalog is served: parsed on the I/O thread, made on
// the service's own, answered from there.
//
//   Result<v1::Topic> get_topic(ServiceCore& core, const v1::GetTopicRequest& request);
//   add_catalog_call(routes, core, "/google.pubsub.v1.Publisher/GetTopic", get_topic);
//
// Threads: see ServiceCore::run().
// Errors:  INVALID_ARGUMENT for bytes that are no such message.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "ordo/adapters/http2/routes.h"
#include "ordo/adapters/pubsub_wire/service_core.h"

namespace ordo::pubsub_wire {

inline Error malformed_request() {
  return {ErrorCode::invalid_argument, "The request is not well-formed."};
}

template <class Request>
bool parse(Request& request, std::string_view bytes) {
  return request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

template <class Response>
void answer(const http2::CallPtr& call, const Result<Response>& result) {
  if (!result) return call->finish(result.error());
  call->reply(http2::Slice::of(result->SerializeAsString()));
}

template <class Request, class Response>
void add_catalog_call(http2::Routes& routes, const CorePtr& core, std::string path,
                      Result<Response> (*serve)(ServiceCore&, const Request&)) {
  routes.unary(std::move(path), [core, serve](const http2::CallPtr& call, std::string_view bytes) {
    auto request = std::make_shared<Request>();
    if (!parse(*request, bytes)) return call->finish(malformed_request());
    core->run(call, [core, serve, call, request] { answer(call, serve(*core, *request)); });
  });
}

}  // namespace ordo::pubsub_wire

// How a unary call that asks or changes the catalog is served: parsed on the I/O thread, made on
// the service's own, answered from there.
//
//   Result<v1::Topic> get_topic(ServiceCore& core, const v1::GetTopicRequest& request);
//   add_catalog_call(methods, core, "/google.pubsub.v1.Publisher/GetTopic", get_topic);
//
// Threads: see ServiceCore::run().
// Errors:  INVALID_ARGUMENT for bytes that are no such message.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "ordo/adapters/pubsub_wire/methods.h"
#include "ordo/adapters/pubsub_wire/requests.h"
#include "ordo/adapters/pubsub_wire/service_core.h"

namespace ordo::pubsub_wire {

template <class Request>
bool parse(Request& request, std::string_view bytes) {
  return request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

template <class Response>
void give(const AnswerPtr& answer, const Result<Response>& result) {
  if (!result) return answer->fail(result.error());
  answer->reply(http2::Slice::of(result->SerializeAsString()));
}

template <class Request, class Response>
void add_catalog_call(Methods& methods, const CorePtr& core, std::string path,
                      Result<Response> (*serve)(ServiceCore&, const Request&)) {
  methods.add(std::move(path), [core, serve](const AnswerPtr& answer, std::string_view bytes) {
    auto request = std::make_shared<Request>();
    if (!parse(*request, bytes)) return answer->fail(malformed_request());
    core->run(answer, [core, serve, answer, request] { give(answer, serve(*core, *request)); });
  });
}

}  // namespace ordo::pubsub_wire

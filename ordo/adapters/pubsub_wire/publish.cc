// Publish: the messages are stored as the bytes they came in.
#include <string>
#include <utility>
#include <vector>

#include "ordo/adapters/pubsub_wire/catalog_call.h"
#include "ordo/adapters/pubsub_wire/groups.h"
#include "ordo/adapters/pubsub_wire/requests.h"
#include "ordo/broker/message_codec.h"
#include "ordo/broker/resource_name.h"
#include "ordo/broker/wire_bytes.h"

namespace ordo::pubsub_wire {
namespace {

constexpr std::uint32_t kMessageIds = 1;

std::string response_of(broker::MessageId first, std::size_t count) {
  std::string bytes;
  bytes.reserve(count * 12);
  for (std::uint64_t index = 0; index < count; ++index)
    broker::put_bytes_field(bytes, kMessageIds, std::to_string((first + index).value()));
  return bytes;
}

Result<std::vector<broker::MessageBody>> bodies_of(const PublishRequest& request,
                                                   std::size_t request_bytes) {
  using Limits = broker::MessageLimits;
  std::vector<broker::MessageBody> bodies;
  // What is too large is not looked at.
  if (request.messages.size() <= Limits::kRequestMessagesMax &&
      request_bytes <= Limits::kRequestBytesMax) {
    bodies.reserve(request.messages.size());
    for (const std::string_view message : request.messages) {
      Result<broker::MessageBody> body = broker::body_from_wire(message);
      if (!body) return std::move(body).error();
      bodies.push_back(std::move(*body));
    }
  } else {
    bodies.resize(request.messages.size());
  }
  if (Status checked = broker::check_publish(bodies, request_bytes); !checked)
    return std::move(checked).error();
  return bodies;
}

void publish(ServiceCore& core, const AnswerPtr& answer, std::string_view bytes) {
  const std::optional<PublishRequest> request = read_publish(bytes);
  if (!request) return answer->fail(malformed_request());
  const auto name = broker::ResourceName::parse(request->topic, broker::Collection::topics);
  if (!name) return answer->fail(name.error());
  Result<std::vector<broker::MessageBody>> bodies = bodies_of(*request, bytes.size());
  if (!bodies) return answer->fail(bodies.error());
  const std::size_t count = bodies->size();
  core.broker().publish(std::string(request->topic), std::move(*bodies),
                        [answer, count](const Result<broker::MessageId>& first) {
                          if (!first) return answer->fail(first.error());
                          answer->reply(http2::Slice::of(response_of(*first, count)));
                        });
}

}  // namespace

void add_publish_call(Methods& methods, const CorePtr& core) {
  methods.add(
      "/google.pubsub.v1.Publisher/Publish",
      [core](const AnswerPtr& answer, std::string_view bytes) { publish(*core, answer, bytes); });
}

}  // namespace ordo::pubsub_wire

#include "tests/fuzz/pubsub_requests.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/stubs/logging.h>
#include <google/pubsub/v1/pubsub.pb.h>

#include "ordo/adapters/pubsub_rest/json_form.h"
#include "ordo/adapters/pubsub_rest/json_request.h"
#include "ordo/adapters/pubsub_wire/requests.h"
#include "ordo/broker/ack_id_text.h"
#include "ordo/broker/filter.h"
#include "ordo/broker/message_codec.h"
#include "ordo/core/check.h"

namespace ordo::fuzz {
namespace {

namespace v1 = google::pubsub::v1;
namespace wire = pubsub_wire;

template <class Left, class Right>
bool same_texts(const Left& left, const Right& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end());
}

bool is_same(const wire::PublishRequest& ours, const v1::PublishRequest& theirs) {
  if (ours.topic != theirs.topic()) return false;
  if (ours.messages.size() != static_cast<std::size_t>(theirs.messages_size())) return false;
  for (int i = 0; i < theirs.messages_size(); ++i) {
    v1::PubsubMessage message;
    if (!message.ParseFromString(std::string(ours.messages[static_cast<std::size_t>(i)])) ||
        message.SerializeAsString().size() != theirs.messages(i).SerializeAsString().size())
      return false;
  }
  return true;
}

bool is_same(const wire::SettleRequest& ours, const v1::AcknowledgeRequest& theirs) {
  return ours.subscription == theirs.subscription() && same_texts(ours.ack_ids, theirs.ack_ids());
}

bool is_same(const wire::SettleRequest& ours, const v1::ModifyAckDeadlineRequest& theirs) {
  return ours.subscription == theirs.subscription() &&
         ours.ack_deadline_seconds == theirs.ack_deadline_seconds() &&
         same_texts(ours.ack_ids, theirs.ack_ids());
}

bool is_same(const wire::StreamRequest& ours, const v1::StreamingPullRequest& theirs) {
  return ours.subscription == theirs.subscription() && same_texts(ours.ack_ids, theirs.ack_ids()) &&
         same_texts(ours.modify_deadline_seconds, theirs.modify_deadline_seconds()) &&
         same_texts(ours.modify_deadline_ack_ids, theirs.modify_deadline_ack_ids()) &&
         ours.stream_ack_deadline_seconds == theirs.stream_ack_deadline_seconds() &&
         ours.max_outstanding_messages == theirs.max_outstanding_messages() &&
         ours.max_outstanding_bytes == theirs.max_outstanding_bytes() &&
         ours.protocol_version == theirs.protocol_version();
}

// What both read they read alike. What protobuf reads we read once it is written as usual: what it
// forgives beyond that (groups, numbers that are too long) we refuse.
template <class Theirs, class Read>
void compare(std::string_view bytes, Read read) {
  const auto ours = read(bytes);
  Theirs theirs;
  if (!theirs.ParseFromString(std::string(bytes))) return;
  ORDO_CHECK(!ours || is_same(*ours, theirs));
#if !defined(__SANITIZE_THREAD__)  // Where protobuf's header has maps larger than its library.
  theirs.DiscardUnknownFields();
  const std::string usual = theirs.SerializeAsString();
  const auto again = read(usual);
  ORDO_CHECK(again && is_same(*again, theirs));
#endif
}

// A body is what was in the message, within the limits, and stays as it is when it comes again.
void check_message(std::string_view bytes) {
  const Result<broker::MessageBody> body = broker::body_from_wire(bytes);
  if (!body) return;
  const Result<broker::MessageView> view = broker::decode_message(body->bytes);
  ORDO_CHECK(view && view->ordering_key == body->key());
  const Result<broker::MessageBody> again = broker::body_from_wire(body->bytes);
  ORDO_CHECK(again && again->bytes == body->bytes && again->key() == body->key());
  v1::PubsubMessage theirs;
  if (!theirs.ParseFromString(std::string(bytes))) return;
  ORDO_CHECK(view->data == theirs.data() && view->ordering_key == theirs.ordering_key());
  std::map<std::string, std::string> attributes;
  for (const broker::Attribute& attribute : view->attributes())
    ORDO_CHECK(attributes.emplace(attribute.key, attribute.value).second);
  ORDO_CHECK(attributes.size() == theirs.attributes().size());
  for (const auto& [key, value] : attributes)
    ORDO_CHECK(theirs.attributes().at(key) == value);
}

void check_ack_id(std::string_view text) {
  const broker::AckIdText codec;
  const Result<broker::AckId> id = codec.decode(text);
  if (!id) return;
  const Result<broker::AckId> again = codec.decode(codec.encode(*id));
  ORDO_CHECK(again && codec.encode(*again) == codec.encode(*id));
}

// Bytes of their own, so that a sanitizer sees a read behind them.
std::vector<char> copy_of(std::string_view bytes) {
  return {bytes.begin(), bytes.end()};
}

bool is_json_object(const pubsub_rest::JsonReader& reader, const std::string& text) {
  return reader.bytes_of("google.protobuf.Struct", text).has_value();
}

}  // namespace

void check_pubsub_request(std::string_view bytes) {
  const google::protobuf::LogSilencer quiet;  // It would tell of each text that is not UTF-8.
  const std::vector<char> copy = copy_of(bytes);
  const std::string_view input(copy.data(), copy.size());
  compare<v1::PublishRequest>(input, wire::read_publish);
  compare<v1::AcknowledgeRequest>(input, wire::read_acknowledge);
  compare<v1::ModifyAckDeadlineRequest>(input, wire::read_modify_ack_deadline);
  compare<v1::StreamingPullRequest>(input, wire::read_streaming_pull);
  if (const auto request = wire::read_publish(input)) {
    for (const std::string_view message : request->messages)
      check_message(message);
  }
  check_message(input);
  check_ack_id(input);
}

// A filter answers for every message, and its negation the other way round.
void check_filter(std::string_view text) {
  const std::vector<char> copy = copy_of(text);
  const Result<broker::Filter> filter = broker::Filter::parse({copy.data(), copy.size()});
  if (!filter) return;
  const std::string negated = "NOT (" + std::string(text) + ")";
  const Result<broker::Filter> opposite = broker::Filter::parse(negated);
  using Attributes = std::vector<std::pair<std::string, std::string>>;
  for (const Attributes& attributes :
       {Attributes{}, Attributes{{"a", ""}}, Attributes{{"a", "b"}, {"lang", "en"}}}) {
    const auto body = broker::encode_message({.data = "x", .attributes = attributes});
    ORDO_CHECK(body.has_value());
    const bool is_match = filter->matches(body->bytes);
    ORDO_CHECK(!opposite || opposite->matches(body->bytes) != is_match);
  }
}

// What is accepted is a request of its method, with the same bytes each time; what is not is
// explained in JSON.
void check_rest_request(std::string_view text) {
  const google::protobuf::LogSilencer quiet;
  static const pubsub_rest::JsonReader reader;
  const std::size_t space = text.find(' ');
  const std::size_t line = text.find('\n');
  if (space == std::string_view::npos || line == std::string_view::npos || space > line) return;
  const std::vector<char> target = copy_of(text.substr(space + 1, line - space - 1));
  const std::vector<char> body = copy_of(text.substr(line + 1));
  const auto request =
      pubsub_rest::JsonRequest::parse(text.substr(0, space), {target.data(), target.size()});
  if (!request) {
    ORDO_CHECK(is_json_object(reader, pubsub_rest::error_json(request.error(), {})));
    return;
  }
  const Result<std::string> bytes = request->bytes_of(reader, {body.data(), body.size()});
  if (!bytes) {
    ORDO_CHECK(bytes.error().code == ErrorCode::invalid_argument);
    ORDO_CHECK(is_json_object(reader, pubsub_rest::error_json(bytes.error(), {})));
    return;
  }
  ORDO_CHECK(*bytes == *request->bytes_of(reader, {body.data(), body.size()}));
  const auto* const type =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(
          std::string(request->request_type()));
  ORDO_CHECK(type != nullptr);
  const std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  ORDO_CHECK(message->ParseFromString(*bytes));
  const Result<std::string> json = pubsub_rest::json_of(request->request_type(), *bytes, {});
  ORDO_CHECK(!json || is_json_object(reader, *json));
  check_pubsub_request(*bytes);
}

}  // namespace ordo::fuzz

#include "ordo/adapters/pubsub_rest/json_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include <google/iam/v1/iam_policy.pb.h>
#include <google/protobuf/descriptor.h>
#include <google/pubsub/v1/pubsub.pb.h>

#include "ordo/adapters/pubsub_wire/requests.h"
#include "ordo/broker/wire_bytes.h"
#include "ordo/core/check.h"

namespace ordo::pubsub_rest {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;

constexpr std::string_view kFieldMask = "google.protobuf.FieldMask";
constexpr std::string_view kPublishRequest = "google.pubsub.v1.PublishRequest";

Error invalid(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message)};
}

Error unknown_parameter(std::string_view name) {
  const std::string text(name);
  return invalid("Invalid JSON payload received. Unknown name \"" + text +
                 "\": Cannot bind query parameter. Field '" + text +
                 "' could not be found in request message.");
}

const FieldDescriptor* field_of(const Descriptor& type, const std::string& name) {
  const FieldDescriptor* field = type.FindFieldByName(name);
  return field != nullptr ? field : type.FindFieldByCamelcaseName(name);
}

// What `updateMask=labels,pushConfig` means.
std::string mask_bytes(std::string_view value) {
  constexpr std::uint32_t kPaths = 1;
  std::string bytes;
  std::string path;
  const auto end_path = [&] {
    if (!path.empty()) broker::put_bytes_field(bytes, kPaths, path);
    path.clear();
  };
  for (const char character : value) {
    if (character == ',') {
      end_path();
    } else if (character >= 'A' && character <= 'Z') {
      path += '_';
      path += static_cast<char>(character - 'A' + 'a');
    } else {
      path += character;
    }
  }
  end_path();
  return bytes;
}

template <class Number>
std::optional<std::uint64_t> number_of(std::string_view text) {
  Number number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
}

// Nothing: the field cannot have that value, or none in a query.
std::optional<std::string> field_bytes(const FieldDescriptor& field, const std::string& value) {
  std::string bytes;
  const auto number = static_cast<std::uint32_t>(field.number());
  const auto put_number = [&](std::optional<std::uint64_t> read) -> std::optional<std::string> {
    if (!read) return std::nullopt;
    broker::put_varint_field(bytes, number, *read);
    return bytes;
  };
  switch (field.type()) {
    case FieldDescriptor::TYPE_STRING:
      broker::put_bytes_field(bytes, number, value);
      return bytes;
    case FieldDescriptor::TYPE_INT32:
      return put_number(number_of<std::int32_t>(value));
    case FieldDescriptor::TYPE_INT64:
      return put_number(number_of<std::int64_t>(value));
    case FieldDescriptor::TYPE_BOOL:
      if (value != "true" && value != "false") return std::nullopt;
      return put_number(value == "true" ? 1 : 0);
    case FieldDescriptor::TYPE_MESSAGE:
      if (field.message_type()->full_name() != kFieldMask || field.is_repeated())
        return std::nullopt;
      broker::put_bytes_field(bytes, number, mask_bytes(value));
      return bytes;
    default:
      return std::nullopt;
  }
}

// The field that `path` ("topic", "topic.name", "options.requestedPolicyVersion") names, in the
// messages around it.
Result<std::string> bytes_at(const Descriptor& type, std::string_view path,
                             const std::string& value) {
  const std::size_t dot = path.find('.');
  const FieldDescriptor* const field = field_of(type, std::string(path.substr(0, dot)));
  if (field == nullptr) return unknown_parameter(path);
  if (dot == std::string_view::npos) {
    std::optional<std::string> bytes = field_bytes(*field, value);
    if (!bytes) return invalid("Invalid value at '" + field->name() + "', \"" + value + "\"");
    return std::move(*bytes);
  }
  if (field->type() != FieldDescriptor::TYPE_MESSAGE || field->is_repeated())
    return unknown_parameter(path);
  const Result<std::string> inner = bytes_at(*field->message_type(), path.substr(dot + 1), value);
  if (!inner) return inner.error();
  std::string bytes;
  broker::put_bytes_field(bytes, static_cast<std::uint32_t>(field->number()), *inner);
  return bytes;
}

// All that is generated. To ask for one of a file makes the linker take it.
const DescriptorPool& pool() {
  static const DescriptorPool& all = *google::pubsub::v1::Topic::descriptor()->file()->pool();
  static const bool has_policies = google::iam::v1::SetIamPolicyRequest::descriptor() != nullptr;
  ORDO_CHECK(has_policies);
  return all;
}

const Descriptor& type_named(const std::string& name) {
  const Descriptor* const type = pool().FindMessageTypeByName(name);
  ORDO_CHECK(type != nullptr);
  return *type;
}

// Of all methods, and without meaning here.
bool is_let_be(std::string_view name) {
  constexpr std::array<std::string_view, 10> kNames = {
      "key",        "access_token",    "oauth_token", "fields",  "quotaUser",
      "uploadType", "upload_protocol", "userIp",      "$.xgafv", "$userProject"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// In JSON a key that is given is meant: unlike on the wire, where empty is none.
bool has_empty_key(std::string_view publish_request) {
  constexpr std::uint32_t kOrderingKey = 5;
  const std::optional<pubsub_wire::PublishRequest> request =
      pubsub_wire::read_publish(publish_request);
  if (!request) return false;
  for (const std::string_view message : request->messages) {
    broker::WireReader reader(message);
    while (const std::optional<broker::WireField> field = reader.next()) {
      if (field->number == kOrderingKey && field->bytes.empty()) return true;
    }
  }
  return false;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

Result<JsonRequest> JsonRequest::parse(std::string_view verb, std::string_view target) {
  const Result<Target> parsed = Target::parse(target);
  if (!parsed) return parsed.error();
  Result<Bound> bound = bind(verb, *parsed);
  if (!bound) return std::move(bound).error();
  JsonRequest request;
  request.bound_ = std::move(*bound);
  const auto* const method = pool().FindMethodByName(std::string(request.bound_.binding->method));
  ORDO_CHECK(method != nullptr);
  request.request_type_ = method->input_type()->full_name();
  request.response_type_ = method->output_type()->full_name();
  for (const auto& [name, value] : parsed->query) {
    if (Status taken = request.take_parameter(name, value); !taken) return std::move(taken).error();
  }
  return request;
}

Status JsonRequest::take_parameter(const std::string& name, const std::string& value) {
  if (is_let_be(name)) return {};
  if (name == "alt" || name == "$alt") {
    style_.has_numbers_for_enums = value == "json;enum-encoding=int";
    if (value == "json" || style_.has_numbers_for_enums) return {};
    return invalid("Answers are JSON; alt=" + value + " is not supported.");
  }
  if (name == "prettyPrint" || name == "$prettyPrint") {
    style_.is_pretty = value != "false" && value != "0";
    return {};
  }
  Result<std::string> bytes = bytes_at(type_named(request_type_), name, value);
  if (!bytes) return std::move(bytes).error();
  fields_ += *bytes;
  return {};
}

Result<std::string> JsonRequest::bytes_of(const JsonReader& reader, std::string_view body) const {
  std::string bytes;
  if (bound_.binding->has_body && !is_blank(body)) {
    Result<std::string> parsed = reader.bytes_of(request_type_, body);
    if (!parsed) return parsed;
    bytes = std::move(*parsed);
    if (request_type_ == kPublishRequest && has_empty_key(bytes))
      return invalid("Ordering key cannot be empty");
  }
  bytes += fields_;
  // Behind all others: the last of a name counts, and messages are merged.
  Result<std::string> name =
      bytes_at(type_named(request_type_), bound_.binding->field, bound_.name);
  ORDO_CHECK(name.has_value());
  bytes += *name;
  return bytes;
}

}  // namespace ordo::pubsub_rest

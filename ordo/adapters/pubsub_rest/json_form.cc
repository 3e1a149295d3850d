#include "ordo/adapters/pubsub_rest/json_form.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>
#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>

#include "ordo/core/check.h"
#include "ordo/core/json_text.h"
#include "ordo/core/utf8.h"

namespace ordo::pubsub_rest {
namespace {

namespace protobuf = google::protobuf;

constexpr std::string_view kTypes = "type.googleapis.com";

std::string url_of(std::string_view type) {
  return std::string(kTypes) + "/" + std::string(type);
}

Error invalid_json(std::string_view reason) {
  // What the parser quotes of the text may be long, and stands on lines of its own.
  constexpr std::size_t kReasonMax = 300;
  std::string words(reason.substr(0, reason.find('\n')));
  if (words.starts_with(": ")) words.erase(0, 2);
  if (words.size() > kReasonMax) words.resize(kReasonMax);
  return {ErrorCode::invalid_argument, "Invalid JSON payload received. " + words};
}

// Each level costs the parser hundreds of bytes, and the client one.
bool is_too_deep(std::string_view json) {
  int depth = 0;
  char quote = 0;  // That the text we are in ends with; 0: in none.
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char character = json[i];
    if (quote != 0) {
      if (character == '\\') ++i;
      if (character == quote) quote = 0;
    } else if (character == '"' || character == '\'') {
      quote = character;
    } else if (character == '{' || character == '[') {
      if (++depth > JsonReader::kDepthMax) return true;
    } else if (character == '}' || character == ']') {
      --depth;
    }
  }
  return false;
}

// What quotes a client may be cut off inside a character.
std::string text_of(std::string text) {
  if (is_utf8(text)) return text;
  for (char& character : text) {
    if (static_cast<unsigned char>(character) >= 0x80) character = '?';
  }
  return text;
}

// REQUIRES: there is such a type, and the linker took it.
std::unique_ptr<protobuf::Message> message_of(std::string_view type) {
  const protobuf::Descriptor* const descriptor =
      protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(std::string(type));
  ORDO_CHECK(descriptor != nullptr);
  return std::unique_ptr<protobuf::Message>(
      protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
}

protobuf::StringPiece piece_of(std::string_view text) {
  return {text.data(), text.size()};
}

// The details of a google.rpc.Status, with a line for each.
std::string details_list(std::string_view details) {
  // They come in an Any: to ask for what may be in it makes the linker take it.
  (void)google::rpc::ErrorInfo::descriptor();
  google::rpc::Status status;
  std::string list;
  if (!status.ParseFromArray(details.data(), static_cast<int>(details.size()))) return list;
  for (const auto& detail : status.details()) {
    std::string text;
    if (!protobuf::util::MessageToJsonString(detail, &text).ok()) continue;
    list += list.empty() ? "\n   " : ",\n   ";
    list += text;
  }
  return list;
}

}  // namespace

struct JsonReader::Types {
  std::unique_ptr<protobuf::util::TypeResolver> resolver{
      protobuf::util::NewTypeResolverForDescriptorPool(piece_of(kTypes).ToString(),
                                                       protobuf::DescriptorPool::generated_pool())};
};

JsonReader::JsonReader() : types_(std::make_unique<const Types>()) {}
JsonReader::~JsonReader() = default;

Result<std::string> JsonReader::bytes_of(std::string_view type, std::string_view json) const {
  if (is_too_deep(json)) {
    return invalid_json("Objects and lists are more than " + std::to_string(kDepthMax) +
                        " deep in each other.");
  }
  std::string bytes;
  const auto parsed = protobuf::util::JsonToBinaryString(types_->resolver.get(), url_of(type),
                                                         piece_of(json), &bytes);
  if (!parsed.ok()) return invalid_json(parsed.message().ToString());
  return bytes;
}

Result<std::string> json_of(std::string_view type, std::string_view bytes, JsonStyle style) {
  // By way of a message: fields that are spread over the bytes, as those of stored messages may be,
  // come together.
  const std::unique_ptr<protobuf::Message> message = message_of(type);
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return Error{ErrorCode::internal, "The answer cannot be read."};
  protobuf::util::JsonPrintOptions options;
  options.add_whitespace = style.is_pretty;
  options.always_print_enums_as_ints = style.has_numbers_for_enums;
  std::string json;
  const auto printed = protobuf::util::MessageToJsonString(*message, &json, options);
  if (!printed.ok()) {
    return Error{ErrorCode::internal,
                 "The answer cannot be written as JSON: " + printed.message().ToString()};
  }
  if (!json.ends_with('\n')) json += '\n';
  return json;
}

std::string error_json(const Error& error, std::string_view details) {
  std::string json = "{\n \"error\": {\n  \"code\": ";
  json += std::to_string(http_status_of(error.code));
  json += ",\n  \"message\": ";
  json += json_string(text_of(error.message));
  json += ",\n  \"status\": \"";
  json += error_code_name(error.code);
  json += '"';
  if (const std::string list = details_list(details); !list.empty())
    json += ",\n  \"details\": [" + list + "\n  ]";
  json += "\n }\n}\n";
  return json;
}

unsigned http_status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
    case ErrorCode::failed_precondition:
    case ErrorCode::out_of_range:
      return 400;
    case ErrorCode::unauthenticated:
      return 401;
    case ErrorCode::permission_denied:
      return 403;
    case ErrorCode::not_found:
      return 404;
    case ErrorCode::already_exists:
    case ErrorCode::aborted:
      return 409;
    case ErrorCode::resource_exhausted:
      return 429;
    case ErrorCode::cancelled:
      return 499;
    case ErrorCode::unknown:
    case ErrorCode::internal:
    case ErrorCode::data_loss:
      return 500;
    case ErrorCode::unimplemented:
      return 501;
    case ErrorCode::unavailable:
      return 503;
    case ErrorCode::deadline_exceeded:
      return 504;
  }
  return 500;
}

}  // namespace ordo::pubsub_rest

// The messages of the API as JSON, and errors as the service writes them.
//
//   JsonReader reader;
//   Result<std::string> bytes = reader.bytes_of("google.pubsub.v1.PublishRequest", text);
//   Result<std::string> text = json_of("google.pubsub.v1.PublishResponse", *bytes, style);
//   error_json({ErrorCode::not_found, "..."}, "")   // {"error":{"code":404,...}}
//
// Field names in both forms (orderingKey, ordering_key), bytes as base64 of either alphabet,
// enumerations by name or number. What is given with its default value is in the bytes too, so
// that one can see that it was given.
//
// Threads: any, all calls.
// Bounds:  kDepthMax objects and lists in each other.
// Errors:  JsonReader: invalid_argument, with the place where the text stops making sense.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ordo/core/result.h"

namespace ordo::pubsub_rest {

struct JsonStyle {
  bool is_pretty = true;
  bool has_numbers_for_enums = false;
};

class JsonReader {
 public:
  static constexpr int kDepthMax = 64;

  JsonReader();
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;
  ~JsonReader();

  // `type` is the full name of a message.
  Result<std::string> bytes_of(std::string_view type, std::string_view json) const;

 private:
  struct Types;
  const std::unique_ptr<const Types> types_;
};

// REQUIRES: `type` is the full name of a message of the API.
Result<std::string> json_of(std::string_view type, std::string_view bytes, JsonStyle style);

// `details` is a serialised google.rpc.Status, or empty.
std::string error_json(const Error& error, std::string_view details);

// The status of HTTP for an error, as google.rpc.Code says it.
unsigned http_status_of(ErrorCode code);

}  // namespace ordo::pubsub_rest

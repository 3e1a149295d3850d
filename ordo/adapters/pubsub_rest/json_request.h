// JsonRequest: an HTTP request of the JSON form, and the serialised request that it stands for.
//
//   Result<JsonRequest> request = JsonRequest::parse("POST", "/v1/projects/p/topics/t:publish");
//   if (!request) return fail(request.error());
//   Result<std::string> bytes = request->bytes_of(reader, body);
//   method(request->method_path(), *bytes);
//
// The name in the path and the fields of the query count more than the body. What a query may hold
// of a request: texts, numbers, true and false, update masks. What all methods have (alt,
// prettyPrint, key, ...) is read or let be.
//
// Threads: pure functions and plain values.
// Bounds:  those of the texts; JsonReader's of the body.
// Errors:  not_found: no method has that path. invalid_argument: it cannot be read.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ordo/adapters/pubsub_rest/bindings.h"
#include "ordo/adapters/pubsub_rest/json_form.h"
#include "ordo/core/result.h"

namespace ordo::pubsub_rest {

class JsonRequest {
 public:
  static Result<JsonRequest> parse(std::string_view verb, std::string_view target);

  // "/google.pubsub.v1.Publisher/Publish"
  std::string method_path() const { return bound_.binding->path(); }
  // The full names of the message it stands for and of the one that answers it.
  std::string_view request_type() const { return request_type_; }
  std::string_view response_type() const { return response_type_; }
  JsonStyle style() const { return style_; }

  Result<std::string> bytes_of(const JsonReader& reader, std::string_view body) const;

 private:
  JsonRequest() = default;

  Status take_parameter(const std::string& name, const std::string& value);

  Bound bound_;
  JsonStyle style_;
  std::string request_type_;
  std::string response_type_;
  std::string fields_;  // Of the query, serialised.
};

}  // namespace ordo::pubsub_rest

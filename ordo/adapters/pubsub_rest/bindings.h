// Bindings: which method of the service an HTTP request means, as the published API has it.
//
//   Result<Bound> bound = bind("POST", target);
//   bound->binding->method     // "google.pubsub.v1.Publisher.Publish"
//   bound->name                // "projects/p/topics/t", for its field "topic"
//
// Threads: pure functions.
// Errors:  not_found for what no method has; unimplemented for schemas.
#pragma once

#include <string>
#include <string_view>

#include "ordo/adapters/pubsub_rest/target.h"
#include "ordo/core/result.h"

namespace ordo::pubsub_rest {

struct Binding {
  std::string_view verb;    // GET, PUT, PATCH, POST, DELETE.
  std::string_view name;    // What of the path is the name: "projects/*/topics/*".
  std::string_view rest;    // What stands behind it: "/subscriptions", ":publish".
  std::string_view field;   // Of the request, for the name: "topic", "topic.name".
  std::string_view method;  // "google.pubsub.v1.Publisher.Publish".
  bool has_body = false;    // The body is the request; otherwise it is not looked at.

  // "/google.pubsub.v1.Publisher/Publish"
  std::string path() const;
};

struct Bound {
  const Binding* binding = nullptr;  // Lives for ever.
  std::string name{};
};

Result<Bound> bind(std::string_view verb, const Target& target);

}  // namespace ordo::pubsub_rest

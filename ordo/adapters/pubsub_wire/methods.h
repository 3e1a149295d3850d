// Methods: those of the service that have one request and one answer, by their paths.
//
//   methods.add("/google.pubsub.v1.Publisher/Publish", publish);
//   methods.add_waiting("/google.pubsub.v1.Subscriber/Pull", pull);
//   methods.add_to(routes);                                            // over gRPC
//   if (const Methods::Method* method = methods.find(path)) method->serve(answer, request);
//
// Threads: filled by one owner, then read by all.
// Cost:    one small allocation for each call over gRPC.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "ordo/adapters/http2/routes.h"
#include "ordo/adapters/pubsub_wire/answer.h"

namespace ordo::pubsub_wire {

class Methods {
 public:
  // Serves a serialised request, which is gone when this returns. Does not block.
  using Serve = std::function<void(const AnswerPtr& answer, std::string_view request)>;

  struct Method {
    Serve serve;
    bool is_waiting = false;  // It may take long, and asks to be told when its client goes.
  };

  // `path` is "/package.Service/Method".
  void add(std::string path, Serve serve);
  void add_waiting(std::string path, Serve serve);

  // Nothing: there is no such method.
  const Method* find(std::string_view path) const;
  void add_to(http2::Routes& routes) const;

 private:
  std::map<std::string, Method, std::less<>> methods_;
};

}  // namespace ordo::pubsub_wire

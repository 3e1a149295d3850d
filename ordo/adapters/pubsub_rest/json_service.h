// JsonService: the Pub/Sub API as JSON over plain HTTP ("REST"), on the port of the gRPC one.
//
//   pubsub_wire::Service service(broker);
//   pubsub_rest::JsonService json(service);
//   http2::Routes routes;
//   service.add_to(routes);
//   json.add_to(routes);                 // all that begins with /v1/
//
//   $ curl -d '{"messages":[{"data":"aGk="}]}' 127.0.0.1:8085/v1/projects/p/topics/t:publish
//
// Every method of the service but StreamingPull, by the paths of the published API; a request is
// turned into the bytes of the gRPC one and served by the same function. docs/pubsub_api.md has
// what differs.
//
// A page of a foreign site, in the browser of somebody who runs this, is refused: by the name it
// calls us (Host), and by its own (Origin).
//
// Threads: the routes are called by I/O threads. Owns one thread "ordo-rest", which reads and
//          writes JSON. close(): any thread but those.
// Bounds:  JsonServiceOptions; beyond them 503.
#pragma once

#include <cstddef>
#include <memory>

#include "ordo/adapters/http2/routes.h"
#include "ordo/adapters/pubsub_wire/service.h"
#include "ordo/core/result.h"

namespace ordo::pubsub_rest {

class JsonCore;

struct JsonServiceOptions {
  std::size_t requests_max = 1024;                         // That wait to be read; a power of two.
  std::size_t body_bytes_max = std::size_t{64} << 20;      // Of all that are not answered.
  std::size_t inflated_bytes_max = std::size_t{20} << 20;  // Of a body that comes as gzip.
};

class JsonService {
 public:
  // REQUIRES: `service` outlives this, and the server of the routes.
  explicit JsonService(const pubsub_wire::Service& service, const JsonServiceOptions& options = {});
  JsonService(const JsonService&) = delete;
  JsonService& operator=(const JsonService&) = delete;
  ~JsonService();  // close().

  void add_to(http2::Routes& routes);

  // What waits is served, and the thread ends; what comes is refused: UNAVAILABLE. Answers that are
  // on their way are given all the same. Idempotent.
  void close();

 private:
  const pubsub_wire::Methods& methods_;
  const JsonServiceOptions options_;
  const std::shared_ptr<JsonCore> core_;
};

// All that begins with /v1/ is answered with this error.
void add_refusal(http2::Routes& routes, const Error& error);

}  // namespace ordo::pubsub_rest

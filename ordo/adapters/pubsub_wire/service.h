// Service: the Pub/Sub API of a broker, as routes of the HTTP front.
//
//   pubsub_wire::Service service(broker);
//   http2::Routes routes;
//   service.add_to(routes);             // over gRPC
//   http2::Server server({.port = 8085}, std::move(routes));
//   ...
//   service.close();                    // streams and pulls end with UNAVAILABLE
//   server.drain(clock.now() + 10s);
//
// google.pubsub.v1 Publisher and Subscriber, google.iam.v1.IAMPolicy, gRPC's health and reflection,
// and what operators need: ordo.operate.v1.Operator. What each call does with each field is in
// docs/pubsub_api.md and docs/operator_api.md.
//
// Threads: the routes are called by I/O threads. Owns one thread "ordo-wire", for the calls that
//          wait for the broker's catalog. close(): any thread but those.
// Bounds:  ServiceOptions; what happens there is in docs/limits.md.
// Errors:  the broker's, with their code and text.
#pragma once

#include <cstddef>
#include <memory>

#include "ordo/adapters/http2/routes.h"
#include "ordo/adapters/pubsub_wire/methods.h"
#include "ordo/broker.h"
#include "ordo/core/clock.h"

namespace ordo::pubsub_wire {

class ServiceCore;

struct ServiceOptions {
  std::size_t catalog_calls_max = 1024;      // That wait for the catalog; a power of two.
  std::size_t settling_ids_max = 1'000'000;  // Ack ids whose outcome is awaited, of all calls.
  Clock* clock = nullptr;                    // The broker's; nullptr: system_clock().
};

class Service {
 public:
  // REQUIRES: `broker` outlives this, and the server of the routes.
  explicit Service(Broker& broker, const ServiceOptions& options = {});
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service();  // close().

  void add_to(http2::Routes& routes);
  // For those who bring requests another way. They live as long as this.
  const Methods& methods() const { return methods_; }

  // Calls that would run on are ended, those that come are refused: UNAVAILABLE. Idempotent.
  void close();

 private:
  const std::shared_ptr<ServiceCore> core_;
  Methods methods_;
};

}  // namespace ordo::pubsub_wire

// Courier: sends the messages of push subscriptions to their endpoints.
//
//   Courier courier(broker);
//   if (Status started = courier.start(); !started) return started.error();
//   broker.update_subscription({.name = ..., .push = PushConfig{.endpoint = "http://..."}},
//                              {"push_config"});                    // from now on it is pushed
//   ...
//   courier.close(clock.now() + 5s);      // before the broker
//
// It hears from the broker of subscriptions that come, change and go. Each is a PushLine: a stream
// of the broker whose width is the push window. Order within a key is the broker's doing: the next
// message of a key is delivered when the endpoint has accepted the one before.
//
// Threads: owns "ordo-push", which does everything; it sleeps while there is nothing to send. Names
//          of hosts other than localhost are looked up by a thread of Asio's. start() and close()
//          by the one that made it, stats() any thread.
// Bounds:  CourierOptions; docs/limits.md.
// Errors:  start(): those of the broker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ordo/adapters/push_http/poster.h"
#include "ordo/adapters/push_http/push_window.h"
#include "ordo/broker.h"
#include "ordo/core/clock.h"
#include "ordo/core/result.h"

namespace ordo::push_http {

struct CourierOptions {
  PushWindowOptions window{};  // Of each subscription.
  PosterOptions poster{};      // Of all subscriptions together.
};

// Since start().
struct CourierStats {
  std::size_t subscriptions = 0;  // That are pushed now.
  std::size_t connections = 0;    // Open now, idle ones included.
  std::size_t waiting = 0;        // Messages that wait for a connection now.
  std::uint64_t accepted = 0;     // Pushes by how they ended.
  std::uint64_t refused = 0;
  std::uint64_t timed_out = 0;
  std::uint64_t unreachable = 0;
  std::uint64_t broken = 0;
  std::uint64_t given_back = 0;  // Messages not sent, or not to their end: a pause, or close().
};

class Courier {
 public:
  // REQUIRES: `broker` outlives this.
  explicit Courier(Broker& broker, const CourierOptions& options = {});
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;
  ~Courier();  // close(), without waiting for endpoints.

  // REQUIRES: called once.
  Status start();

  // Begins no more pushes, and waits for those under way; what has no answer at the deadline is
  // given back, and has not failed. True: all had one. Idempotent.
  bool close(TimePoint deadline);

  CourierStats stats() const;

 private:
  class Rounds;
  const std::unique_ptr<Rounds> rounds_;
};

}  // namespace ordo::push_http

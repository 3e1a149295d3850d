// Settling: says to the broker what is done, what goes back and what takes longer, several requests
// at once.
//
//   Settling settling("projects/p/subscriptions/billing");
//   settling.ack(message.ack_id);
//   Status told = settling.go_on(client);          // sends; waits for nothing
//   ...
//   while (told && !settling.is_done()) {
//     settling.wait(client, settling.next_look(), wake_fd);
//     told = settling.go_on(client);
//   }
//
// Waiting for each answer would be slow: an ack is answered when it is on disk, and the next
// message of its key comes before that. What the broker cannot take now (no room on its disk) is
// said again, later and later.
//
// Threads: one owner, that of the client.
// Bounds:  kCallsMax requests of kIdsMax ids under way; ids wait for more room, and is_full() says
//          so: take no more messages then.
// Errors:  go_on(): the connection is lost (unavailable), an answer did not come within kPatience
//          (deadline_exceeded), or what the broker says. An ack that came too late ends nothing:
//          the message comes again.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "ordo/adapters/pubsub_client/client.h"
#include "ordo/core/clock.h"
#include "ordo/core/result.h"

namespace ordo::app {

class Settling {
 public:
  static constexpr std::size_t kCallsMax = 32;
  static constexpr std::size_t kIdsMax = 1'000;
  static constexpr std::chrono::seconds kPatience{60};
  static constexpr std::chrono::seconds kLease{60};

  explicit Settling(std::string subscription) : subscription_(std::move(subscription)) {}

  void ack(std::string id) { acks_.push_back(std::move(id)); }
  void give_back(std::string id) { nacks_.push_back(std::move(id)); }
  // For kLease from now.
  void extend(std::string id) { extensions_.push_back(std::move(id)); }

  // Takes the answers that have come, and sends what there is room for.
  Status go_on(pubsub_client::Client& client);
  bool is_full() const { return calls_.size() >= kCallsMax && has_waiting(); }
  bool is_under_way() const { return !calls_.empty(); }
  // All is said and answered.
  bool is_done() const { return calls_.empty() && !has_waiting(); }
  // When go_on() has something to do, at the latest.
  TimePoint next_look() const;
  // Until the oldest answer has come, `until`, or `wake_fd` is readable.
  void wait(pubsub_client::Client& client, TimePoint until, int wake_fd);
  // The connection has gone, and all leases with it.
  void forget();

 private:
  enum class What : std::uint8_t { ack, give_back, extend };
  struct Call {
    What what;
    std::vector<std::string> ids;
    TimePoint deadline;
    grpc_client::Stream stream;
  };

  bool has_waiting() const { return !acks_.empty() || !nacks_.empty() || !extensions_.empty(); }
  void send(pubsub_client::Client& client, What what, std::vector<std::string>& ids);
  Status take_answers(pubsub_client::Client& client);
  Status take_refusal(pubsub_client::Client& client, Call& call, const Error& why);

  const std::string subscription_;
  std::vector<std::string> acks_, nacks_, extensions_;
  std::deque<Call> calls_;  // Oldest first.
  std::chrono::nanoseconds backoff_{};
  TimePoint send_at_{};  // Not before.
};

}  // namespace ordo::app

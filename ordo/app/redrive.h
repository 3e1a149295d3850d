// Redrive: dead letters back where they came from, in order within each key.
//
//   Redrive redrive(client, {.subscription = "projects/p/subscriptions/dead"});
//   if (Status looked = redrive.look(); !looked) return looked;     // counts, consumes nothing
//   show(redrive.groups());
//   Status done = redrive.run(interrupt_fd, [] { return false; });
//
// Each is published to the topic of the subscription it came from, or to `to`, without what
// dead-lettering added, and acknowledged after that was answered. So a stop in between repeats, and
// never loses. Only what look() has seen is put back: what fails again at once does not go round.
// Others that are delivered are held meanwhile, and given back at the end.
//
// Threads: one owner, that of the client.
// Bounds:  kHeldMax messages that are not to be put back; the groups of what look() has seen.
// Errors:  failed_precondition: the order cannot be kept, or it is not known where one belongs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ordo/adapters/pubsub_client/client.h"
#include "ordo/adapters/pubsub_client/operator_client.h"
#include "ordo/core/result.h"

namespace ordo::app {

struct RedriveOptions {
  std::string subscription = {};
  std::string key = {};  // Those of this key only; empty: all.
  std::string to = {};   // A topic; empty: where they came from.
  bool keeps_order = true;
  std::chrono::nanoseconds patience = std::chrono::seconds(10);  // Without any message.
};

class Redrive {
 public:
  static constexpr std::int64_t kHeldMax = 10'000;

  // Whose dead letters, and how many: by origin and key. The origin is the name of a subscription;
  // empty: it does not say.
  using Groups = std::map<std::pair<std::string, std::string>, std::uint64_t>;

  // REQUIRES: `client` outlives this.
  Redrive(pubsub_client::Client& client, RedriveOptions options)
      : client_(client),
        options_(std::move(options)) {}

  Status look();
  const Groups& groups() const { return groups_; }
  std::uint64_t found() const { return found_; }

  // Until all that was found is put back, `stops` returns true (asked again and again),
  // or nothing comes for `patience`.
  Status run(int wake_fd, const std::function<bool()>& stops);
  std::uint64_t done() const { return done_; }
  // By topic.
  const std::map<std::string, std::uint64_t>& published() const { return published_; }

 private:
  using Messages = std::vector<pubsub_client::IncomingMessage>;

  Status check_order();
  bool is_wanted(const pubsub_client::IncomingMessage& message) const;
  Messages take_wanted(Messages& some, std::vector<std::string>& held) const;
  Result<std::string> target_of(const pubsub_client::IncomingMessage& message);
  Status put_back(const Messages& messages);
  void give_back(const std::vector<std::string>& ack_ids);

  pubsub_client::Client& client_;
  const RedriveOptions options_;
  Groups groups_;
  std::uint64_t found_ = 0;
  std::uint64_t last_id_ = 0;
  std::uint64_t done_ = 0;
  std::map<std::string, std::string> targets_;  // By origin.
  std::map<std::string, std::uint64_t> published_;
};

}  // namespace ordo::app

// PullStream: messages of a subscription as they come, and keep-alive.
//
//   PullStream stream(client, "projects/p/subscriptions/billing", {.messages_max = 100});
//   Result<std::vector<IncomingMessage>> some = stream.read(clock.now() + 1s, wake_fd);
//   if (!some) return some.error();           // the stream has ended
//
// Messages are acknowledged by the client: Client::acknowledge().
//
// Threads: one owner, that of the client.
// Bounds:  messages_max messages given out by the server and neither acknowledged nor given back.
// Errors:  read(): what ended the stream; unavailable: it may be opened again.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "ordo/adapters/pubsub_client/client.h"

namespace ordo::pubsub_client {

struct PullOptions {
  std::int64_t messages_max = 100;
  std::int64_t bytes_max = std::int64_t{64} << 20;
  std::chrono::seconds ack_deadline{60};  // 10 s to 600 s: of what this stream gets.
};

class PullStream {
 public:
  // REQUIRES: `client` outlives this.
  PullStream(Client& client, const std::string& subscription, const PullOptions& options);

  // All messages that are there; waits for the first. None: by `deadline` there were none, or
  // `wake_fd` is readable. Says to the server that somebody is here when it has heard nothing for a
  // while.
  Result<std::vector<IncomingMessage>> read(TimePoint deadline, int wake_fd = -1);

  // Known from the first answer on.
  bool is_ordered() const { return is_ordered_; }
  bool is_exactly_once() const { return is_exactly_once_; }

 private:
  static constexpr std::chrono::seconds kKeepAlive{30};

  Status take(const std::string& response, std::vector<IncomingMessage>& messages);

  const Clock& clock_;
  grpc_client::Stream stream_;
  TimePoint next_keep_alive_;
  bool is_ordered_ = false;
  bool is_exactly_once_ = false;
};

}  // namespace ordo::pubsub_client

// OperatorClient: calls of the operator API, in plain values. TailStream: a topic, followed.
//
//   OperatorClient operators(client);
//   Result<std::vector<KeyRow>> keys = operators.keys("projects/p/subscriptions/s", {});
//   Status freed = operators.act("projects/p/subscriptions/s", "user-7", KeyVerb::skip);
//   Result<PeekedRows> page = operators.peek("projects/p/subscriptions/s", {});
//
//   TailStream tail(client, {.topic = "projects/p/topics/t"});
//   Result<TailRows> some = tail.read(clock.now() + 1s, wake_fd);
//
// Threads: one owner, that of the client.
// Bounds:  as those of the server: 1,000 keys, 1,000 messages and about 3 MiB in a page.
// Errors:  as Client.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "ordo/adapters/pubsub_client/client.h"

namespace ordo::pubsub_client {

enum class KeyOrder : std::uint8_t { longest_blocked, deepest, hottest };
enum class KeyVerb : std::uint8_t { pause, resume, skip, dead_letter };

struct KeyQuery {
  KeyOrder order = KeyOrder::longest_blocked;
  bool is_stuck_only = false;
  std::int32_t count_max = 20;
};

struct KeyRow {
  std::string key = {};
  std::string reason = {};  // "in flight", "backoff", "parked", ...
  bool is_stuck = false;
  std::string head_id = {};
  std::int32_t attempts = 0;
  std::string last_failure = {};
  WallTime blocked_since = {};
  std::chrono::nanoseconds blocked{};
  std::int64_t waiting = 0;
  std::int64_t stream = 0;  // 0: none holds it.
  double per_second = 0;
};

struct PeekQuery {
  std::string key = {};  // Empty: all.
  std::int32_t messages_max = 100;
  std::string page_token = {};
};

struct PeekedRow {
  bool is_readable = true;
  IncomingMessage message = {};  // Without an ack id: it was not delivered.
  std::string state = {};        // "ready", "in flight", "waiting", "blocked".
  std::string reason = {};       // When blocked.
  std::int32_t attempts = 0;
  std::int64_t stream = 0;
};

struct PeekedRows {
  std::vector<PeekedRow> rows = {};
  std::string next_page_token = {};  // Empty: there are no more.
};

struct SubscriptionFigures {
  std::int64_t backlog = 0;
  std::int64_t in_flight = 0;
};

class OperatorClient {
 public:
  // REQUIRES: `client` outlives this.
  explicit OperatorClient(Client& client) : client_(client) {}

  Result<std::vector<KeyRow>> keys(const std::string& subscription, const KeyQuery& query);
  Status act(const std::string& subscription, const std::string& key, KeyVerb verb);
  Result<PeekedRows> peek(const std::string& subscription, const PeekQuery& query);
  Result<SubscriptionFigures> figures(const std::string& subscription);

 private:
  Client& client_;
};

struct TailQuery {
  std::string topic = {};
  std::string key = {};     // Empty: all.
  std::string filter = {};  // As that of a subscription.
};

struct TailRows {
  std::vector<IncomingMessage> messages = {};
  std::int64_t missed = 0;  // Left out before these, because they came too fast.
};

class TailStream {
 public:
  // REQUIRES: `client` outlives this.
  TailStream(Client& client, const TailQuery& query);

  // What was stored since; nothing by `deadline`, or when `wake_fd` is readable.
  Result<TailRows> read(TimePoint deadline, int wake_fd = -1);

 private:
  grpc_client::Stream stream_;
};

}  // namespace ordo::pubsub_client

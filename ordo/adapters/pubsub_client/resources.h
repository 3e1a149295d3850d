// Topic, Subscription, Snapshot, and messages, as a client of the Pub/Sub API sees them.
//
// Threads: plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ordo/core/clock.h"

namespace ordo::pubsub_client {

using Labels = std::map<std::string, std::string>;

struct Topic {
  std::string name = {};  // projects/{project}/topics/{topic}; so for the others.
  Labels labels = {};
  std::optional<std::chrono::nanoseconds> retention = {};
  std::string json = {};  // What the server said, in the API's JSON. Not sent.
};

struct RetryBackoff {
  std::chrono::nanoseconds minimum = std::chrono::seconds(10);
  std::chrono::nanoseconds maximum = std::chrono::seconds(600);
};

struct DeadLetters {
  std::string topic = {};
  std::int32_t attempts_max = 5;
};

struct Subscription {
  std::string name = {};
  std::string topic = {};
  Labels labels = {};
  std::chrono::seconds ack_deadline{10};
  bool is_ordered = false;
  bool is_exactly_once = false;
  bool retains_acked = false;
  bool is_detached = false;                                 // Not sent.
  std::optional<std::chrono::nanoseconds> retention = {};   // None: the server's default.
  std::optional<std::chrono::nanoseconds> expiration = {};  // None: the default; zero: never.
  std::string filter = {};
  std::optional<RetryBackoff> retry = {};
  std::optional<DeadLetters> dead_letters = {};
  std::string push_endpoint = {};  // Empty: pulled.
  std::string json = {};           // As for a topic.
};

struct Snapshot {
  std::string name = {};
  std::string topic = {};
  Labels labels = {};
  WallTime expires_at = {};  // Not sent.
  std::string json = {};     // As for a topic.
};

using Attributes = std::map<std::string, std::string>;

struct OutgoingMessage {
  std::string data = {};
  std::string key = {};  // Empty: none.
  Attributes attributes = {};
};

struct IncomingMessage {
  std::string ack_id = {};
  std::string id = {};
  std::string data = {};
  std::string key = {};
  Attributes attributes = {};
  WallTime published_at = {};
  std::int32_t attempt = 0;  // 0: the subscription does not count them.
};

}  // namespace ordo::pubsub_client

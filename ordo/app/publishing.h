// Publishing: sends messages to a topic in batches, several at once, those of a key in order.
//
//   Publishing publishing(client, topic);
//   if (Status sent = publishing.add(1, {.data = "hello", .key = "k"}); !sent) return sent;
//   ...
//   if (Status sent = publishing.finish(); !sent) return sent;    // all are stored
//   publishing.published();
//
// A request has messages of one key (the API wants it so), and a key has one request under way, so
// that what fails cannot be overtaken. Messages without a key go in any order.
//
// Threads: one owner.
// Bounds:  kRequestsMax requests under way, each with kBatchMax messages or kBatchBytesMax bytes;
//          as many messages again wait. add() waits for the oldest when that is reached.
// Errors:  the first one ends it: add() and finish() return it with the line of its first message;
//          what was sent beside it may have been stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ordo/adapters/pubsub_client/client.h"
#include "ordo/core/result.h"

namespace ordo::app {

class Publishing {
 public:
  static constexpr std::size_t kRequestsMax = 32;
  static constexpr std::size_t kBatchMax = 1'000;
  static constexpr std::size_t kBatchBytesMax = std::size_t{1} << 20;
  static constexpr std::size_t kWaitingMax = kRequestsMax * kBatchMax;
  static constexpr std::size_t kWaitingBytesMax = kRequestsMax * kBatchBytesMax;

  // Called with the ids of each batch, and the lines its messages came from.
  using OnStored = std::function<void(const std::vector<std::uint64_t>& lines,
                                      const std::vector<std::string>& ids)>;

  // REQUIRES: `client` outlives this.
  Publishing(pubsub_client::Client& client, std::string topic, OnStored on_stored);

  // `line` is where it came from, for errors.
  Status add(std::uint64_t line, pubsub_client::OutgoingMessage message);
  // Sends what waits, as far as there is room.
  void send_waiting();
  // Waits for the oldest request under way, if there is one.
  Status settle_one();
  // Waits until everything is stored.
  Status finish();

  bool is_under_way() const { return !requests_.empty(); }
  std::uint64_t published() const { return published_; }

 private:
  struct Lane {
    std::deque<std::pair<std::uint64_t, pubsub_client::OutgoingMessage>> waiting = {};
    std::size_t under_way = 0;  // Requests.
    bool is_queued = false;     // In ready_.
  };
  struct Request {
    std::string key;
    std::vector<std::uint64_t> lines;
    grpc_client::Stream call;
  };

  void queue(const std::string& key, Lane& lane);
  void send_from(const std::string& key, Lane& lane);

  pubsub_client::Client& client_;
  const std::string topic_;
  const OnStored on_stored_;
  std::unordered_map<std::string, Lane> lanes_;
  std::deque<std::string> ready_;  // Keys that have something to send and may.
  std::deque<Request> requests_;   // Oldest first.
  std::size_t waiting_ = 0;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t published_ = 0;
};

}  // namespace ordo::app

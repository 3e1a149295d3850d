// Client: calls of the Pub/Sub API, in plain values, one after the other.
//
//   Result<std::unique_ptr<Client>> client = Client::connect({"127.0.0.1", 8085});
//   if (!client) return client.error();
//   (*client)->create_topic({.name = "projects/p/topics/orders"});
//   Result<std::vector<std::string>> ids = (*client)->publish("projects/p/topics/orders",
//                                                             {{.data = "hello", .key = "k"}});
//
// Names are whole: projects/{project}/topics/{topic}. Lists are complete: all pages are asked for.
//
// Threads: one owner, who waits for the answers.
// Bounds:  as Channel; call_timeout for each call.
// Errors:  what the server says, with its code; unavailable and deadline_exceeded when it is not
//          heard.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/adapters/grpc_client/channel.h"
#include "ordo/adapters/pubsub_client/resources.h"
#include "ordo/core/clock.h"
#include "ordo/core/result.h"

namespace ordo::pubsub_client {

class Client {
 public:
  struct Options {
    std::chrono::nanoseconds call_timeout = std::chrono::seconds(60);
    grpc_client::ChannelOptions channel = {};
  };

  static Result<std::unique_ptr<Client>> connect(const grpc_client::Address& address,
                                                 const Options& options);
  static Result<std::unique_ptr<Client>> connect(const grpc_client::Address& address) {
    return connect(address, Options());
  }
  Client(std::unique_ptr<grpc_client::Channel> channel, const Options& options);

  // What is left unset gets the server's default; the answer has everything.
  Result<Topic> create_topic(const Topic& topic);
  Result<Topic> get_topic(const std::string& name);
  // `fields` are those of the API to change: "labels", "message_retention_duration".
  Result<Topic> update_topic(const Topic& topic, const std::vector<std::string>& fields);
  Status delete_topic(const std::string& name);
  Result<std::vector<Topic>> topics(const std::string& project);
  // Names of the subscriptions of a topic.
  Result<std::vector<std::string>> topic_subscriptions(const std::string& topic);

  Result<Subscription> create_subscription(const Subscription& subscription);
  Result<Subscription> get_subscription(const std::string& name);
  Result<Subscription> update_subscription(const Subscription& subscription,
                                           const std::vector<std::string>& fields);
  Status delete_subscription(const std::string& name);
  Result<std::vector<Subscription>> subscriptions(const std::string& project);

  Result<Snapshot> create_snapshot(const Snapshot& snapshot, const std::string& subscription);
  Result<Snapshot> get_snapshot(const std::string& name);
  Status delete_snapshot(const std::string& name);
  Result<std::vector<Snapshot>> snapshots(const std::string& project);

  Status seek_to_time(const std::string& subscription, WallTime time);
  Status seek_to_snapshot(const std::string& subscription, const std::string& snapshot);

  // The ids, in the order of the messages. All are stored, or none is.
  Result<std::vector<std::string>> publish(const std::string& topic,
                                           const std::vector<OutgoingMessage>& messages);
  // The same in two steps, so that several may be under way.
  // REQUIRES: the client outlives what is returned.
  grpc_client::Stream begin_publish(const std::string& topic,
                                    const std::vector<OutgoingMessage>& messages);
  Result<std::vector<std::string>> end_publish(grpc_client::Stream& call);

  Status acknowledge(const std::string& subscription, const std::vector<std::string>& ack_ids);
  // Zero gives them back.
  Status modify_deadline(const std::string& subscription, const std::vector<std::string>& ack_ids,
                         std::chrono::seconds deadline);
  // The same without waiting: read what is returned to its end, which says how it went.
  // REQUIRES: the client outlives what is returned.
  grpc_client::Stream begin_acknowledge(const std::string& subscription,
                                        const std::vector<std::string>& ack_ids);
  grpc_client::Stream begin_modify_deadline(const std::string& subscription,
                                            const std::vector<std::string>& ack_ids,
                                            std::chrono::seconds deadline);

  grpc_client::Channel& channel() { return *channel_; }

 private:
  grpc_client::Stream begin(std::string_view method, std::string_view request);

  const std::unique_ptr<grpc_client::Channel> channel_;
  const std::chrono::nanoseconds call_timeout_;
};

}  // namespace ordo::pubsub_client

#include "ordo/adapters/pubsub_client/client.h"

#include <utility>

#include <google/protobuf/empty.pb.h>
#include <google/pubsub/v1/pubsub.pb.h>

#include "ordo/adapters/pubsub_client/convert.h"

namespace ordo::pubsub_client {
namespace {

using google::protobuf::Empty;
using grpc_client::Channel;

std::string path_of(std::string_view method) {
  return "/google.pubsub.v1." + std::string(method);
}

template <class Response>
Result<Response> parsed(const Result<std::string>& answer, std::string_view method) {
  if (!answer) return answer.error();
  Response response;
  if (response.ParseFromString(*answer)) return response;
  return Error{ErrorCode::internal, "the answer to " + std::string(method) + " cannot be read"};
}

// One call at a time.
class Caller {
 public:
  Caller(Channel& channel, std::chrono::nanoseconds timeout)
      : channel_(channel),
        timeout_(timeout) {}

  template <class Response>
  Result<Response> call(std::string_view method, const google::protobuf::Message& request) {
    return parsed<Response>(channel_.call(path_of(method), request.SerializeAsString(), timeout_),
                            method);
  }
  // Without what the answer says.
  template <class Response = Empty>
  Status order(std::string_view method, const google::protobuf::Message& request) {
    const Result<Response> answer = call<Response>(method, request);
    return answer ? Status() : answer.error();
  }
  // With the answer as a plain value.
  template <class Response>
  auto resource(std::string_view method, const google::protobuf::Message& request)
      -> Result<decltype(resource_of(std::declval<Response>()))> {
    const Result<Response> answer = call<Response>(method, request);
    if (!answer) return answer.error();
    return resource_of(*answer);
  }
  // All pages; `take` is called with each.
  template <class Response, class Request, class Take>
  Status pages(std::string_view method, Request request, Take&& take) {
    do {
      Result<Response> page = call<Response>(method, request);
      if (!page) return page.error();
      take(*page);
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    return {};
  }

 private:
  Channel& channel_;
  const std::chrono::nanoseconds timeout_;
};

v1::AcknowledgeRequest acknowledge_request(const std::string& subscription,
                                           const std::vector<std::string>& ack_ids) {
  v1::AcknowledgeRequest request;
  request.set_subscription(subscription);
  for (const std::string& id : ack_ids)
    request.add_ack_ids(id);
  return request;
}

v1::ModifyAckDeadlineRequest modify_request(const std::string& subscription,
                                            const std::vector<std::string>& ack_ids,
                                            std::chrono::seconds deadline) {
  v1::ModifyAckDeadlineRequest request;
  request.set_subscription(subscription);
  request.set_ack_deadline_seconds(static_cast<std::int32_t>(deadline.count()));
  for (const std::string& id : ack_ids)
    request.add_ack_ids(id);
  return request;
}

template <class T>
Result<std::vector<T>> either(const Status& status, std::vector<T> list) {
  if (!status) return status.error();
  return list;
}

}  // namespace

Result<std::unique_ptr<Client>> Client::connect(const grpc_client::Address& address,
                                                const Options& options) {
  Result<std::unique_ptr<Channel>> channel = Channel::connect(address, options.channel);
  if (!channel) return channel.error();
  return std::make_unique<Client>(std::move(*channel), options);
}

Client::Client(std::unique_ptr<Channel> channel, const Options& options)
    : channel_(std::move(channel)),
      call_timeout_(options.call_timeout) {}

Result<Topic> Client::create_topic(const Topic& topic) {
  return Caller(*channel_, call_timeout_)
      .resource<v1::Topic>("Publisher/CreateTopic", message_of(topic));
}

Result<Topic> Client::get_topic(const std::string& name) {
  v1::GetTopicRequest request;
  request.set_topic(name);
  return Caller(*channel_, call_timeout_).resource<v1::Topic>("Publisher/GetTopic", request);
}

Result<Topic> Client::update_topic(const Topic& topic, const std::vector<std::string>& fields) {
  v1::UpdateTopicRequest request;
  *request.mutable_topic() = message_of(topic);
  for (const std::string& field : fields)
    request.mutable_update_mask()->add_paths(field);
  return Caller(*channel_, call_timeout_).resource<v1::Topic>("Publisher/UpdateTopic", request);
}

Status Client::delete_topic(const std::string& name) {
  v1::DeleteTopicRequest request;
  request.set_topic(name);
  return Caller(*channel_, call_timeout_).order("Publisher/DeleteTopic", request);
}

Result<std::vector<Topic>> Client::topics(const std::string& project) {
  v1::ListTopicsRequest request;
  request.set_project("projects/" + project);
  std::vector<Topic> all;
  const Status listed =
      Caller(*channel_, call_timeout_)
          .pages<v1::ListTopicsResponse>("Publisher/ListTopics", request, [&](const auto& page) {
            for (const v1::Topic& topic : page.topics())
              all.push_back(resource_of(topic));
          });
  return either(listed, std::move(all));
}

Result<std::vector<std::string>> Client::topic_subscriptions(const std::string& topic) {
  v1::ListTopicSubscriptionsRequest request;
  request.set_topic(topic);
  std::vector<std::string> all;
  const Status listed =
      Caller(*channel_, call_timeout_)
          .pages<v1::ListTopicSubscriptionsResponse>(
              "Publisher/ListTopicSubscriptions", request, [&](const auto& page) {
                all.insert(all.end(), page.subscriptions().begin(), page.subscriptions().end());
              });
  return either(listed, std::move(all));
}

Result<Subscription> Client::create_subscription(const Subscription& subscription) {
  return Caller(*channel_, call_timeout_)
      .resource<v1::Subscription>("Subscriber/CreateSubscription", message_of(subscription));
}

Result<Subscription> Client::get_subscription(const std::string& name) {
  v1::GetSubscriptionRequest request;
  request.set_subscription(name);
  return Caller(*channel_, call_timeout_)
      .resource<v1::Subscription>("Subscriber/GetSubscription", request);
}

Result<Subscription> Client::update_subscription(const Subscription& subscription,
                                                 const std::vector<std::string>& fields) {
  v1::UpdateSubscriptionRequest request;
  *request.mutable_subscription() = message_of(subscription);
  for (const std::string& field : fields)
    request.mutable_update_mask()->add_paths(field);
  return Caller(*channel_, call_timeout_)
      .resource<v1::Subscription>("Subscriber/UpdateSubscription", request);
}

Status Client::delete_subscription(const std::string& name) {
  v1::DeleteSubscriptionRequest request;
  request.set_subscription(name);
  return Caller(*channel_, call_timeout_).order("Subscriber/DeleteSubscription", request);
}

Result<std::vector<Subscription>> Client::subscriptions(const std::string& project) {
  v1::ListSubscriptionsRequest request;
  request.set_project("projects/" + project);
  std::vector<Subscription> all;
  const Status listed = Caller(*channel_, call_timeout_)
                            .pages<v1::ListSubscriptionsResponse>(
                                "Subscriber/ListSubscriptions", request, [&](const auto& page) {
                                  for (const v1::Subscription& one : page.subscriptions())
                                    all.push_back(resource_of(one));
                                });
  return either(listed, std::move(all));
}

Result<Snapshot> Client::create_snapshot(const Snapshot& snapshot,
                                         const std::string& subscription) {
  v1::CreateSnapshotRequest request;
  request.set_name(snapshot.name);
  request.set_subscription(subscription);
  request.mutable_labels()->insert(snapshot.labels.begin(), snapshot.labels.end());
  return Caller(*channel_, call_timeout_)
      .resource<v1::Snapshot>("Subscriber/CreateSnapshot", request);
}

Result<Snapshot> Client::get_snapshot(const std::string& name) {
  v1::GetSnapshotRequest request;
  request.set_snapshot(name);
  return Caller(*channel_, call_timeout_).resource<v1::Snapshot>("Subscriber/GetSnapshot", request);
}

Status Client::delete_snapshot(const std::string& name) {
  v1::DeleteSnapshotRequest request;
  request.set_snapshot(name);
  return Caller(*channel_, call_timeout_).order("Subscriber/DeleteSnapshot", request);
}

Result<std::vector<Snapshot>> Client::snapshots(const std::string& project) {
  v1::ListSnapshotsRequest request;
  request.set_project("projects/" + project);
  std::vector<Snapshot> all;
  const Status listed = Caller(*channel_, call_timeout_)
                            .pages<v1::ListSnapshotsResponse>(
                                "Subscriber/ListSnapshots", request, [&](const auto& page) {
                                  for (const v1::Snapshot& one : page.snapshots())
                                    all.push_back(resource_of(one));
                                });
  return either(listed, std::move(all));
}

Status Client::seek_to_time(const std::string& subscription, WallTime time) {
  v1::SeekRequest request;
  request.set_subscription(subscription);
  *request.mutable_time() = message_of(time);
  return Caller(*channel_, call_timeout_).order<v1::SeekResponse>("Subscriber/Seek", request);
}

Status Client::seek_to_snapshot(const std::string& subscription, const std::string& snapshot) {
  v1::SeekRequest request;
  request.set_subscription(subscription);
  request.set_snapshot(snapshot);
  return Caller(*channel_, call_timeout_).order<v1::SeekResponse>("Subscriber/Seek", request);
}

Result<std::vector<std::string>> Client::publish(const std::string& topic,
                                                 const std::vector<OutgoingMessage>& messages) {
  grpc_client::Stream call = begin_publish(topic, messages);
  return end_publish(call);
}

grpc_client::Stream Client::begin_publish(const std::string& topic,
                                          const std::vector<OutgoingMessage>& messages) {
  v1::PublishRequest request;
  request.set_topic(topic);
  for (const OutgoingMessage& message : messages)
    *request.add_messages() = message_of(message);
  return begin("Publisher/Publish", request.SerializeAsString());
}

grpc_client::Stream Client::begin(std::string_view method, std::string_view request) {
  grpc_client::Stream call = channel_->open(path_of(method), call_timeout_);
  // An error of the connection is told when the answer is read.
  static_cast<void>(call.write(request));
  call.half_close();
  return call;
}

Result<std::vector<std::string>> Client::end_publish(grpc_client::Stream& call) {
  const std::string path = path_of("Publisher/Publish");
  const TimePoint deadline = channel_->clock().now() + call_timeout_;
  const Result<v1::PublishResponse> answer =
      parsed<v1::PublishResponse>(channel_->answer_of(call, path, deadline), path);
  if (!answer) return answer.error();
  return std::vector<std::string>(answer->message_ids().begin(), answer->message_ids().end());
}

Status Client::acknowledge(const std::string& subscription,
                           const std::vector<std::string>& ack_ids) {
  return Caller(*channel_, call_timeout_)
      .order("Subscriber/Acknowledge", acknowledge_request(subscription, ack_ids));
}

Status Client::modify_deadline(const std::string& subscription,
                               const std::vector<std::string>& ack_ids,
                               std::chrono::seconds deadline) {
  return Caller(*channel_, call_timeout_)
      .order("Subscriber/ModifyAckDeadline", modify_request(subscription, ack_ids, deadline));
}

grpc_client::Stream Client::begin_acknowledge(const std::string& subscription,
                                              const std::vector<std::string>& ack_ids) {
  return begin("Subscriber/Acknowledge",
               acknowledge_request(subscription, ack_ids).SerializeAsString());
}

grpc_client::Stream Client::begin_modify_deadline(const std::string& subscription,
                                                  const std::vector<std::string>& ack_ids,
                                                  std::chrono::seconds deadline) {
  return begin("Subscriber/ModifyAckDeadline",
               modify_request(subscription, ack_ids, deadline).SerializeAsString());
}

}  // namespace ordo::pubsub_client

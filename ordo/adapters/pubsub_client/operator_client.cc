#include "ordo/adapters/pubsub_client/operator_client.h"

#include <utility>

#include <google/protobuf/util/time_util.h>
#include <ordo/operate/v1/operator.pb.h>

#include "ordo/adapters/pubsub_client/convert.h"

namespace ordo::pubsub_client {
namespace {

namespace operate = ordo::operate::v1;
using google::protobuf::util::TimeUtil;

constexpr std::chrono::seconds kCallTimeout{60};

template <class Response>
Result<Response> call(Client& client, const std::string& method,
                      const google::protobuf::Message& request) {
  const Result<std::string> answer = client.channel().call(
      "/ordo.operate.v1.Operator/" + method, request.SerializeAsString(), kCallTimeout);
  if (!answer && answer.error().code == ErrorCode::unimplemented)
    return Error{ErrorCode::unimplemented,
                 "the server does not know " + method + ": it is another broker, or an older ordo"};
  if (!answer) return answer.error();
  Response response;
  if (response.ParseFromString(*answer)) return response;
  return Error{ErrorCode::internal, "the answer to " + method + " cannot be read"};
}

const char* text_of(operate::BlockReason reason) {
  switch (reason) {
    case operate::IN_FLIGHT:
      return "in flight";
    case operate::BACKOFF:
      return "backoff";
    case operate::NO_CONSUMER:
      return "no consumer";
    case operate::PARKED:
      return "parked";
    case operate::PAUSED:
      return "paused";
    case operate::DEAD_LETTER_GONE:
      return "dead-letter topic gone";
    case operate::STORING:
      return "storing";
    case operate::DATA_LOSS:
      return "data loss";
    case operate::NO_MESSAGE:
      return "idle";
    default:
      return "unknown";
  }
}

const char* text_of(operate::PeekedMessage::State state) {
  switch (state) {
    case operate::PeekedMessage::READY:
      return "ready";
    case operate::PeekedMessage::IN_FLIGHT:
      return "in flight";
    case operate::PeekedMessage::WAITING:
      return "waiting";
    case operate::PeekedMessage::BLOCKED:
      return "blocked";
    default:
      return "unknown";
  }
}

WallTime time_of(const google::protobuf::Timestamp& time) {
  return WallTime(std::chrono::nanoseconds(TimeUtil::TimestampToNanoseconds(time)));
}

IncomingMessage without_ack_id(v1::PubsubMessage&& message) {
  v1::ReceivedMessage received;
  *received.mutable_message() = std::move(message);
  return incoming(std::move(received));
}

KeyRow row_of(const operate::Key& key) {
  KeyRow row;
  row.key = key.ordering_key();
  row.reason = text_of(key.reason());
  row.is_stuck = key.is_stuck();
  row.head_id = key.head_message_id();
  row.attempts = key.delivery_attempts();
  row.last_failure = key.last_failure();
  row.blocked_since = time_of(key.blocked_since());
  row.blocked = std::chrono::nanoseconds(TimeUtil::DurationToNanoseconds(key.blocked_time()));
  row.waiting = key.waiting();
  row.stream = key.stream();
  row.per_second = key.deliveries_per_second();
  return row;
}

}  // namespace

Result<std::vector<KeyRow>> OperatorClient::keys(const std::string& subscription,
                                                 const KeyQuery& query) {
  operate::ListKeysRequest request;
  request.set_subscription(subscription);
  request.set_stuck_only(query.is_stuck_only);
  request.set_max_keys(query.count_max);
  if (query.order == KeyOrder::deepest) request.set_order(operate::ListKeysRequest::DEEPEST);
  if (query.order == KeyOrder::hottest) request.set_order(operate::ListKeysRequest::HOTTEST);
  const auto response = call<operate::ListKeysResponse>(client_, "ListKeys", request);
  if (!response) return response.error();
  std::vector<KeyRow> rows;
  for (const operate::Key& key : response->keys())
    rows.push_back(row_of(key));
  return rows;
}

Status OperatorClient::act(const std::string& subscription, const std::string& key, KeyVerb verb) {
  operate::OperateKeyRequest request;
  request.set_subscription(subscription);
  request.set_ordering_key(key);
  switch (verb) {
    case KeyVerb::pause:
      request.set_verb(operate::OperateKeyRequest::PAUSE);
      break;
    case KeyVerb::resume:
      request.set_verb(operate::OperateKeyRequest::RESUME);
      break;
    case KeyVerb::skip:
      request.set_verb(operate::OperateKeyRequest::SKIP);
      break;
    case KeyVerb::dead_letter:
      request.set_verb(operate::OperateKeyRequest::DEAD_LETTER);
      break;
  }
  const auto response = call<operate::OperateKeyResponse>(client_, "OperateKey", request);
  return response ? Status() : response.error();
}

Result<PeekedRows> OperatorClient::peek(const std::string& subscription, const PeekQuery& query) {
  operate::PeekRequest request;
  request.set_subscription(subscription);
  request.set_ordering_key(query.key);
  request.set_max_messages(query.messages_max);
  request.set_page_token(query.page_token);
  auto response = call<operate::PeekResponse>(client_, "Peek", request);
  if (!response) return response.error();
  PeekedRows page;
  page.next_page_token = response->next_page_token();
  for (operate::PeekedMessage& message : *response->mutable_messages()) {
    PeekedRow row;
    row.is_readable = message.has_message();
    row.state = text_of(message.state());
    if (message.state() == operate::PeekedMessage::BLOCKED) row.reason = text_of(message.reason());
    row.attempts = message.delivery_attempts();
    row.stream = message.stream();
    if (row.is_readable) row.message = without_ack_id(std::move(*message.mutable_message()));
    page.rows.push_back(std::move(row));
  }
  return page;
}

Result<SubscriptionFigures> OperatorClient::figures(const std::string& subscription) {
  operate::GetStatsRequest request;
  request.set_subscription(subscription);
  const auto response = call<operate::Stats>(client_, "GetStats", request);
  if (!response) return response.error();
  SubscriptionFigures figures;
  for (const operate::SubscriptionStats& stats : response->subscriptions()) {
    figures.backlog += stats.backlog();
    figures.in_flight += stats.in_flight();
  }
  return figures;
}

TailStream::TailStream(Client& client, const TailQuery& query)
    : stream_(client.channel().open("/ordo.operate.v1.Operator/Tail")) {
  operate::TailRequest request;
  request.set_topic(query.topic);
  request.set_ordering_key(query.key);
  request.set_filter(query.filter);
  // An error of the connection is told by read().
  static_cast<void>(stream_.write(request.SerializeAsString()));
  stream_.half_close();
}

Result<TailRows> TailStream::read(TimePoint deadline, int wake_fd) {
  Result<grpc_client::Event> event = stream_.read(deadline, wake_fd);
  if (!event) return event.error();
  if (event->is_end) return Error{ErrorCode::unavailable, "the server ended the stream"};
  TailRows rows;
  if (!event->message) return rows;
  operate::TailResponse response;
  if (!response.ParseFromString(*event->message))
    return Error{ErrorCode::internal, "an answer of Tail cannot be read"};
  rows.missed = response.missed();
  for (v1::PubsubMessage& message : *response.mutable_messages())
    rows.messages.push_back(without_ack_id(std::move(message)));
  return rows;
}

}  // namespace ordo::pubsub_client

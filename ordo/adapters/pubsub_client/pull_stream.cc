#include "ordo/adapters/pubsub_client/pull_stream.h"

#include <algorithm>
#include <utility>

#include <google/pubsub/v1/pubsub.pb.h>

#include "ordo/adapters/pubsub_client/convert.h"

namespace ordo::pubsub_client {

PullStream::PullStream(Client& client, const std::string& subscription, const PullOptions& options)
    : clock_(client.channel().clock()),
      stream_(client.channel().open("/google.pubsub.v1.Subscriber/StreamingPull")),
      next_keep_alive_(clock_.now() + kKeepAlive) {
  v1::StreamingPullRequest request;
  request.set_subscription(subscription);
  request.set_stream_ack_deadline_seconds(static_cast<std::int32_t>(options.ack_deadline.count()));
  request.set_max_outstanding_messages(options.messages_max);
  request.set_max_outstanding_bytes(options.bytes_max);
  request.set_protocol_version(1);
  // An error of the connection is told by read().
  static_cast<void>(stream_.write(request.SerializeAsString()));
}

Result<std::vector<IncomingMessage>> PullStream::read(TimePoint deadline, int wake_fd) {
  if (clock_.now() >= next_keep_alive_) {
    static_cast<void>(stream_.write(""));  // As above.
    next_keep_alive_ = clock_.now() + kKeepAlive;
  }
  Result<grpc_client::Event> event = stream_.read(std::min(deadline, next_keep_alive_), wake_fd);
  std::vector<IncomingMessage> messages;
  while (event && event->message) {
    if (Status taken = take(*event->message, messages); !taken) return taken.error();
    event = stream_.read_ready();
  }
  // What ends the stream is told when all that came before it has been handed out.
  if (!messages.empty()) return messages;
  if (!event) return event.error();
  if (event->is_end) return Error{ErrorCode::unavailable, "the server ended the stream"};
  return messages;
}

Status PullStream::take(const std::string& bytes, std::vector<IncomingMessage>& messages) {
  v1::StreamingPullResponse response;
  if (!response.ParseFromString(bytes))
    return Error{ErrorCode::internal, "an answer of StreamingPull cannot be read"};
  is_ordered_ = response.subscription_properties().message_ordering_enabled();
  is_exactly_once_ = response.subscription_properties().exactly_once_delivery_enabled();
  for (v1::ReceivedMessage& received : *response.mutable_received_messages())
    messages.push_back(incoming(std::move(received)));
  return {};
}

}  // namespace ordo::pubsub_client

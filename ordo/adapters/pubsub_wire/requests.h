// The requests that come by the thousand, read without a copy: views of the bytes they came in.
//
//   std::optional<PublishRequest> request = read_publish(bytes);
//   if (!request) return call->finish(malformed_request());
//   for (std::string_view message : request->messages) ...
//
// As protobuf reads them: fields in any order, the last of a name counts, unknown ones are skipped,
// numbers packed or not. Texts are not checked for UTF-8: whoever uses them knows what they may be.
//
// Threads: pure functions; a request lives as long as its bytes.
// Bounds:  those of the bytes.
// Cost:    one allocation for each list.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ordo/core/result.h"

namespace ordo::pubsub_wire {

struct PublishRequest {
  std::string_view topic;
  std::vector<std::string_view> messages;  // Each a PubsubMessage.
};

// Acknowledge and ModifyAckDeadline.
struct SettleRequest {
  std::string_view subscription;
  std::vector<std::string_view> ack_ids;
  std::int32_t ack_deadline_seconds = 0;
};

struct StreamRequest {
  std::string_view subscription;
  std::vector<std::string_view> ack_ids;
  std::vector<std::int32_t> modify_deadline_seconds;
  std::vector<std::string_view> modify_deadline_ack_ids;
  std::int32_t stream_ack_deadline_seconds = 0;
  std::int64_t max_outstanding_messages = 0;
  std::int64_t max_outstanding_bytes = 0;
  std::int64_t protocol_version = 0;

  // It says nothing but that the client is there.
  bool is_ping() const { return ack_ids.empty() && modify_deadline_ack_ids.empty(); }
};

// Of bytes that are not the message they should be.
inline Error malformed_request() {
  return {ErrorCode::invalid_argument, "The request is not well-formed."};
}

// Nothing: the bytes are no such message.
std::optional<PublishRequest> read_publish(std::string_view bytes);
std::optional<SettleRequest> read_acknowledge(std::string_view bytes);
std::optional<SettleRequest> read_modify_ack_deadline(std::string_view bytes);
std::optional<StreamRequest> read_streaming_pull(std::string_view bytes);

}  // namespace ordo::pubsub_wire

#include "ordo/adapters/order_tcp/request_encoder.h"

#include <cstddef>

#include "ordo/adapters/order_tcp/little_endian.h"

namespace ordo::order_tcp {
namespace {

void append_header(std::string& bytes, RequestType type, std::size_t id_length,
                   std::size_t body_length) {
  char header[kFrameHeaderBytes];
  char* out = store<std::uint8_t>(header, kWireVersion);
  out = store<std::uint8_t>(out, static_cast<std::uint8_t>(type));
  out = store<std::uint8_t>(out, static_cast<std::uint8_t>(id_length));
  out = store<std::uint8_t>(out, 0);
  store<std::uint32_t>(out, static_cast<std::uint32_t>(body_length));
  bytes.append(header, sizeof(header));
}

void append_number(std::string& bytes, std::int64_t number) {
  char out[sizeof(number)];
  store<std::int64_t>(out, number);
  bytes.append(out, sizeof(out));
}

}  // namespace

void append_task(std::string& bytes, Encoding encoding, const TaskFields& task) {
  if (encoding == Encoding::text) {
    bytes.append(task.request_id).append(" ").append(std::to_string(task.correlation_id));
    bytes.append(" ").append(task.payload).append("\n");
    return;
  }
  append_header(bytes, RequestType::task, task.request_id.size(),
                kCorrelationIdBytes + task.request_id.size() + task.payload.size());
  append_number(bytes, task.correlation_id);
  bytes.append(task.request_id).append(task.payload);
}

void append_command(std::string& bytes, Encoding encoding, RequestType type,
                    std::int64_t correlation_id) {
  const bool is_resume = type == RequestType::resume;
  if (encoding == Encoding::binary) {
    append_header(bytes, type, 0, is_resume ? kCorrelationIdBytes : 0);
    if (is_resume) append_number(bytes, correlation_id);
  } else if (is_resume) {
    bytes.append("RESUME ").append(std::to_string(correlation_id)).append("\n");
  } else {
    bytes.append(type == RequestType::ping ? "PING\n" : "STATS\n");
  }
}

}  // namespace ordo::order_tcp

#include "ordo/adapters/pubsub_wire/requests.h"

#include "ordo/broker/wire_bytes.h"

namespace ordo::pubsub_wire {
namespace {

using broker::WireField;
using broker::WireReader;
using broker::WireType;

// Calls `take` for each field; nothing is known of a field that it does not take.
template <class Request, class Take>
std::optional<Request> read(std::string_view bytes, Take take) {
  Request request;
  WireReader reader(bytes);
  while (const std::optional<WireField> field = reader.next())
    take(request, *field);
  if (!reader.is_whole()) return std::nullopt;
  return request;
}

void take_text(const WireField& field, std::string_view& out) {
  if (field.type == WireType::bytes) out = field.bytes;
}

void take_text(const WireField& field, std::vector<std::string_view>& out) {
  if (field.type == WireType::bytes) out.push_back(field.bytes);
}

template <class Number>
void take_number(const WireField& field, Number& out) {
  if (field.type == WireType::varint) out = static_cast<Number>(field.value);
}

// False: what is packed is cut off.
bool take_numbers(const WireField& field, std::vector<std::int32_t>& out) {
  if (field.type == WireType::varint) out.push_back(static_cast<std::int32_t>(field.value));
  if (field.type != WireType::bytes) return true;
  std::uint64_t value = 0;
  unsigned shift = 0;
  for (const char c : field.bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (shift > 63) return false;
    value |= std::uint64_t{byte & 0x7fu} << shift;
    shift += 7;
    if (byte >= 0x80) continue;
    out.push_back(static_cast<std::int32_t>(value));
    value = 0;
    shift = 0;
  }
  return shift == 0;
}

}  // namespace

std::optional<PublishRequest> read_publish(std::string_view bytes) {
  return read<PublishRequest>(bytes, [](PublishRequest& request, const WireField& field) {
    if (field.number == 1) take_text(field, request.topic);
    if (field.number == 2) take_text(field, request.messages);
  });
}

std::optional<SettleRequest> read_acknowledge(std::string_view bytes) {
  return read<SettleRequest>(bytes, [](SettleRequest& request, const WireField& field) {
    if (field.number == 1) take_text(field, request.subscription);
    if (field.number == 2) take_text(field, request.ack_ids);
  });
}

std::optional<SettleRequest> read_modify_ack_deadline(std::string_view bytes) {
  return read<SettleRequest>(bytes, [](SettleRequest& request, const WireField& field) {
    if (field.number == 1) take_text(field, request.subscription);
    if (field.number == 3) take_number(field, request.ack_deadline_seconds);
    if (field.number == 4) take_text(field, request.ack_ids);
  });
}

std::optional<StreamRequest> read_streaming_pull(std::string_view bytes) {
  bool is_sound = true;
  auto request =
      read<StreamRequest>(bytes, [&is_sound](StreamRequest& out, const WireField& field) {
        switch (field.number) {
          case 1:
            return take_text(field, out.subscription);
          case 2:
            return take_text(field, out.ack_ids);
          case 3:
            is_sound = take_numbers(field, out.modify_deadline_seconds) && is_sound;
            return;
          case 4:
            return take_text(field, out.modify_deadline_ack_ids);
          case 5:
            return take_number(field, out.stream_ack_deadline_seconds);
          case 7:
            return take_number(field, out.max_outstanding_messages);
          case 8:
            return take_number(field, out.max_outstanding_bytes);
          case 10:
            return take_number(field, out.protocol_version);
          default:  // client_id, and what is not known.
            return;
        }
      });
  if (!is_sound) return std::nullopt;
  return request;
}

}  // namespace ordo::pubsub_wire

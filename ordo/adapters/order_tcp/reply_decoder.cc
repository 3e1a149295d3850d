#include "ordo/adapters/order_tcp/reply_decoder.h"

#include <charconv>
#include <concepts>
#include <cstddef>
#include <system_error>

#include "ordo/adapters/order_tcp/little_endian.h"

namespace ordo::order_tcp {
namespace {

using gateway::Refusal;

constexpr std::size_t kReplyBytesMax = std::size_t{16} * 1024 * 1024;

// Takes the text up to the next space, and the space, from `text`.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = text.find(' ');
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

bool read_number(std::string_view text, std::integral auto& number) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end && !text.empty();
}

// As read_number(), but `-` leaves the number as it is.
bool read_number_or_dash(std::string_view text, std::integral auto& number) {
  return text == "-" || read_number(text, number);
}

// Takes ` <name>=<number>` from the end of `text`.
bool take_stamp(std::string_view& text, std::string_view name, std::int64_t& number) {
  const std::size_t at = text.rfind(' ');
  if (at == std::string_view::npos) return false;
  std::string_view stamp = text.substr(at + 1);
  if (!stamp.starts_with(name)) return false;
  stamp.remove_prefix(name.size());
  text = text.substr(0, at);
  return read_number(stamp, number);
}

bool parse_ok(std::string_view rest, ClientReply& reply) {
  reply.type = ReplyType::ok;
  reply.request_id = take_word(rest);
  if (!read_number(take_word(rest), reply.correlation_id)) return false;
  if (!read_number(take_word(rest), reply.partition)) return false;
  if (!take_stamp(rest, "t1=", reply.ended_ns)) return false;
  if (!take_stamp(rest, "t0=", reply.began_ns)) return false;
  reply.words = rest;
  return true;
}

bool parse_rej(std::string_view rest, ClientReply& reply) {
  reply.type = ReplyType::rej;
  const std::string_view id = take_word(rest);
  if (id != "-") reply.request_id = id;
  if (!read_number_or_dash(take_word(rest), reply.correlation_id)) return false;
  if (!read_number_or_dash(take_word(rest), reply.partition)) return false;
  const auto refusal = refusal_of(take_word(rest));
  if (!refusal) return false;
  reply.refusal = *refusal;
  reply.words = rest;
  return true;
}

bool parse_reply_line(std::string_view line, ClientReply& reply) {
  const std::string_view name = take_word(line);
  if (name == "OK") return parse_ok(line, reply);
  if (name == "REJ") return parse_rej(line, reply);
  if (name == "PONG") {
    reply.type = ReplyType::pong;
    return line.empty();
  }
  if (name == "STATS") {
    reply.type = ReplyType::stats;
    reply.words = line;
    return true;
  }
  reply.type = ReplyType::resumed;
  return name == "RESUMED" && read_number(line, reply.correlation_id);
}

Decoded decode_line(std::string_view& bytes, ClientReply& reply) {
  const std::size_t end = bytes.find('\n');
  if (end == std::string_view::npos)
    return bytes.size() > kReplyBytesMax ? Decoded::nonsense : Decoded::incomplete;
  reply = {};
  if (!parse_reply_line(bytes.substr(0, end), reply)) return Decoded::nonsense;
  bytes.remove_prefix(end + 1);
  return Decoded::reply;
}

bool parse_answer(std::string_view body, std::size_t id_length, ClientReply& reply) {
  if (body.size() < kReplyFixedBytes + id_length) return false;
  reply.correlation_id = load<std::int64_t>(body.data());
  reply.partition = load<std::int32_t>(body.data() + 8);
  reply.began_ns = load<std::int64_t>(body.data() + 16);
  reply.ended_ns = load<std::int64_t>(body.data() + 24);
  body.remove_prefix(kReplyFixedBytes);
  reply.request_id = body.substr(0, id_length);
  reply.words = body.substr(id_length);
  return true;
}

bool parse_body(std::string_view body, std::size_t id_length, ClientReply& reply) {
  switch (reply.type) {
    case ReplyType::ok:
    case ReplyType::rej:
      return parse_answer(body, id_length, reply);
    case ReplyType::pong:
      return body.empty();
    case ReplyType::stats:
      reply.words = body;
      return true;
    case ReplyType::resumed:
      if (body.size() != kCorrelationIdBytes) return false;
      reply.correlation_id = load<std::int64_t>(body.data());
      return true;
  }
  return false;
}

Decoded decode_frame(std::string_view& bytes, ClientReply& reply) {
  if (bytes.size() < kFrameHeaderBytes) return Decoded::incomplete;
  const auto length = load<std::uint32_t>(bytes.data() + 4);
  if (load<std::uint8_t>(bytes.data()) != kWireVersion || length > kReplyBytesMax)
    return Decoded::nonsense;
  if (bytes.size() < kFrameHeaderBytes + length) return Decoded::incomplete;
  reply = {};
  reply.type = static_cast<ReplyType>(load<std::uint8_t>(bytes.data() + 1));
  reply.refusal = static_cast<Refusal>(load<std::uint8_t>(bytes.data() + 3));
  const std::size_t id_length = load<std::uint8_t>(bytes.data() + 2);
  if (!parse_body(bytes.substr(kFrameHeaderBytes, length), id_length, reply))
    return Decoded::nonsense;
  bytes.remove_prefix(kFrameHeaderBytes + length);
  return Decoded::reply;
}

}  // namespace

Decoded decode_reply(Encoding encoding, std::string_view& bytes, ClientReply& reply) {
  return encoding == Encoding::text ? decode_line(bytes, reply) : decode_frame(bytes, reply);
}

std::optional<Refusal> refusal_of(std::string_view name) {
  for (const Refusal refusal : {Refusal::busy, Refusal::id_busy, Refusal::gap, Refusal::malformed,
                                Refusal::too_long, Refusal::error, Refusal::closing}) {
    if (gateway::name_of(refusal) == name) return refusal;
  }
  return std::nullopt;
}

}  // namespace ordo::order_tcp

#include "ordo/adapters/order_tcp/reply_encoder.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <limits>

#include "ordo/adapters/order_tcp/characters.h"
#include "ordo/adapters/order_tcp/little_endian.h"

namespace ordo::order_tcp {
namespace {

using gateway::Refusal;

constexpr std::size_t kNumberCharactersMax = 20;
// The longest of everything in a line but the request id and the words.
constexpr std::size_t kLineBytesMax = 4 * kNumberCharactersMax + 48;

char* put(char* out, std::string_view text) {
  return std::copy(text.begin(), text.end(), out);
}

char* put(char* out, std::integral auto number) {
  return std::to_chars(out, out + kNumberCharactersMax, number).ptr;
}

// A line stays a line: what would end or disturb it becomes a space.
char* put_words(char* out, std::string_view words) {
  if (is_plain(words)) return put(out, words);
  return std::transform(words.begin(), words.end(), out, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f ? ' ' : c;
  });
}

char* put_or_dash(char* out, std::string_view text) {
  return put(out, text.empty() ? "-" : text);
}

void append_text_ok(OutputBuffer& output, const gateway::Reply& reply) {
  const std::string_view id = reply.id.view();
  const std::string_view words = reply.words.view();
  char* out = output.room(kLineBytesMax + id.size() + words.size());
  out = put_or_dash(put(out, "OK "), id);
  *out++ = ' ';
  out = put(out, reply.correlation_id);
  *out++ = ' ';
  out = put(out, reply.partition);
  *out++ = ' ';
  out = words.empty() ? put(out, "-") : put_words(out, words);
  out = put(put(out, " t0="), reply.began_ns);
  out = put(put(out, " t1="), reply.ended_ns);
  *out++ = '\n';
  output.added(out);
}

void append_text_rej(OutputBuffer& output, const Rejection& rejection) {
  char* out = output.room(kLineBytesMax + rejection.request_id.size() + rejection.detail.size());
  out = put_or_dash(put(out, "REJ "), rejection.request_id);
  *out++ = ' ';
  out = rejection.correlation_id ? put(out, *rejection.correlation_id) : put(out, "-");
  *out++ = ' ';
  out = rejection.partition >= 0 ? put(out, rejection.partition) : put(out, "-");
  *out++ = ' ';
  out = put(out, gateway::name_of(rejection.refusal));
  if (!rejection.detail.empty()) {
    *out++ = ' ';
    out = put_words(out, rejection.detail);
  }
  *out++ = '\n';
  output.added(out);
}

struct FrameFields {
  ReplyType type = ReplyType::ok;
  Refusal refusal = Refusal::none;
  std::size_t request_id_length = 0;
  std::size_t body_length = 0;
};

char* put_header(char* out, const FrameFields& fields) {
  out = store<std::uint8_t>(out, kWireVersion);
  out = store<std::uint8_t>(out, static_cast<std::uint8_t>(fields.type));
  out = store<std::uint8_t>(out, static_cast<std::uint8_t>(fields.request_id_length));
  out = store<std::uint8_t>(out, static_cast<std::uint8_t>(fields.refusal));
  return store<std::uint32_t>(out, static_cast<std::uint32_t>(fields.body_length));
}

// The frame of an ok or a rej.
struct Answer {
  std::string_view request_id{};
  std::int64_t correlation_id = 0;
  std::int32_t partition = gateway::kNoPartition;
  Refusal refusal = Refusal::none;
  std::string_view words{};
  std::int64_t began_ns = 0;
  std::int64_t ended_ns = 0;
};

void append_frame(OutputBuffer& output, const Answer& answer) {
  const std::string_view id = answer.request_id.substr(0, kRequestIdBytesMax);
  const std::size_t body_length = kReplyFixedBytes + id.size() + answer.words.size();
  char* out = output.room(kFrameHeaderBytes + body_length);
  out = put_header(out, {.type = answer.refusal == Refusal::none ? ReplyType::ok : ReplyType::rej,
                         .refusal = answer.refusal,
                         .request_id_length = id.size(),
                         .body_length = body_length});
  out = store<std::int64_t>(out, answer.correlation_id);
  out = store<std::int32_t>(out, answer.partition);
  out = store<std::uint32_t>(out, 0);
  out = store<std::int64_t>(out, answer.began_ns);
  out = store<std::int64_t>(out, answer.ended_ns);
  output.added(put(put(out, id), answer.words));
}

// A frame whose body is `text` alone.
void append_frame(OutputBuffer& output, ReplyType type, std::string_view text) {
  char* out = output.room(kFrameHeaderBytes + text.size());
  out = put_header(out, {.type = type, .body_length = text.size()});
  output.added(put(out, text));
}

void append_line(OutputBuffer& output, std::string_view name, std::string_view text) {
  char* out = put(output.room(name.size() + text.size() + 1), name);
  out = put_words(out, text);
  *out++ = '\n';
  output.added(out);
}

}  // namespace

void append_reply(OutputBuffer& output, Encoding encoding, const gateway::Reply& reply) {
  if (encoding == Encoding::binary) {
    append_frame(output, Answer{.request_id = reply.id.view(),
                                .correlation_id = reply.correlation_id,
                                .partition = reply.partition,
                                .refusal = reply.refusal,
                                .words = reply.words.view(),
                                .began_ns = reply.began_ns,
                                .ended_ns = reply.ended_ns});
  } else if (reply.refusal == Refusal::none) {
    append_text_ok(output, reply);
  } else {
    append_text_rej(output, {.request_id = reply.id.view(),
                             .correlation_id = reply.correlation_id,
                             .partition = reply.partition,
                             .refusal = reply.refusal,
                             .detail = reply.words.view()});
  }
}

void append_rejection(OutputBuffer& output, Encoding encoding, const Rejection& rejection) {
  if (encoding == Encoding::text) {
    append_text_rej(output, rejection);
    return;
  }
  append_frame(output, Answer{.request_id = rejection.request_id,
                              .correlation_id = rejection.correlation_id.value_or(0),
                              .partition = rejection.partition,
                              .refusal = rejection.refusal,
                              .words = rejection.detail});
}

void append_pong(OutputBuffer& output, Encoding encoding) {
  encoding == Encoding::text ? append_line(output, "PONG", "")
                             : append_frame(output, ReplyType::pong, "");
}

void append_stats(OutputBuffer& output, Encoding encoding, std::string_view json) {
  encoding == Encoding::text ? append_line(output, "STATS ", json)
                             : append_frame(output, ReplyType::stats, json);
}

void append_resumed(OutputBuffer& output, Encoding encoding, std::int64_t correlation_id) {
  char number[kNumberCharactersMax];
  if (encoding == Encoding::text) {
    const char* end = put(number, correlation_id);
    append_line(output, "RESUMED ", {number, static_cast<std::size_t>(end - number)});
  } else {
    store<std::int64_t>(number, correlation_id);
    append_frame(output, ReplyType::resumed, {number, sizeof(correlation_id)});
  }
}

}  // namespace ordo::order_tcp

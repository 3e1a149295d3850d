#include "ordo/adapters/order_tcp/request_decoder.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "ordo/adapters/order_tcp/characters.h"
#include "ordo/adapters/order_tcp/little_endian.h"

namespace ordo::order_tcp {
namespace {

using Kind = Incoming::Kind;
using gateway::Refusal;

constexpr std::size_t kKeptCapacityMax = 4096;  // A longer request gives its memory back.

Incoming rejected(std::string_view why) {
  return {.kind = Kind::rejected, .refusal = Refusal::malformed, .words = why};
}

Incoming broken_off(Refusal refusal, std::string_view why) {
  return {.kind = Kind::broken, .refusal = refusal, .words = why};
}

std::optional<std::int64_t> parse_correlation_id(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return number;
}

// The fields of a task that came in either encoding, once they are told apart.
Incoming task_of(std::string_view request_id, std::optional<std::int64_t> correlation_id,
                 std::string_view payload) {
  Incoming incoming{.request_id = request_id, .correlation_id = correlation_id, .words = payload};
  if (!is_payload(payload)) {
    incoming.kind = Kind::rejected;
    incoming.refusal = Refusal::malformed;
    incoming.words =
        payload.empty() ? "no payload" : "the payload is not UTF-8 without control characters";
  }
  if (!is_request_id(request_id)) {
    incoming.kind = Kind::rejected;
    incoming.refusal = Refusal::malformed;
    incoming.request_id = {};
    incoming.words = "the request id is not 1 to 64 bytes of visible characters";
  }
  return incoming;
}

struct FrameHeader {
  std::uint8_t version;
  std::uint8_t type;
  std::uint8_t request_id_length;
  std::uint8_t zero;
  std::uint32_t body_length;
};

FrameHeader read_header(const char* bytes) {
  return {.version = load<std::uint8_t>(bytes),
          .type = load<std::uint8_t>(bytes + 1),
          .request_id_length = load<std::uint8_t>(bytes + 2),
          .zero = load<std::uint8_t>(bytes + 3),
          .body_length = load<std::uint32_t>(bytes + 4)};
}

bool has_right_lengths(const FrameHeader& header) {
  switch (static_cast<RequestType>(header.type)) {
    case RequestType::task:
      return header.request_id_length >= 1 && header.request_id_length <= kRequestIdBytesMax &&
             header.body_length >= kCorrelationIdBytes + header.request_id_length;
    case RequestType::resume:
      return header.request_id_length == 0 && header.body_length == kCorrelationIdBytes;
    case RequestType::ping:
    case RequestType::stats:
      return header.request_id_length == 0 && header.body_length == 0;
  }
  return false;
}

// What is wrong with a header, or nothing.
std::optional<Incoming> complaint(const FrameHeader& header, std::size_t body_bytes_max) {
  if (header.version != kWireVersion)
    return broken_off(Refusal::malformed, "the version of a frame is 1");
  if (header.type < 1 || header.type > 4)
    return broken_off(Refusal::malformed, "the type of a request is 1 to 4");
  if (header.zero != 0) return broken_off(Refusal::malformed, "the fourth byte of a request is 0");
  if (header.body_length > body_bytes_max)
    return broken_off(Refusal::too_long, "the body is longer than allowed");
  if (!has_right_lengths(header))
    return broken_off(Refusal::malformed, "the lengths do not fit the type");
  return std::nullopt;
}

Incoming parse_frame(std::string_view frame) {
  const FrameHeader header = read_header(frame.data());
  std::string_view body = frame.substr(kFrameHeaderBytes);
  switch (static_cast<RequestType>(header.type)) {
    case RequestType::ping:
      return {.kind = Kind::ping};
    case RequestType::stats:
      return {.kind = Kind::stats};
    case RequestType::resume:
      return {.kind = Kind::resume, .correlation_id = load<std::int64_t>(body.data())};
    case RequestType::task:
      break;
  }
  const auto correlation_id = load<std::int64_t>(body.data());
  body.remove_prefix(kCorrelationIdBytes);
  return task_of(body.substr(0, header.request_id_length), correlation_id,
                 body.substr(header.request_id_length));
}

}  // namespace

Incoming parse_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  if (first == std::string_view::npos) {
    if (line == "PING") return {.kind = Kind::ping};
    if (line == "STATS") return {.kind = Kind::stats};
    Incoming incoming = rejected("a request is <request-id> <correlation-id> <payload>");
    if (is_request_id(line)) incoming.request_id = line;
    return incoming;
  }
  const std::string_view request_id = line.substr(0, first);
  const std::string_view rest = line.substr(first + 1);
  const std::size_t second = rest.find(' ');
  const auto correlation_id = parse_correlation_id(rest.substr(0, second));
  if (second == std::string_view::npos && correlation_id && request_id == "RESUME")
    return {.kind = Kind::resume, .correlation_id = correlation_id};
  if (!correlation_id) {
    Incoming incoming = rejected("the correlation id is not a whole number of 64 bits");
    if (is_request_id(request_id)) incoming.request_id = request_id;
    return incoming;
  }
  const bool has_payload = second != std::string_view::npos;
  return task_of(request_id, correlation_id,
                 has_payload ? rest.substr(second + 1) : std::string_view());
}

std::optional<Incoming> RequestDecoder::next(std::string_view& bytes) {
  if (is_kept_used_) forget_kept();
  if (is_broken_) bytes = {};
  if (bytes.empty()) return std::nullopt;
  if (!is_begun_) {
    is_begun_ = true;
    if (static_cast<std::uint8_t>(bytes.front()) == kWireVersion) encoding_ = Encoding::binary;
  }
  return encoding_ == Encoding::text ? next_line(bytes) : next_frame(bytes);
}

std::optional<Incoming> RequestDecoder::finish() {
  std::string_view nothing;
  if (is_kept_used_) forget_kept();
  if (is_broken_ || kept_.empty()) return std::nullopt;
  return broken(nothing, broken_off(Refusal::malformed, "the last request is not complete"));
}

std::optional<Incoming> RequestDecoder::next_line(std::string_view& bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::size_t length = std::min(end, bytes.size());
    if (kept_.size() + length > request_bytes_max_)
      return broken(bytes, broken_off(Refusal::too_long, "the line is longer than allowed"));
    if (end == std::string_view::npos) {
      kept_.append(bytes);
      bytes = {};
      return std::nullopt;
    }
    std::string_view line = bytes.substr(0, end);
    if (!kept_.empty()) {
      kept_.append(line);
      line = kept_;
      is_kept_used_ = true;
    }
    bytes.remove_prefix(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) return parse_line(line);
    if (is_kept_used_) forget_kept();
  }
  return std::nullopt;
}

std::optional<Incoming> RequestDecoder::next_frame(std::string_view& bytes) {
  const bool is_here = kept_.empty() && bytes.size() >= kFrameHeaderBytes;
  if (!is_here && !keep_until(bytes, kFrameHeaderBytes)) return std::nullopt;
  const FrameHeader header = read_header(is_here ? bytes.data() : kept_.data());
  if (const auto wrong = complaint(header, request_bytes_max_)) return broken(bytes, *wrong);
  const std::size_t size = kFrameHeaderBytes + header.body_length;
  if (is_here && bytes.size() >= size) {
    const std::string_view frame = bytes.substr(0, size);
    bytes.remove_prefix(size);
    return parse_frame(frame);
  }
  if (!keep_until(bytes, size)) return std::nullopt;
  is_kept_used_ = true;
  return parse_frame(kept_);
}

// Moves bytes behind what is kept until that is `size` long. False: there were too few.
bool RequestDecoder::keep_until(std::string_view& bytes, std::size_t size) {
  if (kept_.size() < size) {
    const std::size_t count = std::min(size - kept_.size(), bytes.size());
    kept_.append(bytes.substr(0, count));
    bytes.remove_prefix(count);
  }
  return kept_.size() >= size;
}

std::optional<Incoming> RequestDecoder::broken(std::string_view& bytes, const Incoming& why) {
  is_broken_ = true;
  bytes = {};
  forget_kept();
  return why;
}

void RequestDecoder::forget_kept() {
  is_kept_used_ = false;
  kept_.clear();
  if (kept_.capacity() > kKeptCapacityMax) kept_.shrink_to_fit();
}

}  // namespace ordo::order_tcp

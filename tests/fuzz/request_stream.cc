#include "tests/fuzz/request_stream.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ordo/adapters/order_tcp/request_decoder.h"
#include "ordo/adapters/order_tcp/request_encoder.h"
#include "ordo/core/check.h"

namespace ordo::fuzz {
namespace {

using order_tcp::Encoding;
using order_tcp::Incoming;
using order_tcp::RequestDecoder;

constexpr std::size_t kRequestBytesMax = 300;  // Small, so that too long is found soon.

struct Event {
  Incoming::Kind kind;
  gateway::Refusal refusal;
  std::string request_id;
  std::optional<std::int64_t> correlation_id;
  std::string words;

  friend bool operator==(const Event&, const Event&) = default;
};

std::vector<Event> events_of(std::string_view stream, std::size_t piece_size) {
  RequestDecoder decoder(kRequestBytesMax);
  std::vector<Event> events;
  const auto note = [&](const Incoming& incoming) {
    events.push_back({incoming.kind, incoming.refusal, std::string(incoming.request_id),
                      incoming.correlation_id, std::string(incoming.words)});
  };
  while (!stream.empty()) {
    const std::vector<char> piece(
        stream.begin(),
        stream.begin() + static_cast<std::ptrdiff_t>(std::min(piece_size, stream.size())));
    stream.remove_prefix(piece.size());
    std::string_view bytes(piece.data(), piece.size());
    while (const auto incoming = decoder.next(bytes))
      note(*incoming);
    ORDO_CHECK(bytes.empty());
    ORDO_CHECK(decoder.kept_bytes() <= kRequestBytesMax + order_tcp::kFrameHeaderBytes);
  }
  if (const auto last = decoder.finish()) note(*last);
  return events;
}

void check_round_trip(const Event& task) {
  for (const Encoding encoding : {Encoding::text, Encoding::binary}) {
    std::string bytes;
    append_task(bytes, encoding, {task.request_id, *task.correlation_id, task.words});
    RequestDecoder decoder(order_tcp::kRequestBytesMax);
    std::string_view rest = bytes;
    const auto again = decoder.next(rest);
    ORDO_CHECK(again && rest.empty());
    ORDO_CHECK(again->kind == Incoming::Kind::task);
    ORDO_CHECK(again->request_id == task.request_id && again->words == task.words);
    ORDO_CHECK(again->correlation_id == task.correlation_id);
  }
}

}  // namespace

void check_request_stream(Encoding encoding, std::string_view bytes) {
  std::string stream(bytes);
  const bool is_binary = !stream.empty() && stream.front() == '\x01';
  if (is_binary != (encoding == Encoding::binary))
    stream.insert(stream.begin(), encoding == Encoding::binary ? '\x01' : '\n');
  const std::vector<Event> whole = events_of(stream, stream.size());
  ORDO_CHECK(events_of(stream, 1) == whole);
  ORDO_CHECK(events_of(stream, 7) == whole);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const Event& event = whole[i];
    if (event.kind == Incoming::Kind::task) check_round_trip(event);
    if (event.kind == Incoming::Kind::broken) ORDO_CHECK(i + 1 == whole.size());
  }
}

}  // namespace ordo::fuzz

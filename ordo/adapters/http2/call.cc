#include "ordo/adapters/http2/call.h"

#include <cstdint>
#include <utility>

#include "ordo/adapters/http2/grpc_text.h"
#include "ordo/adapters/http2/gzip.h"

namespace ordo::http2 {
namespace {

// Below it compression makes messages longer, mostly.
constexpr std::size_t kCompressedBytesMin = 256;
constexpr unsigned kOk = 200;
// Of the words of a status. What clients take of headers is left to its details.
constexpr std::size_t kWordsBytesMax = 1'600;

std::size_t size_of(const std::vector<Slice>& pieces) {
  std::size_t size = 0;
  for (const Slice& piece : pieces)
    size += piece.bytes.size();
  return size;
}

void set_prefix(Chunk& chunk, bool is_compressed, std::size_t size) {
  chunk.prefix = {static_cast<char>(is_compressed ? 1 : 0), static_cast<char>(size >> 24 & 0xFF),
                  static_cast<char>(size >> 16 & 0xFF), static_cast<char>(size >> 8 & 0xFF),
                  static_cast<char>(size & 0xFF)};
  chunk.prefix_size = Chunk::kPrefixBytes;
}

}  // namespace

Part final_part(int code, std::string_view message, std::string_view details, HeaderList trailers) {
  Part part;
  part.is_end = true;
  part.grpc_status = code;
  part.trailers = std::move(trailers);
  if (!message.empty()) part.trailers.add("grpc-message", percent_encoded(message, kWordsBytesMax));
  if (!details.empty()) part.trailers.add("grpc-status-details-bin", base64(details));
  return part;
}

std::optional<std::string> Call::binary_metadata(std::string_view name) const {
  const auto text = headers().find(name);
  return text ? from_base64(*text) : std::nullopt;
}

void Call::begin(Part& part) {
  if (has_begun_.exchange(true, std::memory_order_relaxed)) return;
  part.status = kOk;
  part.is_grpc = true;
  part.is_gzip = is_gzip_;
}

Part Call::part_with(std::vector<Slice> pieces) {
  Part part;
  begin(part);
  std::size_t size = size_of(pieces);
  const bool is_compressed = is_gzip_ && size >= kCompressedBytesMin;
  if (is_compressed) {
    std::string compressed = deflated(pieces);
    size = compressed.size();
    pieces.clear();
    pieces.push_back(Slice::of(std::move(compressed)));
  }
  if (pieces.empty()) pieces.emplace_back();
  part.body.reserve(pieces.size());
  for (Slice& piece : pieces) {
    if (part.body.empty() || !piece.bytes.empty()) part.body.push_back({.slice = std::move(piece)});
  }
  set_prefix(part.body.front(), is_compressed, size);
  return part;
}

void Call::send_headers(HeaderList headers) {
  Part part;
  begin(part);
  part.headers = std::move(headers);
  if (part.status != 0) post(std::move(part));
}

bool Call::send(Slice message) {
  std::vector<Slice> pieces;
  pieces.push_back(std::move(message));
  return send(std::move(pieces));
}

bool Call::send(std::vector<Slice> pieces) {
  if (is_cancelled() || !wants_more()) return false;
  post(part_with(std::move(pieces)));
  return true;
}

void Call::finish(int code, std::string_view message, std::string_view details,
                  HeaderList trailers) {
  if (details.size() > details_bytes_max_) details = {};
  post(final_part(code, message, details, std::move(trailers)));
}

void Call::reply(Slice message) {
  std::vector<Slice> pieces;
  pieces.push_back(std::move(message));
  reply(std::move(pieces));
}

void Call::reply(std::vector<Slice> pieces) {
  Part part = part_with(std::move(pieces));
  part.is_end = true;
  part.grpc_status = 0;
  post(std::move(part));
}

}  // namespace ordo::http2

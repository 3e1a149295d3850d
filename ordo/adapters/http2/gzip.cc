#include "ordo/adapters/http2/gzip.h"

#include <algorithm>
#include <utility>
#include <zlib.h>

#include "ordo/core/check.h"

namespace ordo::http2 {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's way to say: with gzip's header.
constexpr int kMemoryLevel = 8;
constexpr std::size_t kStepBytes = std::size_t{64} * 1024;

Bytef* input_of(std::string_view bytes) {
  // zlib takes no const, and does not write.
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
}

// Room for `step` more bytes at the end of `text`, which zlib then fills.
void set_room(z_stream& stream, std::string& text, std::size_t step) {
  const std::size_t size = text.size();
  text.resize(size + step);
  stream.next_out = reinterpret_cast<Bytef*>(text.data() + size);
  stream.avail_out = static_cast<uInt>(step);
}

}  // namespace

std::string deflated(const std::vector<Slice>& pieces) {
  z_stream stream{};
  const int begun = ::deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                                   Z_DEFAULT_STRATEGY);
  ORDO_CHECK(begun == Z_OK);
  std::string text;
  for (std::size_t i = 0; i <= pieces.size(); ++i) {
    const bool is_last = i == pieces.size();
    const std::string_view bytes = is_last ? std::string_view{} : pieces[i].bytes;
    stream.next_in = input_of(bytes);
    stream.avail_in = static_cast<uInt>(bytes.size());
    do {
      if (stream.avail_out == 0) set_room(stream, text, kStepBytes);
      ORDO_CHECK(::deflate(&stream, is_last ? Z_FINISH : Z_NO_FLUSH) != Z_STREAM_ERROR);
    } while (stream.avail_in > 0 || stream.avail_out == 0);
  }
  text.erase(text.size() - stream.avail_out);
  ::deflateEnd(&stream);
  return text;
}

Result<std::string> inflated(std::string_view bytes, std::size_t bytes_max) {
  z_stream stream{};
  if (::inflateInit2(&stream, kGzipWindow) != Z_OK)
    return Error{ErrorCode::resource_exhausted, "no memory to inflate a message"};
  stream.next_in = input_of(bytes);
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  int outcome = Z_OK;
  while (outcome == Z_OK && text.size() <= bytes_max) {
    set_room(stream, text, std::min(kStepBytes, bytes_max + 1 - text.size()));
    outcome = ::inflate(&stream, Z_NO_FLUSH);
    text.erase(text.size() - stream.avail_out);
  }
  const bool is_all = stream.avail_in == 0;
  ::inflateEnd(&stream);
  if (text.size() > bytes_max) {
    std::string words = "Received message larger than max (inflated, above ";
    words.append(std::to_string(bytes_max)).append(" bytes)");
    return Error{ErrorCode::invalid_argument, std::move(words)};
  }
  if (outcome != Z_STREAM_END || !is_all)
    return Error{ErrorCode::internal, "a compressed message is not gzip, or is cut short"};
  return text;
}

}  // namespace ordo::http2

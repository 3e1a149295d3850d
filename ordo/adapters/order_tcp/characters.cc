#include "ordo/adapters/order_tcp/characters.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ordo/adapters/order_tcp/wire.h"

namespace ordo::order_tcp {
namespace {

constexpr std::uint64_t kOnes = 0x0101010101010101u;
constexpr std::uint64_t kHighs = 0x8080808080808080u;

// Whether one of the eight bytes is below `lowest`, 0x7f or above.
constexpr bool has_other(std::uint64_t word, unsigned char lowest) {
  const std::uint64_t low = (word - kOnes * lowest) & ~word;
  const std::uint64_t seven = word ^ (kOnes * 0x7f);
  return ((word | low | ((seven - kOnes) & ~seven)) & kHighs) != 0;
}

// How many bytes from the beginning are ASCII from `lowest` to 0x7e.
std::size_t plain_length(std::string_view bytes, unsigned char lowest) {
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    if (has_other(word, lowest)) break;
  }
  for (; at < bytes.size(); ++at) {
    const auto byte = static_cast<unsigned char>(bytes[at]);
    if (byte < lowest || byte >= 0x7f) break;
  }
  return at;
}

// How long a sequence is by its first byte; 0: no sequence begins with it.
std::size_t sequence_length(unsigned char first) {
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  if (first >= 0xf0 && first <= 0xf4) return 4;
  return 0;
}

// Whether `second` may follow `first`: no overlong forms, no surrogates, nothing above U+10FFFF,
// and none of the control characters U+0080 to U+009F.
bool may_follow(unsigned char first, unsigned char second) {
  unsigned char lowest = 0x80;
  unsigned char highest = 0xbf;
  if (first == 0xc2 || first == 0xe0) lowest = 0xa0;
  if (first == 0xf0) lowest = 0x90;
  if (first == 0xed) highest = 0x9f;
  if (first == 0xf4) highest = 0x8f;
  return second >= lowest && second <= highest;
}

// The length of the non-ASCII character at the beginning; 0 when there is no valid one.
std::size_t wide_character(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes.front());
  const std::size_t length = sequence_length(first);
  if (length == 0 || bytes.size() < length) return 0;
  if (!may_follow(first, static_cast<unsigned char>(bytes[1]))) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((static_cast<unsigned char>(bytes[i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

bool is_text(std::string_view bytes, unsigned char lowest) {
  for (;;) {
    bytes.remove_prefix(plain_length(bytes, lowest));
    if (bytes.empty()) return true;
    const std::size_t length = wide_character(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
}

constexpr unsigned char kSpace = 0x20;

}  // namespace

bool is_payload(std::string_view bytes) {
  return !bytes.empty() && is_text(bytes, kSpace);
}

bool is_request_id(std::string_view bytes) {
  return !bytes.empty() && bytes.size() <= kRequestIdBytesMax && is_text(bytes, kSpace + 1);
}

bool is_plain(std::string_view bytes) {
  return plain_length(bytes, kSpace) == bytes.size();
}

}  // namespace ordo::order_tcp

#include "ordo/broker/ack_id_text.h"

#include <array>
#include <utility>

#include "ordo/core/hash.h"

namespace ordo::broker {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::uint8_t kVersion = 1;

// version 1, subscription 4, partition 4, offset 8, fence 8, check value 16: lowest byte first.
constexpr std::size_t kCheckedBytes = 1 + 4 + 4 + 8 + 8;
constexpr std::size_t kBytes = kCheckedBytes + 16;
constexpr std::size_t kCharacters = (kBytes * 8 + 5) / 6;
using Bytes = std::array<char, kBytes>;

constexpr std::array<std::int8_t, 256> digit_values() {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::int8_t>(i);
  return values;
}
constexpr std::array<std::int8_t, 256> kDigitValues = digit_values();

void put(Bytes& bytes, std::size_t& at, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    bytes[at++] = static_cast<char>(value >> (8 * i));
}

std::uint64_t take(const Bytes& bytes, std::size_t& at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[at++])} << (8 * i);
  return value;
}

std::string_view checked_part(const Bytes& bytes) {
  return {bytes.data(), kCheckedBytes};
}

std::string to_text(const Bytes& bytes) {
  std::string text;
  text.reserve(kCharacters);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char byte : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(byte);
    for (count += 8; count >= 6; count -= 6)
      text += kDigits[bits >> (count - 6) & 63];
  }
  if (count > 0) text += kDigits[bits << (6 - count) & 63];
  return text;
}

bool to_bytes(std::string_view text, Bytes& bytes) {
  if (text.size() != kCharacters) return false;
  std::size_t at = 0;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const std::int8_t value = kDigitValues[static_cast<unsigned char>(c)];
    if (value < 0) return false;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes[at++] = static_cast<char>(bits >> count);
  }
  return (bits & ((1u << count) - 1)) == 0;  // One text for one id.
}

Error malformed(std::string_view text) {
  constexpr std::size_t kShownMax = 100;
  std::string shown(text.substr(0, kShownMax));
  for (char& c : shown) {
    if (c < 0x20 || c == 0x7f) c = '?';  // Also what is not ASCII.
  }
  return Error{ErrorCode::invalid_argument, "Invalid ack id (ack_id=" + shown + ")"};
}

}  // namespace

AckIdText::CheckValue AckIdText::plain_check(std::string_view key, std::string_view bytes) {
  return {hash_bytes(bytes, hash_bytes(key, 1)), hash_bytes(bytes, hash_bytes(key, 2))};
}

AckIdText::AckIdText(std::string key, CheckFunction check) : key_(std::move(key)), check_(check) {}

std::string AckIdText::encode(const AckId& id) const {
  Bytes bytes{};
  std::size_t at = 0;
  put(bytes, at, kVersion, 1);
  put(bytes, at, id.subscription.value(), 4);
  put(bytes, at, id.partition, 4);
  put(bytes, at, id.offset.value(), 8);
  put(bytes, at, id.fence.value(), 8);
  const CheckValue check = check_(key_, checked_part(bytes));
  put(bytes, at, check.low, 8);
  put(bytes, at, check.high, 8);
  return to_text(bytes);
}

Result<AckId> AckIdText::decode(std::string_view text) const {
  Bytes bytes{};
  if (!to_bytes(text, bytes)) return malformed(text);
  std::size_t at = 0;
  if (take(bytes, at, 1) != kVersion) return malformed(text);
  AckId id;
  id.subscription = CursorNumber(static_cast<std::uint32_t>(take(bytes, at, 4)));
  id.partition = static_cast<std::uint32_t>(take(bytes, at, 4));
  id.offset = Offset(take(bytes, at, 8));
  id.fence = Fence(take(bytes, at, 8));
  const CheckValue check = check_(key_, checked_part(bytes));
  // Without a branch in between: how long it takes says nothing about where the texts differ.
  const std::uint64_t difference =
      (take(bytes, at, 8) ^ check.low) | (take(bytes, at, 8) ^ check.high);
  if (difference != 0) return malformed(text);
  return id;
}

}  // namespace ordo::broker

// The few rules of the protobuf wire form that stored bytes are written and read by.
//
//   std::string out;
//   put_bytes_field(out, 1, "data");
//   WireReader reader(out);
//   while (std::optional<WireField> field = reader.next()) use(field->number, field->bytes);
//   if (!reader.is_whole()) return malformed();
//
// Threads: pure functions and plain values.
// Bounds:  a reader never looks beyond the bytes it was given, whatever they say.
// Cost:    no allocation but the growth of `out`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ordo::broker {

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

constexpr std::size_t varint_size(std::uint64_t value) {
  std::size_t size = 1;
  for (; value >= 0x80; value >>= 7)
    ++size;
  return size;
}

inline void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

inline void put_tag(std::string& out, std::uint32_t number, WireType type) {
  put_varint(out, std::uint64_t{number} << 3 | static_cast<std::uint64_t>(type));
}

inline void put_varint_field(std::string& out, std::uint32_t number, std::uint64_t value) {
  put_tag(out, number, WireType::varint);
  put_varint(out, value);
}

inline void put_bytes_field(std::string& out, std::uint32_t number, std::string_view bytes) {
  put_tag(out, number, WireType::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

// REQUIRES: number < 16, whose tag is one byte.
constexpr std::size_t bytes_field_size(std::size_t size) {
  return 1 + varint_size(size) + size;
}

struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;  // Of a varint or a fixed one.
  std::string_view bytes;   // Of a length-delimited one.
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  // The next field; nothing at the end, and nothing once the bytes make no sense.
  std::optional<WireField> next() {
    if (bytes_.empty() || !is_sound_) return std::nullopt;
    std::optional<WireField> field = read_field();
    is_sound_ = field.has_value();
    return field;
  }

  // Everything was read, and all of it made sense.
  bool is_whole() const { return is_sound_ && bytes_.empty(); }

  // What has not been read yet.
  std::string_view rest() const { return bytes_; }

 private:
  std::optional<WireField> read_field() {
    constexpr std::uint64_t kNumberMax = (1u << 29) - 1;
    const std::optional<std::uint64_t> tag = read_varint();
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > kNumberMax) return std::nullopt;
    WireField field;
    field.number = static_cast<std::uint32_t>(*tag >> 3);
    field.type = static_cast<WireType>(*tag & 7);
    switch (field.type) {
      case WireType::varint: {
        const std::optional<std::uint64_t> value = read_varint();
        if (!value) return std::nullopt;
        field.value = *value;
        return field;
      }
      case WireType::bytes: {
        const std::optional<std::uint64_t> size = read_varint();
        if (!size || *size > bytes_.size()) return std::nullopt;
        field.bytes = take(static_cast<std::size_t>(*size));
        return field;
      }
      case WireType::fixed64:
        return read_fixed(field, 8);
      case WireType::fixed32:
        return read_fixed(field, 4);
    }
    return std::nullopt;  // Groups, which nobody writes any more, and numbers that mean nothing.
  }

  std::optional<WireField> read_fixed(WireField field, std::size_t size) {
    if (bytes_.size() < size) return std::nullopt;
    const std::string_view bytes = take(size);
    for (std::size_t i = 0; i < size; ++i) {
      field.value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    }
    return field;
  }

  std::optional<std::uint64_t> read_varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      if (shift == 63 && byte > 1) return std::nullopt;
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::string_view take(std::size_t size) {
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  std::string_view bytes_;
  bool is_sound_ = true;
};

}  // namespace ordo::broker

// Numbers to bytes and back: little endian in values, big endian in keys, so that they sort.
//
//   std::string value;
//   put<std::uint32_t>(value, 7);
//   ByteReader in(value);
//   in.take<std::uint32_t>();   // 7
//   in.ended();                 // all was there, and nothing is left
//
// Threads: pure functions; a ByteReader has one owner.
// Errors:  a read beyond the end gives 0, and ok() is false from then on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace ordo::store_rocksdb {

template <class T>
void put(std::string& out, T value) {
  auto bits = static_cast<std::uint64_t>(value);
  for (std::size_t i = 0; i < sizeof(T); ++i, bits >>= 8)
    out.push_back(static_cast<char>(bits & 0xff));
}

template <class T>
void put_key(std::string& out, T value) {
  const auto bits = static_cast<std::uint64_t>(value);
  for (std::size_t i = sizeof(T); i-- > 0;)
    out.push_back(static_cast<char>((bits >> (8 * i)) & 0xff));
}

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : left_(bytes) {}

  // A number of a value.
  template <class T>
  T take() {
    const std::string_view raw = bytes(sizeof(T));
    std::uint64_t bits = 0;
    for (std::size_t i = raw.size(); i-- > 0;)
      bits = bits << 8 | static_cast<unsigned char>(raw[i]);
    return static_cast<T>(bits);
  }

  // A number of a key.
  template <class T>
  T key() {
    std::uint64_t bits = 0;
    for (const char byte : bytes(sizeof(T)))
      bits = bits << 8 | static_cast<unsigned char>(byte);
    return static_cast<T>(bits);
  }

  std::string_view bytes(std::size_t count) {
    if (count > left_.size()) {
      ok_ = false;
      left_ = {};
      return {};
    }
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }

  std::string_view rest() const { return left_; }
  bool ok() const { return ok_; }
  bool ended() const { return ok_ && left_.empty(); }

 private:
  std::string_view left_;
  bool ok_ = true;
};

}  // namespace ordo::store_rocksdb

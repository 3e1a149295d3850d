// Numbers as the binary encoding writes them: lowest byte first, on every machine.
//
//   out = store<std::uint32_t>(out, 17);     // returns what lies behind it
//   const auto length = load<std::uint32_t>(bytes);
//
// Threads: pure functions.
// Cost:    one move on machines that are little endian themselves.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace ordo::order_tcp {

template <std::integral T>
char* store(char* out, std::type_identity_t<T> value) {
  const auto bits = static_cast<std::make_unsigned_t<T>>(value);
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out[i] = static_cast<char>(static_cast<unsigned char>(bits >> (8 * i)));
  return out + sizeof(T);
}

template <std::integral T>
T load(const char* bytes) {
  using Bits = std::make_unsigned_t<T>;
  Bits bits = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bits = static_cast<Bits>(
        bits |
        static_cast<Bits>(static_cast<Bits>(static_cast<unsigned char>(bytes[i])) << (8 * i)));
  return static_cast<T>(bits);
}

}  // namespace ordo::order_tcp

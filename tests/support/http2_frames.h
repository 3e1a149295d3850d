// Frames of HTTP/2 as bytes, for tests that say what no library would.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ordo::testing_support {

inline std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream,
                         std::string_view payload) {
  std::string text;
  for (const int shift : {16, 8, 0})
    text.push_back(static_cast<char>(payload.size() >> shift & 0xFF));
  text.push_back(static_cast<char>(type));
  text.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0})
    text.push_back(static_cast<char>(stream >> shift & 0xFF));
  return text.append(payload);
}

}  // namespace ordo::testing_support

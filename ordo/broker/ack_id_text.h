// Ack ids as clients see them: opaque text that stands for one delivery.
//
//   AckIdText codec(key);                    // a key of this broker; none: no secret
//   std::string text = codec.encode(ack_id);
//   Result<AckId> id = codec.decode(text);   // invalid_argument for anything we did not write
//
// The text is the base64url form of a version, the id, and a check value over both. Without a key
// the check value finds what was garbled or made up by mistake; with one nobody who lacks the key
// should be able to make a valid text (the check function is handed in for that).
//
// Threads: encode() and decode() may be called by any thread.
// Cost:    55 characters; one allocation to encode, none to decode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ordo/broker/ids.h"
#include "ordo/core/result.h"

namespace ordo::broker {

class AckIdText {
 public:
  // 128 bits over `bytes`: a message authentication code where there is a secret.
  struct CheckValue {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
  };
  using CheckFunction = CheckValue (*)(std::string_view key, std::string_view bytes);

  // Finds mistakes, not malice.
  static CheckValue plain_check(std::string_view key, std::string_view bytes);

  explicit AckIdText(std::string key = {}, CheckFunction check = plain_check);

  std::string encode(const AckId& id) const;
  Result<AckId> decode(std::string_view text) const;

 private:
  std::string key_;
  CheckFunction check_;
};

}  // namespace ordo::broker

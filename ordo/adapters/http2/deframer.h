// Deframer: messages out of the DATA of a gRPC call, however it is split.
//
//   Deframer deframer(limits, connection_bytes, budget);
//   while (auto message = deframer.next(bytes)) {
//     use(*message);                                             // a view; gone at the next call
//     deframer.drop_message();                                   // ... or here
//   }
//   if (deframer.error()) return finish(*deframer.error());
//   // all of `bytes` has been taken, an incomplete message is kept
//
// A message that lies in one piece of input is not copied.
//
// Threads: one owner.
// Bounds:  a message up to message_bytes_max, also when inflated. What is kept counts against the
//          connection's input_bytes_max and the server's budget; when those are used up the call
//          fails. What was inflated does not count: it is there while the message is used.
// Errors:  after an error next() returns nothing more.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "ordo/adapters/http2/kept_bytes.h"
#include "ordo/adapters/http2/limits.h"
#include "ordo/core/result.h"

namespace ordo::http2 {

class Deframer {
 public:
  // `connection_bytes` is what all deframers of the connection keep. REQUIRES: all outlive this.
  Deframer(const Limits& limits, std::size_t& connection_bytes, InputBudget& budget);
  // Messages may be compressed with gzip.
  void allow_gzip() { is_gzip_allowed_ = true; }

  // Takes from `bytes` what belongs to the next message. Nothing: it needs more, or error().
  std::optional<std::string_view> next(std::string_view& bytes);

  // The message that was returned is used no more: its memory is given back.
  void drop_message();

  const std::optional<Error>& error() const { return error_; }
  // A message has begun and is not complete.
  bool is_in_message() const { return !kept_.empty() && !is_kept_used_; }

 private:
  static constexpr std::size_t kPrefixBytes = 5;

  std::optional<std::string_view> take(std::string_view message, bool is_compressed);
  bool check_prefix(std::string_view prefix);
  bool keep(std::string_view bytes);
  void fail(ErrorCode code, std::string message);

  const Limits& limits_;
  KeptBytes kept_;             // From the prefix on.
  std::string inflated_;       // The message that was returned, when it was compressed.
  bool is_kept_used_ = false;  // kept_ was returned, and goes at the next call.
  bool is_gzip_allowed_ = false;
  std::optional<Error> error_;
};

}  // namespace ordo::http2

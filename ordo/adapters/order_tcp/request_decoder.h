// RequestDecoder: from the bytes of a client to what it asks, in either encoding.
//
//   RequestDecoder decoder(kRequestBytesMax);
//   std::string_view bytes = what_one_read_brought();
//   while (auto incoming = decoder.next(bytes)) handle(*incoming);   // takes from its front
//
// How the bytes are cut into reads makes no difference to what comes out. A request that lies in
// one read is not copied; of one that does not, the beginning is kept until the rest has come.
//
// Threads: one owner. No sockets, no clock.
// Bounds:  keeps at most one request of request_bytes_max bytes, and only those that have come.
// Cost:    about 40 ns per request; no allocation while requests lie within reads.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "ordo/adapters/order_tcp/wire.h"

namespace ordo::order_tcp {

class RequestDecoder {
 public:
  // request_bytes_max: of a line without its LF, or of a frame's body.
  explicit RequestDecoder(std::size_t request_bytes_max) : request_bytes_max_(request_bytes_max) {}

  // The next thing in `bytes`, from which what was used is taken away. Nothing: all of it was
  // used, and more is needed. What it returns is valid until the next call, as long as `bytes` is.
  // After something broken: nothing, whatever comes.
  std::optional<Incoming> next(std::string_view& bytes);

  // No more bytes will come. A request of which only the beginning came is broken.
  std::optional<Incoming> finish();

  // Text until the first byte has been seen.
  Encoding encoding() const { return encoding_; }

  // Bytes of an unfinished request.
  std::size_t kept_bytes() const { return is_kept_used_ ? 0 : kept_.size(); }

 private:
  std::optional<Incoming> next_line(std::string_view& bytes);
  std::optional<Incoming> next_frame(std::string_view& bytes);
  bool keep_until(std::string_view& bytes, std::size_t size);
  std::optional<Incoming> broken(std::string_view& bytes, const Incoming& why);
  void forget_kept();

  const std::size_t request_bytes_max_;
  std::string kept_;           // The beginning of a request.
  bool is_kept_used_ = false;  // What was returned last lies in kept_.
  bool is_begun_ = false;
  bool is_broken_ = false;
  Encoding encoding_ = Encoding::text;
};

// A line without its LF and CR. Commands are recognised; everything else is a task or rejected.
Incoming parse_line(std::string_view line);

}  // namespace ordo::order_tcp

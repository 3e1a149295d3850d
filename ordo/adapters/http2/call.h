// Call: one gRPC call, from its method and metadata to its status. CallHandler: who serves it.
//
// A unary method replies in one go:
//
//   routes.unary("/shop.Orders/Get", [](const CallPtr& call, std::string_view request) {
//     call->reply(Slice::of(look_up(request)));
//   });
//
// A streaming one has a handler, and sends while the client keeps up:
//
//   class Tail : public CallHandler {
//     void on_message(std::string_view bytes) override { start(bytes); }
//     void on_half_close() override { call_->finish(0); }
//     void on_writable() override { send_more(); }        // while (call_->wants_more()) send(...)
//     void on_cancelled() override { forget(); }
//   };
//
// Order: what one thread sends arrives in that order; finish() and reply() are the last word, and
// what comes after them is dropped. A call that nobody finishes stays open until its client ends
// it.
//
// Threads: Call any thread; CallHandler is called on the connection's I/O thread, one at a time,
//          and destroyed there. It must not block.
// Bounds:  see Conversation; a call holds the request's metadata, up to Limits::header_bytes_max.
// Cost:    from another thread: a lock and, for the first of a batch, a wake-up.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/adapters/http2/conversation.h"
#include "ordo/core/clock.h"
#include "ordo/core/result.h"

namespace ordo::http2 {

class Call final : public Conversation {
 public:
  using Conversation::Conversation;

  // Every client takes so much of the details of a status.
  static constexpr std::size_t kDetailsBytesMin = 4'096;

  // When the client's patience ends; TimePoint::max() when it has not said. The front itself ends
  // the call then, with DEADLINE_EXCEEDED.
  TimePoint deadline() const { return deadline_; }
  // What the client takes of the details of finish(), as it has said when it connected. With more
  // than that it would not see the status at all.
  std::size_t details_bytes_max() const { return details_bytes_max_; }
  // Binary metadata (`name` ends in -bin), decoded. Nothing: not there, or not base64.
  std::optional<std::string> binary_metadata(std::string_view name) const;

  // Response metadata. Only before the first message, and at most once; names in lower case.
  void send_headers(HeaderList headers);
  // One message, of one piece or several. False, and nothing is taken: wants_more() was false, or
  // the client has gone.
  bool send(Slice message);
  bool send(std::vector<Slice> pieces);
  // The end. `details` is a serialised google.rpc.Status, for grpc-status-details-bin; left out
  // when the client does not take so much.
  void finish(int code, std::string_view message = {}, std::string_view details = {},
              HeaderList trailers = {});
  void finish(const Error& error) { finish(static_cast<int>(error.code), error.message); }
  // A message and OK, in one write. Also when wants_more() is false.
  void reply(Slice message);
  void reply(std::vector<Slice> pieces);

  // For the connection, before anybody else knows of the call.
  void set_deadline(TimePoint deadline) { deadline_ = deadline; }
  void set_details_bytes_max(std::size_t bytes) { details_bytes_max_ = bytes; }
  void compress_replies() { is_gzip_ = true; }

 private:
  Part part_with(std::vector<Slice> pieces);
  void begin(Part& part);

  TimePoint deadline_ = TimePoint::max();
  std::size_t details_bytes_max_ = kDetailsBytesMin;
  bool is_gzip_ = false;                // The client compresses, so we do.
  std::atomic<bool> has_begun_{false};  // The head has been sent.
};

using CallPtr = std::shared_ptr<Call>;

class CallHandler {
 public:
  CallHandler() = default;
  CallHandler(const CallHandler&) = delete;
  CallHandler& operator=(const CallHandler&) = delete;
  virtual ~CallHandler() = default;

  // `bytes` are gone when this returns.
  virtual void on_message(std::string_view bytes) = 0;
  // The client will send no more.
  virtual void on_half_close() = 0;
  // wants_more() was false, and is true again.
  virtual void on_writable() {}
  // As asked by ask_round_end(): no more input comes before what is sent now.
  virtual void on_round_end() {}
  // The client has gone, its deadline has passed, or the front has ended the call (docs/http2.md):
  // nothing that is sent arrives. The last call.
  virtual void on_cancelled() {}
};

// The trailers of `code`, for a connection that ends a call by itself.
Part final_part(int code, std::string_view message, std::string_view details, HeaderList trailers);

}  // namespace ordo::http2

// Http2Stream: one request of an HTTP/2 connection and its response.
//
// From headers it becomes a gRPC call (content-type application/grpc) or a plain request; what is
// wrong with it is answered here. Output waits in chunks until the library asks for it.
//
// Threads: one owner, its I/O thread.
// Bounds:  see Limits: the header list, the message, what is queued.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/adapters/http2/call.h"
#include "ordo/adapters/http2/conversation.h"
#include "ordo/adapters/http2/deframer.h"
#include "ordo/adapters/http2/exchange.h"
#include "ordo/adapters/http2/http2_session.h"
#include "ordo/adapters/http2/kept_bytes.h"
#include "ordo/adapters/http2/routes.h"

namespace ordo::http2 {

class Http2Stream final : public Channel {
 public:
  // What one DATA frame may carry now.
  struct Ready {
    std::size_t size = 0;
    bool is_last = false;     // Nothing follows but trailers, if there are any.
    bool is_waiting = false;  // Nothing now; more will come.
  };

  Http2Stream(Http2Session& session, std::int32_t id);
  ~Http2Stream() override;

  std::int32_t id() const { return id_; }

  // Input, in the order of the wire.
  void add_header(std::string_view name, std::string_view value);
  void end_headers();
  void add_data(std::string_view bytes);
  void end_input();

  // Output, when the library asks.
  Ready ready(std::size_t size_max);
  void move_to(OutputQueue& output, std::size_t size);
  bool has_trailers() const { return is_grpc_; }
  void submit_trailers();
  bool is_input_ended() const { return is_input_ended_; }

  // The stream is gone; whoever serves it is told, unless it has said its last word.
  void cancel();
  void tell_writable();
  void tell_round_end();
  void on_time(TimePoint now);
  TimePoint next_deadline() const;

  void take(Part&& part) override;
  void hold_input(bool is_held) override;
  void ask_round_end() override;

  std::size_t index = 0;  // Among the streams of the session.

 private:
  void begin_call(std::string_view content_type);
  const char* read_call_headers(Call& call);
  const char* take_room_for_head();
  void begin_exchange();
  void take_data(std::string_view bytes);
  void take_messages(std::string_view bytes);
  void handle_message(std::string_view message);
  void finish_input();
  void release_held();
  void tell_cancelled();
  void refuse(unsigned status, std::string_view words);
  void fail(ErrorCode code, std::string_view message);
  void submit_head(const Part& part);
  void submit_trailers_only();

  Http2Session& session_;
  const std::int32_t id_;
  InputShare share_;  // Of the head, and of being there at all.
  RequestHead head_;
  std::size_t header_bytes_ = 0;
  std::shared_ptr<Call> call_;          // Of gRPC, or
  std::shared_ptr<Exchange> exchange_;  // of a plain request, once its body is complete.
  std::unique_ptr<CallHandler> handler_;
  const Routes::Method* method_ = nullptr;
  std::optional<Deframer> deframer_;
  KeptBytes kept_;  // The body of a plain request; or input that is held.
  TimePoint input_deadline_ = TimePoint::max();
  TimePoint sent_at_;  // When output was moved last, or began to wait.

  std::vector<Chunk> output_;
  std::size_t output_first_ = 0;  // The first chunk that has not been moved whole,
  std::size_t output_begin_ = 0;  // and what of it has been.
  std::size_t output_bytes_ = 0;
  HeaderList trailers_;
  int grpc_status_ = Part::kNoGrpc;
  std::size_t message_count_ = 0;
  bool is_grpc_ = false;
  bool is_head_request_ = false;
  bool is_head_sent_ = false;
  bool is_output_ended_ = false;
  bool is_cut_ = false;       // ... by us, though the handler has more: HEAD.
  bool is_deferred_ = false;  // The library waits to be told that there is more.
  bool is_input_ended_ = false;
  bool is_input_held_ = false;
  bool is_end_held_ = false;
  bool is_round_asked_ = false;
};

}  // namespace ordo::http2

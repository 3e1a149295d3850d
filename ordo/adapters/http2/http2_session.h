// Http2Session: HTTP/2 on one connection, by libnghttp2.
//
// The library keeps the rules of the protocol: frames, HPACK, flow control, stream states. This
// adds what it leaves to its user: limits on floods (FrameMeter), windows that open only as
// handlers take what came, deadlines, keep-alive, and the end: GOAWAY, what runs is finished, then
// closed.
//
// Until the first request comes, what a client has said is a few settings. The library's 25 KB
// for a session are given back then, and the session made again from those, once something comes.
//
// Threads: one owner, its I/O thread.
// Bounds:  see Limits. Before the first request about 2 KiB, then 24 KiB and the two HPACK tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/adapters/http2/frame_meter.h"
#include "ordo/adapters/http2/session.h"

struct nghttp2_session;

namespace ordo::http2 {

class Http2Stream;

class Http2Session final : public Session {
 public:
  // Behind the client's preface.
  Http2Session(SessionContext& context, TimePoint now);
  ~Http2Session() override;

  void receive(std::string_view bytes, TimePoint now) override;
  void end_input(TimePoint now) override;
  void fill(OutputQueue& output, TimePoint now) override;
  void on_time(TimePoint now) override;
  TimePoint next_deadline() const override { return next_deadline_; }
  void drain(TimePoint now) override;

  bool wants_input() const override { return !is_dead_ && !is_broken_; }
  bool is_over() const override;
  bool is_broken() const override { return is_broken_; }
  std::uint64_t noise() const override { return meter_.noise(); }
  std::size_t queued_bytes() const override { return account_->bytes(); }
  std::size_t idle_bytes() const override;
  std::size_t open_count() const override { return streams_.size(); }
  bool is_idle() const override { return streams_.empty() && !meter_.is_in_block(); }
  bool has_served() const override { return has_served_; }
  void end_idle(TimePoint now) override;

  // For its streams.
  SessionContext& context() { return context_; }
  nghttp2_session* library() {
    if (!library_) wake();
    return library_.get();
  }
  std::size_t& kept_bytes() { return kept_bytes_; }
  const std::shared_ptr<OutputAccount>& account() const { return account_; }
  TimePoint now() const { return now_; }
  // What the client takes of a status's details, before they are written as text.
  std::size_t details_bytes_max();
  void expect_by(TimePoint deadline);
  // So many bytes of a stream were taken; the client may send as many more.
  void consume(std::int32_t stream, std::size_t bytes);
  // When fill() is over: the stream has room again.
  void tell_writable_later(std::int32_t stream) { writable_.push_back(stream); }
  // Before anything else is sent.
  void tell_round_end_to(std::int32_t stream) {
    round_ends_.push_back(stream);
    context_.touch();
  }

 private:
  friend struct Http2Callbacks;
  struct LibraryDeleter {
    void operator()(nghttp2_session* session) const;
  };

  void make_library();
  void wake();
  void sleep_if_new();
  void note_greeting(std::string_view bytes);
  void drop_output();
  Http2Stream& open(std::int32_t id);
  void close(Http2Stream& stream);
  void calm(const char* reason);
  void break_off(std::uint32_t code);
  void send_last_goaway();
  void check_keepalive();
  void tell_round_ends();
  TimePoint first_deadline();

  SessionContext& context_;
  FrameMeter meter_;
  const std::shared_ptr<OutputAccount> account_;
  std::size_t kept_bytes_ = 0;  // Of all streams.
  std::vector<std::unique_ptr<Http2Stream>> streams_;
  std::unique_ptr<nghttp2_session, LibraryDeleter> library_;  // None: asleep, see above.
  std::string greeting_;                  // All that the client has said, while is_new_.
  std::vector<std::int32_t> round_ends_;  // Streams to be told that a round of input has ended.
  std::vector<std::int32_t> writable_;    // Streams to be told that they have room.
  OutputQueue* output_ = nullptr;         // During fill().
  TimePoint now_;
  TimePoint opened_at_;
  TimePoint heard_at_;                      // When bytes came last.
  TimePoint pinged_at_ = TimePoint::max();  // A keep-alive PING has no answer yet.
  TimePoint in_block_since_ = TimePoint::max();
  TimePoint goaway_at_ = TimePoint::max();  // When the last GOAWAY goes out, at the latest.
  TimePoint next_deadline_ = TimePoint::max();
  bool is_new_ = true;       // Nothing has come but SETTINGS and WINDOW_UPDATE, and little of it.
  bool is_leaving_ = false;  // Asleep, and about to say so.
  bool has_served_ = false;
  bool is_draining_ = false;
  bool is_broken_ = false;
  bool is_dead_ = false;  // Nothing can be said any more.
};

}  // namespace ordo::http2

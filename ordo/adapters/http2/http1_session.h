// Http1Session: HTTP/1.1 (and 1.0) on one connection: one request after the other, each answered
// before the next is looked at, also when they come in one go.
//
// Threads: one owner, its I/O thread.
// Bounds:  see Limits; of pipelined requests up to kHeldBytesMax are read ahead.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "ordo/adapters/http2/exchange.h"
#include "ordo/adapters/http2/http1_parser.h"
#include "ordo/adapters/http2/session.h"

namespace ordo::http2 {

class Http1Session final : public Session, private Channel {
 public:
  static constexpr std::size_t kHeldBytesMax = std::size_t{16} * 1024;
  static constexpr std::size_t kIdleBytes = std::size_t{3} * 1024;

  // `opened_at`: when the connection began to wait for its first request.
  Http1Session(SessionContext& context, TimePoint opened_at);
  ~Http1Session() override;

  void receive(std::string_view bytes, TimePoint now) override;
  void end_input(TimePoint now) override;
  void fill(OutputQueue& output, TimePoint now) override;
  void on_time(TimePoint now) override;
  TimePoint next_deadline() const override;
  void drain(TimePoint now) override;

  bool wants_input() const override {
    return !is_closing_ && !is_input_ended_ && held_.size() < kHeldBytesMax;
  }
  bool is_over() const override { return is_closing_ && output_.empty() && !exchange_; }
  bool is_broken() const override { return is_broken_; }
  std::uint64_t noise() const override { return 0; }
  std::size_t queued_bytes() const override { return account_->bytes(); }
  std::size_t idle_bytes() const override { return kIdleBytes; }
  std::size_t open_count() const override { return exchange_ ? 1 : 0; }
  bool is_idle() const override { return !exchange_ && parser_.is_untouched(); }
  bool has_served() const override { return has_served_; }
  void end_idle(TimePoint now) override;

 private:
  // What is to be sent, and how much of it counts as queued by the exchange.
  struct Piece {
    Slice slice{};
    std::size_t queued_bytes = 0;
  };

  void take(Part&& part) override;
  void hold_input(bool /*is_held*/) override {}  // The whole body is there already.

  void parse(std::string_view bytes);
  void begin_exchange();
  void end_exchange();
  void cancel_exchange();
  void tell_writable();
  void refuse(unsigned status, std::string_view words);
  void say_head(const Part& part, std::size_t body_bytes);
  void say_chunk(Chunk&& chunk);
  void say(std::string text);

  SessionContext& context_;
  const std::shared_ptr<OutputAccount> account_;
  std::size_t kept_bytes_ = 0;
  Http1Parser parser_;
  std::string held_;  // Behind the request that is being answered.
  std::shared_ptr<Exchange> exchange_;
  std::deque<Piece> output_;
  TimePoint now_;
  TimePoint input_deadline_;
  bool is_chunked_ = false;
  bool is_without_body_ = false;  // HEAD, 204, 304.
  bool is_head_said_ = false;
  bool is_keep_alive_ = true;
  bool is_answered_ = false;
  bool has_served_ = false;  // The first head has its time from the beginning on.
  bool is_closing_ = false;
  bool is_broken_ = false;
  bool is_draining_ = false;
  bool is_input_ended_ = false;
};

}  // namespace ordo::http2

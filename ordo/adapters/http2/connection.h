// Connection: what is known of one client, without its socket: bytes in, handlers called, bytes
// out, and when to stop reading, and when to close.
//
//   Connection connection(context, store, now);
//   connection.receive(bytes, now);             // what one read brought
//   connection.fill(now);                       // ... and what is to be sent for it
//   connection.sent(writev(connection.output()), now);
//   if (!connection.wants_input()) stop_reading();
//   if (connection.is_finished()) close();
//   if (now >= connection.next_deadline()) connection.on_time(now);
//
// The first bytes decide: the preface of HTTP/2, or HTTP/1.1.
//
// Threads: one owner, its I/O thread. No sockets, no clock.
// Bounds:  see Limits. Output for the socket is output_pause_bytes and what one frame adds to it;
//          while it is there no input is wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ordo/adapters/http2/output_queue.h"
#include "ordo/adapters/http2/session.h"
#include "ordo/core/clock.h"

namespace ordo::http2 {

class Connection {
 public:
  // REQUIRES: what the context refers to, and `store`, outlive this.
  Connection(SessionContext context, BufferStore& store, TimePoint now);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  void receive(std::string_view bytes, TimePoint now);
  // The client has closed its side.
  void end_input(TimePoint now);
  void fill(TimePoint now);
  // The first `count` bytes of output() are gone.
  void sent(std::size_t count, TimePoint now);
  void on_time(TimePoint now);
  // Finishes what runs, then ends.
  void drain(TimePoint now);

  const OutputQueue& output() const { return output_; }
  bool wants_input() const;
  bool is_finished() const;
  // It ends because of what the client did: it may still be sending.
  bool is_broken() const { return is_dead_ || (session_ && session_->is_broken()); }
  // Not after it on_time() has something to do; TimePoint::max(): never.
  TimePoint next_deadline() const;
  std::size_t open_count() const { return session_ ? session_->open_count() : 0; }
  // How many frames came that cost us more than the client.
  std::uint64_t noise() const { return session_ ? session_->noise() : 0; }
  // What handlers have sent and the socket has not taken, and when it last took any.
  std::size_t queued_bytes() const {
    return output_.size() + (session_ ? session_->queued_bytes() : 0);
  }
  TimePoint sent_at() const { return sent_at_; }
  // What it takes of memory while it is idle, about.
  std::size_t idle_bytes() const { return session_ ? session_->idle_bytes() : kUndecidedBytes; }
  bool is_idle() const { return !session_ || session_->is_idle(); }
  bool has_served() const { return session_ && session_->has_served(); }
  // When bytes came last, or it was opened.
  TimePoint heard_at() const { return heard_at_; }
  // Ends it, politely and at once. REQUIRES: is_idle().
  void end_idle(TimePoint now);

 private:
  static constexpr std::size_t kUndecidedBytes = 1024;

  void choose(std::string_view bytes, TimePoint now);

  SessionContext context_;
  OutputQueue output_;
  std::unique_ptr<Session> session_;
  std::string first_bytes_;  // Until they decide.
  TimePoint opened_at_;
  TimePoint heard_at_;
  TimePoint sent_at_;              // When output was taken last, or it was opened.
  std::size_t counted_bytes_ = 0;  // Of the output, what the server counts as queued.
  TimePoint progress_at_;          // When output was taken last, or began to wait.
  bool is_draining_ = false;
  bool is_dead_ = false;  // Nothing can be said any more.
};

}  // namespace ordo::http2

// Conversation: a request and the way back to its client, as all threads may hold it. Call (gRPC)
// and Exchange (plain HTTP) are what one makes of it.
//
// Mailbox: what other threads say to the conversations of one I/O thread. A batch of posts is one
// wake-up and, for each connection, one write. On the I/O thread itself there is no detour.
//
// Channel: the stream or connection that a conversation belongs to, while there is one.
//
// OutputAccount: what the conversations of one connection have queued, which counts for the server
// as well (OutputBudget).
//
// Backpressure: what was posted and has not been taken by the connection counts as queued. From
// Limits::stream_output_bytes_max on wants_more() is false, and nothing is taken; at half of it the
// handler is told that there is room again. One message may lie above the bound. While all of a
// connection have Limits::output_bytes_max queued, or all of the server its budget, each may send
// only when it has nothing queued.
//
// Threads: any thread, but for what says otherwise. No lock is held when handlers are called.
// Bounds:  see above; the mailbox holds no more than its conversations.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ordo/adapters/http2/header_list.h"
#include "ordo/adapters/http2/limits.h"
#include "ordo/adapters/http2/part.h"

namespace ordo::http2 {

class Conversation;

// On the I/O thread.
class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  // Parts behind the end are dropped.
  virtual void take(Part&& part) = 0;
  virtual void hold_input(bool is_held) = 0;
  // Only streams of calls are told of rounds.
  virtual void ask_round_end() {}
};

struct Letter {
  enum class Kind { part, hold_input, resume_input };
  std::shared_ptr<Conversation> to;
  Kind kind = Kind::part;
  Part part{};
};

class Mailbox {
 public:
  // `ring` wakes the I/O thread, which then calls take_all(). It may not call back, and is not
  // called once close() has returned.
  explicit Mailbox(std::function<void()> ring) : ring_(std::move(ring)) {}

  // From now on posts of the calling thread are delivered at once.
  void make_this_threads_own();

  void post(Letter&& letter);
  // On the I/O thread.
  void take_all();
  // What comes from now on is dropped. On the I/O thread.
  void close();

 private:
  const std::function<void()> ring_;
  std::mutex mutex_;
  std::vector<Letter> letters_;  // Guarded by mutex_.
  bool is_closed_ = false;       // Guarded by mutex_.
  std::atomic<bool> has_letters_{false};
  std::atomic<unsigned> ringing_{0};  // So many are about to call ring_; raised under mutex_.
  // The I/O thread's.
  std::vector<Letter> taken_;
  std::vector<Letter> own_;  // Posted by handlers while letters are delivered: behind those.
  bool is_taking_ = false;
};

class OutputAccount {
 public:
  OutputAccount(const Limits& limits, std::shared_ptr<OutputBudget> budget)
      : stream_bytes_max(limits.stream_output_bytes_max),
        bytes_max_(limits.output_bytes_max),
        budget_(std::move(budget)) {}

  void add(std::size_t bytes) {
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    budget_->add(bytes);
  }
  void remove(std::size_t bytes) {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    budget_->remove(bytes);
  }
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  bool is_full() const { return bytes() >= bytes_max_; }
  bool is_server_full() const { return budget_->is_full(); }

  const std::size_t stream_bytes_max;

 private:
  const std::size_t bytes_max_;
  const std::shared_ptr<OutputBudget> budget_;
  std::atomic<std::size_t> bytes_{0};
};

struct RequestHead {
  std::string method;  // GET, POST, ...
  std::string path;    // The target, with its query.
  HeaderList headers;  // Names in lower case; those that begin with `:` are not among them.
  std::shared_ptr<const std::string> peer;  // Address and port of the client.
};

class Conversation : public std::enable_shared_from_this<Conversation> {
 public:
  Conversation(RequestHead head, std::shared_ptr<Mailbox> mailbox,
               std::shared_ptr<OutputAccount> account);
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;
  virtual ~Conversation();

  const RequestHead& head() const { return head_; }
  std::string_view path() const { return head_.path; }
  const HeaderList& headers() const { return head_.headers; }
  std::string_view peer() const { return *head_.peer; }

  // The client has gone, or its time is over: what is sent is dropped.
  bool is_cancelled() const { return is_cancelled_.load(std::memory_order_acquire); }
  // False when too much is queued; then the handler is told when there is room.
  bool wants_more();
  std::size_t queued_bytes() const { return queued_bytes_.load(std::memory_order_relaxed); }

  // No more input is handed over until resume_input(), and the client is not told to send any.
  void hold_input();
  void resume_input();

  // When all input that came together has been handed over, and before anything of it is answered,
  // the call's handler is told: on_round_end(). On the I/O thread.
  void ask_round_end() {
    if (channel_ != nullptr) channel_->ask_round_end();
  }

  // What follows is for the connection, on the I/O thread.
  void attach(Channel* channel) { channel_ = channel; }
  void deliver(Letter& letter);
  // So much of what was queued is on its way. True: somebody waits to be told that there is room.
  bool note_sent(std::size_t bytes);
  void mark_cancelled() { is_cancelled_.store(true, std::memory_order_release); }

 protected:
  void post(Part&& part);

 private:
  void post_letter(Letter&& letter);
  bool has_room() const;

  const RequestHead head_;
  const std::shared_ptr<Mailbox> mailbox_;
  const std::shared_ptr<OutputAccount> account_;
  std::atomic<std::size_t> queued_bytes_{0};
  std::atomic<bool> is_waiting_{false};  // Somebody was told that there is no room.
  std::atomic<bool> is_cancelled_{false};
  Channel* channel_ = nullptr;  // The I/O thread's.
};

}  // namespace ordo::http2

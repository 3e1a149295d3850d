// Session: one protocol on one connection, without its socket: bytes in, output to be sent, time.
// Http2Session and Http1Session are the two there are; Connection chooses.
//
// SessionContext: what a session has from its surroundings.
//
// Threads: one owner, its I/O thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ordo/adapters/http2/conversation.h"
#include "ordo/adapters/http2/limits.h"
#include "ordo/adapters/http2/output_queue.h"
#include "ordo/adapters/http2/routes.h"
#include "ordo/core/clock.h"
#include "ordo/core/counter.h"

namespace ordo::http2 {

// Of all connections of one I/O thread.
struct SessionCounters {
  Counter calls;      // gRPC, refused ones included.
  Counter requests;   // Plain, refused ones included.
  Counter cancelled;  // Calls and requests whose client went, or whose deadline passed.
  Counter malformed;  // Connections and requests that were not HTTP, or not gRPC.
  Counter calmed;     // Connections that were closed because of a flood.
  Counter timed_out;  // Connections that were closed because nothing came, or nothing was taken.
};

struct SessionContext {
  const Limits& limits;
  const RouteSwitch& routes;
  InputBudget& budget;
  SessionCounters& counters;
  std::shared_ptr<Mailbox> mailbox;
  std::shared_ptr<const std::string> peer = std::make_shared<const std::string>();
  std::shared_ptr<OutputBudget> output = std::make_shared<OutputBudget>(~std::size_t{0});
  // There is something to send, or to look at: settle the connection soon.
  std::function<void()> touch = [] {};
};

class Session {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session() = default;

  virtual void receive(std::string_view bytes, TimePoint now) = 0;
  // The client has closed its side.
  virtual void end_input(TimePoint now) = 0;
  // Moves what is to be sent to `output`, until it holds Limits::output_pause_bytes.
  virtual void fill(OutputQueue& output, TimePoint now) = 0;
  virtual void on_time(TimePoint now) = 0;
  // Not after it on_time() has something to do; it may be called earlier.
  virtual TimePoint next_deadline() const = 0;
  // Finish what runs, take nothing new.
  virtual void drain(TimePoint now) = 0;

  virtual bool wants_input() const = 0;
  // Nothing more will come of it: close when the output is sent.
  virtual bool is_over() const = 0;
  // It ends because of what the client did.
  virtual bool is_broken() const = 0;
  // How many frames came that cost us more than the client, see FrameMeter.
  virtual std::uint64_t noise() const = 0;
  // What calls and requests have sent and fill() has not moved.
  virtual std::size_t queued_bytes() const = 0;
  // What it takes of memory while it is idle, about.
  virtual std::size_t idle_bytes() const = 0;
  // Calls and requests under way.
  virtual std::size_t open_count() const = 0;
  // Nothing runs, and no request has begun to come.
  virtual bool is_idle() const = 0;
  // A request has come whole.
  virtual bool has_served() const = 0;
  // Ends it, politely and at once. REQUIRES: is_idle().
  virtual void end_idle(TimePoint now) = 0;
};

}  // namespace ordo::http2

// Connection: what is known of one client, without its socket: bytes in, requests to the port,
// replies to bytes out, and when to stop reading, and when to close.
//
//   Connection connection(address, limits, store, counters);
//   connection.receive(port, bytes);            // what one read brought
//   port.flush();                               // ... brings answer() calls
//   send(connection.output());
//   if (!connection.wants_input()) stop_reading();
//   if (connection.is_finished()) close();
//
// A limit that is met in the middle of a read stops the decoding there: the rest is held, nothing
// is read until it has been decoded, and continue_input() goes on when answers or sends have made
// room. So the limits are exact, whatever a read brings.
//
// Threads: one owner, its I/O thread. No sockets, no clock.
// Bounds:  ConnectionLimits; held input is at most what one receive() brought.
// Cost:    about 100 ns per request and reply in text, apart from the port.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ordo/adapters/order_tcp/gap_set.h"
#include "ordo/adapters/order_tcp/output_buffer.h"
#include "ordo/adapters/order_tcp/request_decoder.h"
#include "ordo/adapters/order_tcp/wire.h"
#include "ordo/core/counter.h"
#include "ordo/gateway/ports.h"
#include "ordo/gateway/request.h"

namespace ordo::order_tcp {

struct ConnectionLimits {
  std::size_t request_bytes_max = kRequestBytesMax;
  std::size_t outstanding_max = 1'024;                       // Admitted and not answered.
  std::size_t output_pause_bytes = std::size_t{256} * 1024;  // No input is decoded from there on.
  std::size_t output_bytes_max = std::size_t{4} * 1024 * 1024;  // Beyond: overflowed.
  std::chrono::milliseconds unread_time_max{60'000};            // With output that nobody takes.
  std::size_t gap_ids_max = 4'096;                              // Ids with a gap, in strict mode.
  bool strict_gaps = false;
};

// Of all connections of one I/O thread.
struct ConnectionCounters {
  Counter requests;   // Tasks that were well formed, refused ones included.
  Counter refused;    // Of those: refused by the port, or because of a gap.
  Counter malformed;  // Lines and frames that were no request, too long ones included.
};

class Connection {
 public:
  // REQUIRES: all three outlive this.
  Connection(gateway::ReplyAddress address, const ConnectionLimits& limits, BlockStore& store,
             ConnectionCounters& counters);

  // Decodes `bytes`, submits the tasks to `port` and answers the rest. Does not flush the port.
  // REQUIRES: wants_input().
  void receive(gateway::TaskPort& port, std::string_view bytes);
  // The client will send no more. What it sent is still answered.
  // REQUIRES: wants_input().
  void end_input(gateway::TaskPort& port);
  // Goes on with what was held. True: it did something.
  bool continue_input(gateway::TaskPort& port);
  // No more input is wanted, held input is forgotten: the server is going to stop.
  void stop_input();

  // The reply to a request that was admitted.
  void answer(const gateway::Reply& reply);

  OutputBuffer& output() { return output_; }
  const OutputBuffer& output() const { return output_; }

  // Whether to read: neither ended nor held up.
  bool wants_input() const { return !is_input_ended_ && !has_held_input() && may_decode(); }
  bool can_continue() const { return has_held_input() && may_decode(); }
  // All that was asked is answered and sent, and no more will be asked.
  bool is_finished() const {
    return is_input_ended_ && !has_held_input() && outstanding_ == 0 && output_.empty();
  }
  // It ends because of what the client sent, not because the client wanted to.
  bool is_broken() const { return is_broken_; }
  // More waits to be sent than allowed.
  bool is_overflowed() const { return output_.size() > limits_.output_bytes_max; }

  std::size_t outstanding() const { return outstanding_; }
  Encoding encoding() const { return decoder_.encoding(); }
  gateway::ReplyAddress address() const { return address_; }

 private:
  bool has_held_input() const { return held_from_ < held_.size() || is_end_held_; }
  bool may_decode() const {
    return outstanding_ < limits_.outstanding_max && output_.size() < limits_.output_pause_bytes;
  }
  std::string_view decode(gateway::TaskPort& port, std::string_view bytes);
  void take_end();
  void handle(gateway::TaskPort& port, const Incoming& incoming);
  void submit(gateway::TaskPort& port, const Incoming& incoming);
  void reject(const Incoming& incoming, gateway::Refusal refusal, std::int32_t partition,
              std::string_view detail);
  void note_gap(const Incoming& incoming);
  void break_off();
  void forget_held();

  const gateway::ReplyAddress address_;
  const ConnectionLimits& limits_;
  ConnectionCounters& counters_;
  RequestDecoder decoder_;
  OutputBuffer output_;
  GapSet gaps_;
  std::string held_;  // Read and not decoded yet, from held_from_ on.
  std::size_t held_from_ = 0;
  std::size_t outstanding_ = 0;
  bool is_end_held_ = false;  // The client has ended, and held input is to be decoded first.
  bool is_input_ended_ = false;
  bool is_broken_ = false;
};

}  // namespace ordo::order_tcp

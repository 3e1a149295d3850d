// TaskPort, ReplyPort: the two sides between a front (sockets, a test) and the gateway.
//
//   front                                       gateway
//     port.submit(std::move(request)) ------>     admits it, or says why not
//     ... more of one read ...
//     port.flush() ------------------------->     partitions run, or are woken, once
//     replies.reply(std::move(reply)) <------     one for each admitted request, exactly
//     replies.flush() <----------------------     end of a batch: write what has gathered
//
// A refused request gets no reply() call: submit() said so, and the front answers. Replies of one
// correlation id come in the order of their submits; others in any order.
//
// Threads: TaskPort: any thread. ReplyPort: called by any partition's thread, or by a thread that
//          is inside TaskPort::flush() (a gateway may run a partition there); calls never block.
#pragma once

#include <cstdint>
#include <string>

#include "ordo/gateway/request.h"

namespace ordo::gateway {

// What became of a submit.
struct Admitted {
  Refusal refusal = Refusal::none;        // none: admitted; or busy, id_busy, closing.
  std::int32_t partition = kNoPartition;  // Where it went, or would have gone.
};

class TaskPort {
 public:
  TaskPort() = default;
  TaskPort(const TaskPort&) = delete;
  TaskPort& operator=(const TaskPort&) = delete;
  virtual ~TaskPort() = default;

  // Takes `request` in, in order with earlier calls of this thread. Refused: `request` is whole.
  virtual Admitted submit(Request&& request) = 0;
  // Lets what this thread submitted run. Nothing submitted may wait for longer than until then.
  virtual void flush() = 0;
  // One line of JSON: counters over all partitions, for `STATS`.
  virtual std::string stats_line() const = 0;
};

class ReplyPort {
 public:
  ReplyPort() = default;
  ReplyPort(const ReplyPort&) = delete;
  ReplyPort& operator=(const ReplyPort&) = delete;
  virtual ~ReplyPort() = default;

  virtual void reply(Reply&& reply) noexcept = 0;
  virtual void flush() noexcept = 0;
};

}  // namespace ordo::gateway

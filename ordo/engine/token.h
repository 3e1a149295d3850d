// TaskToken: how a handler says later, from any thread, that it has done with its task.
//
//   struct Handler {
//     void handle(Order& order, const TaskTurn&, TaskToken token) {
//       venue.send(order, [token](bool ok) { ok ? token.done() : token.fail("refused"); });
//     }
//     void finished(Order&, const TaskTurn&) noexcept;
//     void failed(Order&, const TaskTurn&, std::exception_ptr) noexcept;
//   };
//
// The turn of a task ends when handle() has returned and the token was used, whichever comes
// later; then finished() or failed() is called by the partition. Until then the task is in flight,
// the Task& stays valid, and the next task of its id waits. The partition's thread does not.
//
// What becomes of a token:
//   used once            done(): finished(); fail(): failed() with the error
//   used again           nothing; the call returns false and is counted (any copy counts as used)
//   handle() throws      counts as fail() if the token was not used yet; it is used up then
//   every copy dropped   failed() with TokenDropped
//   after the end        of drain() or of the engine: nothing; the call returns false
//
// Threads: any thread may use, copy and drop a token; two threads need a copy each.
// Bounds:  2^22 copies of a token at a time.
// Cost:    one or two compare-and-swaps for each of these; no allocation but for errors.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace ordo {

// What a task fails with whose last token was dropped unused.
class TokenDropped : public std::runtime_error {
 public:
  TokenDropped() : std::runtime_error("the token of the task was dropped without use") {}
};

namespace engine {

class TokenDesk;

// Names the token of one turn of one task, once and for all.
struct TokenName {
  std::uint32_t cell = 0;
  std::uint64_t generation = 0;
};

}  // namespace engine

class TaskToken {
 public:
  TaskToken() = default;  // No token: using it does nothing.
  // The engine's: takes over the first hold of the token.
  TaskToken(std::shared_ptr<engine::TokenDesk> desk, engine::TokenName name)
      : desk_(std::move(desk)),
        name_(name) {}

  TaskToken(const TaskToken& other);
  TaskToken(TaskToken&& other) noexcept = default;
  TaskToken& operator=(TaskToken other) noexcept {
    std::swap(desk_, other.desk_);
    std::swap(name_, other.name_);
    return *this;
  }
  ~TaskToken();

  // The task is done. True when this call was the one that counted.
  bool done() const;
  // The task failed. True when this call was the one that counted.
  bool fail(std::exception_ptr error) const;
  bool fail(const std::string& why) const;

 private:
  std::shared_ptr<engine::TokenDesk> desk_;
  engine::TokenName name_;
};

}  // namespace ordo

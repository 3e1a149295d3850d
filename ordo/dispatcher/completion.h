// Completion: how a handler says later, from any thread, that it has done with its event.
//
//   Dispatcher<std::string, Order> d([&](const std::string& id, Order& order, Completion done) {
//     client.send(order, [done](bool ok) {                 // returns at once
//       ok ? done() : done.fail(std::make_exception_ptr(std::runtime_error("refused")));
//     });
//   });
//
// The turn of the entity ends when the handler has returned and its token was used, whichever comes
// later; until then the event is in flight, the Event& stays valid, and the entity's next event
// waits. The threads do not: thousands of entities can be in flight on a few of them.
//
// What becomes of a token:
//   used once            the event is processed, or it failed and the failure policy decides
//   used again           nothing; the call returns false (any copy of a used token counts as used)
//   handler throws       counts as fail() if the token was not used yet; it is used up then
//   every copy dropped   the event failed with CompletionDropped
//   after shutdown()     nothing; the call returns false. A token may outlive the dispatcher.
//
// Threads: any thread may use, copy and drop a token; two threads need a copy each.
// Cost:    a short lock for each of these; no allocation.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

#include "ordo/lane/lane.h"

namespace ordo {

// What an event fails with whose last token was dropped unused.
class CompletionDropped : public std::runtime_error {
 public:
  CompletionDropped() : std::runtime_error("the completion token was dropped without use") {}
};

namespace dispatcher {

// Names one turn of one lane, once and for all.
struct TurnName {
  std::uint32_t shard = 0;
  LaneHandle lane;
  std::uint64_t turn = 0;
};

// Whose turn it is to end turns: the engine.
class TurnEnder : public std::enable_shared_from_this<TurnEnder> {
 public:
  TurnEnder() = default;
  TurnEnder(const TurnEnder&) = delete;
  TurnEnder& operator=(const TurnEnder&) = delete;
  virtual ~TurnEnder() = default;

  // Ends the turn, well without an error. False when it was ended already.
  virtual bool end_turn(const TurnName& turn, std::exception_ptr error) = 0;
  // One token more, one token less, of that turn.
  virtual void hold_turn(const TurnName& turn) = 0;
  virtual void drop_turn(const TurnName& turn) = 0;
};

}  // namespace dispatcher

class Completion {
 public:
  Completion() = default;  // No token: using it does nothing.
  // The engine's: takes over one hold of the turn.
  Completion(std::shared_ptr<dispatcher::TurnEnder> ender, const dispatcher::TurnName& turn)
      : ender_(std::move(ender)),
        turn_(turn) {}

  Completion(const Completion& other) : ender_(other.ender_), turn_(other.turn_) {
    if (ender_) ender_->hold_turn(turn_);
  }
  Completion(Completion&& other) noexcept = default;
  Completion& operator=(Completion other) noexcept {
    std::swap(ender_, other.ender_);
    std::swap(turn_, other.turn_);
    return *this;
  }
  ~Completion() {
    if (ender_) ender_->drop_turn(turn_);
  }

  // The event is processed. True when this call was the one that counted.
  bool operator()() const { return ender_ && ender_->end_turn(turn_, nullptr); }
  // The event failed. True when this call was the one that counted.
  bool fail(std::exception_ptr error) const {
    if (!ender_) return false;
    if (error == nullptr) error = std::make_exception_ptr(std::runtime_error("failed"));
    return ender_->end_turn(turn_, std::move(error));
  }

 private:
  std::shared_ptr<dispatcher::TurnEnder> ender_;
  dispatcher::TurnName turn_;
};

}  // namespace ordo

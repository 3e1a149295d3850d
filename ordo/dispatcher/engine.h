// Engine: what a Dispatcher is made of behind its front door, whichever way its lanes are found.
//
// Threads: any, all calls; join() and the destructor not from a handler.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ordo/dispatcher/completion.h"
#include "ordo/dispatcher/options.h"

namespace ordo::dispatcher {

template <class Key, class Event>
class Engine : public TurnEnder {
 public:
  using KeyView = LaneKeyView<Key>;
  using Undone = std::map<Key, std::vector<Event>>;

  // `event` is moved from if it is admitted. `position` may be null.
  virtual Dispatched dispatch(KeyView key, Event& event, const std::uint64_t* position) = 0;
  virtual bool pause(KeyView key) = 0;
  virtual bool resume(KeyView key) = 0;
  virtual std::optional<Event> discard(KeyView key) = 0;
  virtual std::vector<ParkedLane<Key, Event>> parked() = 0;
  virtual std::vector<LaneStatus<Key>> lanes(std::size_t count) = 0;
  virtual DispatcherStats stats() = 0;
  virtual Undone shutdown(std::chrono::nanoseconds deadline) = 0;
  // Waits for the threads. REQUIRES: shutdown() was called.
  virtual void join() = 0;
};

}  // namespace ordo::dispatcher

// Intake: how an event comes in: limits, positions, what happens when there is no room.
//
//   Intake<T> intake(lanes, callbacks);
//   Dispatched result = intake.dispatch("cart-17", event, nullptr);   // event is moved if admitted
//
// Threads: any.
// Bounds:  max_queued_per_key events of an entity (those held back by a gap included), max_queued
//          of all, each until it has ended; at the bound as `overflow` says.
// Cost:    one short lock and one table look-up; with a position a second look-up and the clock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "ordo/dispatcher/callbacks.h"
#include "ordo/dispatcher/lanes.h"

namespace ordo::dispatcher {

template <class T>
class Intake {
 public:
  using Key = typename T::Key;
  using KeyView = typename T::KeyView;
  using Event = typename T::Event;
  using Record = typename T::Record;
  using Route = typename Lanes<T>::Route;
  using Position = std::uint64_t;

  Intake(Lanes<T>& lanes, Callbacks<Key, Event, typename T::State>& callbacks)
      : lanes_(lanes),
        callbacks_(callbacks) {}

  // `position` may be null. `owner` is who CallingOut knows the dispatcher by.
  Dispatched dispatch(KeyView key, Event& event, const Position* position, const void* owner) {
    Arrival arrival{lanes_.route(key), key, event, position};
    const Dispatched result = attempt_twice(arrival);
    if (!is_refused(result)) return result;
    if (lanes_.settings().overflow == Overflow::block && !CallingOut::is_for(owner)) {
      return wait_for_room(arrival);
    }
    Shard<T>& shard = lanes_[arrival.route.shard];
    std::lock_guard lock(shard.lock);
    ++shard.account.rejected;
    return result;
  }

  // The events held back behind the first gap of `key` may go. False when there are none.
  bool accept_gap(KeyView key) {
    const Route route = lanes_.route(key);
    Shard<T>& shard = lanes_[route.shard];
    bool publish = false;
    {
      std::lock_guard lock(shard.lock);
      const std::uint32_t place = shard.memory.find(route.hash, key);
      if (place == kNoIndex || !shard.memory[place].held) return false;
      auto& memory = shard.memory[place];
      memory.next_position = memory.held->begin()->first;
      admit_held(route, shard, key, memory);
      publish = lanes_.list(shard);
    }
    if (publish) lanes_.lookout().publish(route.shard);
    return true;
  }

 private:
  enum class Place : std::uint8_t { next, duplicate, behind_gap };

  // An event that asks to come in, and what somebody has to be told of once the lock is given back.
  struct Arrival {
    const Route route;
    const KeyView key;
    Event& event;
    const Position* const position;
    bool is_last_try = false;  // There is no place anywhere: dropping may make one.
    std::optional<Record> dropped{};
    std::optional<Position> expected{};  // There is a gap.
  };

  static bool is_refused(Dispatched result) {
    return result == Dispatched::key_full || result == Dispatched::full;
  }

  Dispatched attempt_twice(Arrival& arrival) {
    arrival.is_last_try = false;
    const Dispatched result = attempt(arrival);
    if (result != Dispatched::full) return result;
    lanes_.collect_places();
    arrival.is_last_try = true;
    return attempt(arrival);
  }

  Dispatched attempt(Arrival& arrival) {
    Shard<T>& shard = lanes_[arrival.route.shard];
    Dispatched result = Dispatched::admitted;
    bool publish = false;
    {
      std::lock_guard lock(shard.lock);
      if (shard.closed) return Dispatched::closed;
      result = arrival.position == nullptr ? admit(shard, arrival) : admit_at(shard, arrival);
      if (result == Dispatched::admitted) publish = lanes_.list(shard);
    }
    if (publish) lanes_.lookout().publish(arrival.route.shard);
    if (arrival.dropped) callbacks_.dropped(Key(arrival.key), *arrival.dropped->event);
    const bool tells = lanes_.settings().gaps != GapPolicy::accept && callbacks_.wants_gaps();
    if (arrival.expected && tells) {
      callbacks_.gap(Key(arrival.key), *arrival.expected, *arrival.position);
    }
    return result;
  }

  Dispatched admit(Shard<T>& shard, Arrival& arrival) {
    const typename Record::New record{arrival.key, arrival.event};
    const auto id = lanes_.lane_id(arrival.route, arrival.key);
    if (!lanes_.take_place(shard)) {
      if (!arrival.is_last_try || !drop_oldest(shard, id, arrival)) return Dispatched::full;
      if (!lanes_.take_place(shard)) return Dispatched::full;
    }
    Admission admission = shard.queue.push(id, record);
    if (admission == Admission::key_full) {
      lanes_.settle_turns(arrival.route.shard);
      admission = shard.queue.push(id, record);
    }
    if (admission == Admission::key_full && drop_oldest(shard, id, arrival)) {
      admission = shard.queue.push(id, record);
    }
    if (admission != Admission::admitted) {
      lanes_.free_places(shard, 1);
      return Dispatched::key_full;
    }
    ++shard.account.admitted;
    lanes_.note_lanes(shard);
    return Dispatched::admitted;
  }

  bool drop_oldest(Shard<T>& shard, typename T::LaneIdView id, Arrival& arrival) {
    if (lanes_.settings().overflow != Overflow::drop_oldest || arrival.dropped) return false;
    arrival.dropped = shard.queue.drop_waiting(id);
    if (!arrival.dropped) return false;
    ++shard.account.dropped;
    lanes_.free_places(shard, 1);
    return true;
  }

  // ---- positions

  static Place place_of(const Memory<Event, typename T::State>& memory, Position position) {
    if (!memory.next_position || position == *memory.next_position) return Place::next;
    if (position < *memory.next_position) return Place::duplicate;
    if (memory.held && memory.held->count(position) > 0) return Place::duplicate;
    return Place::behind_gap;
  }

  Dispatched admit_at(Shard<T>& shard, Arrival& arrival) {
    const std::uint32_t place = shard.memory.hold(arrival.route.hash, arrival.key);
    auto& memory = shard.memory[place];
    const bool waits = lanes_.settings().gaps == GapPolicy::wait;
    const Place where = place_of(memory, *arrival.position);
    Dispatched result = Dispatched::duplicate;
    if (where == Place::duplicate) {
      ++shard.account.duplicates;
    } else if (where == Place::behind_gap && waits) {
      result = hold_back(shard, arrival, memory);
    } else {
      result = admit(shard, arrival);
    }
    if (result == Dispatched::admitted) {
      memory.is_touched = true;
      if (where == Place::behind_gap) {
        ++shard.account.gaps;
        arrival.expected = memory.next_position;
      }
      if (where == Place::next || !waits) {
        memory.next_position = *arrival.position + 1;
        admit_held(arrival.route, shard, arrival.key, memory);
      }
    }
    lanes_.release_memory(shard, place);
    return result;
  }

  Dispatched hold_back(Shard<T>& shard, Arrival& arrival,
                       Memory<Event, typename T::State>& memory) {
    const std::size_t held = memory.held ? memory.held->size() : 0;
    const auto id = lanes_.lane_id(arrival.route, arrival.key);
    const std::size_t queued = shard.queue.item_count(id);
    if (queued + held >= lanes_.settings().max_queued_per_key) return Dispatched::key_full;
    if (!lanes_.take_place(shard)) return Dispatched::full;
    if (!memory.held) memory.held = std::make_unique<std::map<Position, Event>>();
    memory.held->emplace(*arrival.position, std::move(arrival.event));
    ++shard.held_count;
    ++shard.account.admitted;
    return Dispatched::admitted;
  }

  // What was held back and is next now goes to its lane.
  void admit_held(const Route& route, Shard<T>& shard, KeyView key,
                  Memory<Event, typename T::State>& memory) {
    while (memory.held && memory.held->begin()->first == *memory.next_position) {
      const typename Record::New record{key, memory.held->begin()->second};
      shard.queue.push_admitted(lanes_.lane_id(route, key), record);
      memory.held->erase(memory.held->begin());
      if (memory.held->empty()) memory.held.reset();
      --shard.held_count;
      ++*memory.next_position;
    }
  }

  // ---- Overflow::block

  Dispatched wait_for_room(Arrival& arrival) {
    for (;;) {
      const EventCount::Ticket ticket = lanes_.room().prepare();
      const Dispatched result = attempt_twice(arrival);
      if (!is_refused(result)) {
        lanes_.room().cancel();
        return result;
      }
      lanes_.room().wait(ticket);
    }
  }

  Lanes<T>& lanes_;
  Callbacks<Key, Event, typename T::State>& callbacks_;
};

}  // namespace ordo::dispatcher

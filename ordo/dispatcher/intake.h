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
      memory.last_position = memory.held->begin()->first - 1;
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
    std::size_t held = 0;      // Events of its entity that are held back.
    std::optional<Record> dropped{};
    std::optional<Position> expected{};  // There is a gap.
  };

  // Places of the budget that were taken and not used yet; gives them back.
  struct Places {
    ~Places() { lanes.free_places(shard, count); }
    Lanes<T>& lanes;
    Shard<T>& shard;
    std::uint64_t count = 0;
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
    Places places{lanes_, shard};
    if (lane_is_full(shard, id, arrival)) {
      if (!drop_oldest(shard, id, arrival)) return Dispatched::key_full;
    } else if (!lanes_.take_place(shard)) {
      if (!arrival.is_last_try || !drop_oldest(shard, id, arrival)) return Dispatched::full;
    }
    places.count = 1;  // Taken, or that of the one that was dropped.
    Admission admission = shard.queue.push(id, record);
    if (admission == Admission::key_full) {
      lanes_.settle_turns(arrival.route.shard);
      admission = shard.queue.push(id, record);
    }
    if (admission == Admission::key_full && drop_oldest(shard, id, arrival)) {
      ++places.count;
      admission = shard.queue.push(id, record);
    }
    if (admission != Admission::admitted) return Dispatched::key_full;
    --places.count;
    ++shard.account.admitted;
    lanes_.note_lanes(shard);
    return Dispatched::admitted;
  }

  // What push() would not notice, or only after a place was taken: a place that is taken for a
  // moment could make another caller wait for it, whom nobody would tell that it is free again.
  bool lane_is_full(Shard<T>& shard, typename T::LaneIdView id, const Arrival& arrival) {
    if (arrival.held == 0 && lanes_.settings().overflow != Overflow::block) return false;
    const std::size_t most = lanes_.settings().max_queued_per_key;
    if (shard.queue.item_count(id) + arrival.held < most) return false;
    lanes_.settle_turns(arrival.route.shard);
    return shard.queue.item_count(id) + arrival.held >= most;
  }

  // The place of what was dropped is the caller's.
  bool drop_oldest(Shard<T>& shard, typename T::LaneIdView id, Arrival& arrival) {
    if (lanes_.settings().overflow != Overflow::drop_oldest || arrival.dropped) return false;
    arrival.dropped = shard.queue.drop_waiting(id);
    if (!arrival.dropped) return false;
    ++shard.account.dropped;
    return true;
  }

  // ---- positions

  static Place place_of(const Memory<Event, typename T::State>& memory, Position position) {
    if (!memory.last_position) return Place::next;
    if (position <= *memory.last_position) return Place::duplicate;
    if (position - 1 == *memory.last_position) return Place::next;
    if (memory.held && memory.held->count(position) > 0) return Place::duplicate;
    return Place::behind_gap;
  }

  // Holds what is remembered of an entity. Nothing is remembered of one that was only refused.
  struct Hold {
    ~Hold() {
      const auto& memory = shard.memory[place];
      if (memory.last_position || memory.state || shard.memory.holds(place) > 1) {
        lanes.release_memory(shard, place);
      } else {
        shard.memory.erase(place);
      }
    }
    Lanes<T>& lanes;
    Shard<T>& shard;
    const std::uint32_t place;
  };

  Dispatched admit_at(Shard<T>& shard, Arrival& arrival) {
    const Hold hold{lanes_, shard, shard.memory.hold(arrival.route.hash, arrival.key)};
    auto& memory = shard.memory[hold.place];
    arrival.held = memory.held ? memory.held->size() : 0;
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
        arrival.expected = *memory.last_position + 1;
      }
      if (where == Place::next || !waits) {
        memory.last_position = *arrival.position;
        admit_held(arrival.route, shard, arrival.key, memory);
      }
    }
    return result;
  }

  // The last place, of the entity and of all, is left to the event that closes the gap.
  Dispatched hold_back(Shard<T>& shard, Arrival& arrival,
                       Memory<Event, typename T::State>& memory) {
    lanes_.settle_turns(arrival.route.shard);
    const auto id = lanes_.lane_id(arrival.route, arrival.key);
    const std::size_t queued = shard.queue.item_count(id);
    if (queued + arrival.held + 1 >= lanes_.settings().max_queued_per_key) {
      return Dispatched::key_full;
    }
    Places places{lanes_, shard};
    while (places.count < 2) {
      if (!lanes_.take_place(shard)) return Dispatched::full;
      ++places.count;
    }
    auto more = std::make_unique<std::map<Position, Event>>();
    more->emplace(*arrival.position, std::move(arrival.event));
    if (memory.held) {
      memory.held->merge(*more);
    } else {
      memory.held = std::move(more);
    }
    --places.count;
    ++shard.held_count;
    ++shard.account.admitted;
    return Dispatched::admitted;
  }

  // What was held back and is next now goes to its lane.
  void admit_held(const Route& route, Shard<T>& shard, KeyView key,
                  Memory<Event, typename T::State>& memory) {
    while (memory.held && memory.held->begin()->first - 1 == *memory.last_position) {
      const typename Record::New record{key, memory.held->begin()->second};
      shard.queue.push_admitted(lanes_.lane_id(route, key), record);
      memory.held->erase(memory.held->begin());
      if (memory.held->empty()) memory.held.reset();
      --shard.held_count;
      ++*memory.last_position;
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

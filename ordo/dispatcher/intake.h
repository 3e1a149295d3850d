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
    const Route route = lanes_.route(key);
    const Dispatched result = attempt_twice(route, key, event, position);
    if (!is_refused(result)) return result;
    if (lanes_.settings().overflow == Overflow::block && !CallingOut::is_for(owner)) {
      return wait_for_room(route, key, event, position);
    }
    Shard<T>& shard = lanes_[route.shard];
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

  // What came of an attempt that somebody has to be told of once the lock is given back.
  struct News {
    std::optional<Record> dropped;
    std::optional<Position> expected;  // There is a gap.
    bool publish = false;
    bool is_last_try = false;  // There is no place anywhere: dropping may make one.
  };

  static bool is_refused(Dispatched result) {
    return result == Dispatched::key_full || result == Dispatched::full;
  }

  Dispatched attempt_twice(const Route& route, KeyView key, Event& event,
                           const Position* position) {
    const Dispatched result = attempt(route, key, event, position, false);
    if (result != Dispatched::full) return result;
    lanes_.collect_places();
    return attempt(route, key, event, position, true);
  }

  Dispatched attempt(const Route& route, KeyView key, Event& event, const Position* position,
                     bool is_last_try) {
    Shard<T>& shard = lanes_[route.shard];
    News news;
    news.is_last_try = is_last_try;
    Dispatched result = Dispatched::admitted;
    {
      std::lock_guard lock(shard.lock);
      if (shard.closed) return Dispatched::closed;
      result = position == nullptr ? admit(route, shard, key, event, news)
                                   : admit_at(route, shard, key, event, *position, news);
      if (result == Dispatched::admitted) news.publish = lanes_.list(shard);
    }
    if (news.publish) lanes_.lookout().publish(route.shard);
    if (news.dropped) callbacks_.dropped(Key(key), *news.dropped->event);
    if (news.expected && lanes_.settings().gaps != GapPolicy::accept && callbacks_.wants_gaps()) {
      callbacks_.gap(Key(key), *news.expected, *position);
    }
    return result;
  }

  Dispatched admit(const Route& route, Shard<T>& shard, KeyView key, Event& event, News& news) {
    const typename Record::New record{key, event};
    const auto id = lanes_.lane_id(route, key);
    if (!lanes_.take_place(shard)) {
      if (!news.is_last_try || !drop_oldest(shard, id, news)) return Dispatched::full;
      if (!lanes_.take_place(shard)) return Dispatched::full;
    }
    Admission admission = shard.queue.push(id, record);
    if (admission == Admission::key_full) {
      lanes_.settle_turns(route.shard);
      admission = shard.queue.push(id, record);
    }
    if (admission == Admission::key_full && drop_oldest(shard, id, news)) {
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

  bool drop_oldest(Shard<T>& shard, typename T::LaneIdView id, News& news) {
    if (lanes_.settings().overflow != Overflow::drop_oldest || news.dropped) return false;
    news.dropped = shard.queue.drop_waiting(id);
    if (!news.dropped) return false;
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

  Dispatched admit_at(const Route& route, Shard<T>& shard, KeyView key, Event& event,
                      Position position, News& news) {
    const std::uint32_t place = shard.memory.hold(route.hash, key);
    auto& memory = shard.memory[place];
    const Place where = place_of(memory, position);
    Dispatched result = Dispatched::duplicate;
    if (where == Place::duplicate) {
      ++shard.account.duplicates;
    } else if (where == Place::behind_gap && lanes_.settings().gaps == GapPolicy::wait) {
      result = hold_back(route, shard, key, event, position, memory);
    } else {
      result = admit(route, shard, key, event, news);
    }
    if (result == Dispatched::admitted) {
      memory.is_touched = true;
      if (where == Place::behind_gap) {
        ++shard.account.gaps;
        news.expected = memory.next_position;
      }
      if (where == Place::next || lanes_.settings().gaps != GapPolicy::wait) {
        memory.next_position = position + 1;
        admit_held(route, shard, key, memory);
      }
    }
    lanes_.release_memory(shard, place);
    return result;
  }

  Dispatched hold_back(const Route& route, Shard<T>& shard, KeyView key, Event& event,
                       Position position, Memory<Event, typename T::State>& memory) {
    const std::size_t held = memory.held ? memory.held->size() : 0;
    const std::size_t queued = shard.queue.item_count(lanes_.lane_id(route, key));
    if (queued + held >= lanes_.settings().max_queued_per_key) return Dispatched::key_full;
    if (!lanes_.take_place(shard)) return Dispatched::full;
    if (!memory.held) memory.held = std::make_unique<std::map<Position, Event>>();
    memory.held->emplace(position, std::move(event));
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

  Dispatched wait_for_room(const Route& route, KeyView key, Event& event,
                           const Position* position) {
    for (;;) {
      const EventCount::Ticket ticket = lanes_.room().prepare();
      const Dispatched result = attempt_twice(route, key, event, position);
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

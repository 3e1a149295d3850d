// IdleTable: what is remembered of a key while it is in use and for a while afterwards.
//
//   IdleTable<std::string, Session> table;
//   std::uint32_t place = table.hold(hash, "cart-17");    // found or made; not idle from now on
//   table[place].count += 1;
//   table.release(place, now);                            // idle from now on
//   while ((place = table.oldest_idle(now - 60s)) != kNoIndex) {
//     table.hold(place);
//     clean_up(table[place]);
//     table.erase(place);
//   }
//
// Idle entries stand in the order in which they became idle, so the next one to go is at the front.
//
// Threads: none of its own; one owner.
// Bounds:  one entry per key in use or idle; the caller reaps. Memory is given back when the last
//          entry of a table that was large goes.
// Cost:    O(1) for every call; no allocation once the peak was reached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "ordo/core/check.h"
#include "ordo/core/clock.h"
#include "ordo/lane/flat_index.h"
#include "ordo/lane/lane.h"
#include "ordo/lane/slab.h"

namespace ordo::dispatcher {

template <class Key, class Value>
class IdleTable {
 public:
  using KeyView = LaneKeyView<Key>;

  IdleTable() = default;
  IdleTable(const IdleTable&) = delete;
  IdleTable& operator=(const IdleTable&) = delete;
  ~IdleTable() { clear(); }

  // The entry of `key`, made if there is none, and held once more.
  std::uint32_t hold(std::uint32_t hash, KeyView key) {
    std::uint32_t place = find(hash, key);
    if (place == kNoIndex) {
      place = entries_.acquire();
      Entry& entry = entries_[place];
      entry.key.emplace(key);
      entry.value.emplace();
      entry.hash = hash;
      entry.holds = 0;
      entry.is_idle = false;
      index_.insert(hash, place);
    }
    hold(place);
    return place;
  }
  void hold(std::uint32_t place) {
    Entry& entry = entries_[place];
    ++entry.holds;
    if (entry.is_idle) unlink(place);
  }

  // One hold less; with the last one the entry is idle. REQUIRES: it is held.
  void release(std::uint32_t place, TimePoint now) {
    Entry& entry = entries_[place];
    ORDO_CHECK(entry.holds > 0);
    if (--entry.holds == 0) link(place, now);
  }

  // The entry of `key`, held or idle, or kNoIndex.
  std::uint32_t find(std::uint32_t hash, KeyView key) const {
    return index_.find(hash, [&](std::uint32_t place) { return *entries_[place].key == key; });
  }

  // The entry that has been idle longest, if it became idle at `limit` or earlier; else kNoIndex.
  std::uint32_t oldest_idle(TimePoint limit) const {
    if (first_ == kNoIndex || entries_[first_].idle_since > limit) return kNoIndex;
    return first_;
  }
  std::optional<TimePoint> oldest_idle_since() const {
    if (first_ == kNoIndex) return std::nullopt;
    return entries_[first_].idle_since;
  }

  // Forgets an entry. REQUIRES: it is not idle.
  void erase(std::uint32_t place) {
    Entry& entry = entries_[place];
    ORDO_CHECK(!entry.is_idle);
    index_.erase(entry.hash, place);
    entry.key.reset();
    entry.value.reset();
    entries_.release(place);
    if (index_.count() == 0 && entries_.peak_count() > kEntriesKept) clear();
  }

  Value& operator[](std::uint32_t place) { return *entries_[place].value; }
  const Key& key(std::uint32_t place) const { return *entries_[place].key; }
  std::uint32_t holds(std::uint32_t place) const { return entries_[place].holds; }
  std::size_t count() const { return index_.count(); }

  // Calls visit(place) for each entry. The visitor must not change the table.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::uint32_t place = 0; place < entries_.peak_count(); ++place) {
      if (entries_[place].value) visit(place);
    }
  }

 private:
  static constexpr std::uint32_t kEntriesKept = 256;

  struct Entry {
    LaneKey<Key> key;
    std::optional<Value> value;  // None: the place is free.
    TimePoint idle_since;
    std::uint32_t hash = 0;
    std::uint32_t holds = 0;
    std::uint32_t previous = kNoIndex;
    std::uint32_t next = kNoIndex;  // Of the idle ones, or of the free places.
    bool is_idle = false;
  };

  void link(std::uint32_t place, TimePoint now) {
    Entry& entry = entries_[place];
    entry.idle_since = now;
    entry.is_idle = true;
    entry.previous = last_;
    entry.next = kNoIndex;
    (last_ == kNoIndex ? first_ : entries_[last_].next) = place;
    last_ = place;
  }

  void unlink(std::uint32_t place) {
    Entry& entry = entries_[place];
    (entry.previous == kNoIndex ? first_ : entries_[entry.previous].next) = entry.next;
    (entry.next == kNoIndex ? last_ : entries_[entry.next].previous) = entry.previous;
    entry.is_idle = false;
  }

  void clear() {
    for_each([&](std::uint32_t place) { entries_[place].key.reset(); });
    entries_.clear();
    index_.clear();
    first_ = last_ = kNoIndex;
  }

  FlatIndex index_;
  Slab<Entry> entries_;
  std::uint32_t first_ = kNoIndex;  // Idle longest.
  std::uint32_t last_ = kNoIndex;
};

}  // namespace ordo::dispatcher

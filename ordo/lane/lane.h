// The parts KeyedQueue is made of: a lane's state and handle, and how its key and items are kept.
//
// Users of KeyedQueue meet Admission, LaneState and LaneHandle; the rest is its own.
//
// Threads: plain data; one owner.
// Bounds:  a lane takes 64 bytes with an integer key, 96 with a text key (and the text).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "ordo/core/clock.h"
#include "ordo/core/hash.h"
#include "ordo/lane/slab.h"

namespace ordo {

// What became of an item that asked to come in.
enum class Admission : std::uint8_t {
  admitted,  // Taken in; from here on it is accounted for.
  key_full,  // Refused: its key has as many items as one key may have.
  full,      // Refused: all keys together have as many items as there may be.
};

enum class LaneState : std::uint8_t {
  none,       // There is no lane.
  ready,      // Waits for its turn.
  in_flight,  // Its head has been taken and not yet ended.
  delayed,    // Its head waits for its due time, and the others behind it.
  parked,     // Out of service until resumed.
};

// Names a lane for as long as it exists, without a lookup. A handle that is used after its turn
// has ended is noticed, unless the same lane is in flight again.
struct LaneHandle {
  std::uint32_t index = kNoIndex;
  std::uint32_t generation = 0;

  friend bool operator==(const LaneHandle&, const LaneHandle&) = default;
};

struct KeyHash {
  template <class T>
  std::uint64_t operator()(const T& key) const {
    return hash_of(key);
  }
};

template <class Key>
concept TextKey = std::convertible_to<const Key&, std::string_view>;

template <class Key>
using LaneKeyView = std::conditional_t<TextKey<Key>, std::string_view, const Key&>;

// Room for the key of a lane, whether the lane is in use or not.
template <class Key>
class LaneKey {
 public:
  LaneKey() = default;
  LaneKey(const LaneKey&) = delete;
  LaneKey& operator=(const LaneKey&) = delete;
  ~LaneKey() = default;

  void emplace(LaneKeyView<Key> key) { std::construct_at(&storage_.key, Key(key)); }
  void reset() { std::destroy_at(&storage_.key); }
  const Key& operator*() const { return storage_.key; }

 private:
  union Storage {
    Storage() {}
    ~Storage() {}
    Key key;  // Alive between emplace() and reset().
  };

  Storage storage_;
};

// Texts keep their memory, so that the next key here needs no allocation unless it is longer.
template <>
class LaneKey<std::string> {
 public:
  void emplace(std::string_view key) { key_ = key; }
  void reset() {
    if (key_.capacity() > kCapacityKept) key_ = {};
  }
  const std::string& operator*() const { return key_; }

 private:
  static constexpr std::size_t kCapacityKept = 256;

  std::string key_;
};

// With a key of up to 8 bytes a lane is one cache line, and lies in one.
template <class Key>
inline constexpr std::size_t kLaneAlignment = sizeof(Key) <= 8 ? 64 : alignof(TimePoint);

template <class Key>
struct alignas(kLaneAlignment<Key>) alignas(Key) LaneRecord {
  LaneKey<Key> key;
  TimePoint head_since;
  TimePoint taken_at;
  TimePoint parked_at;
  std::uint32_t hash = 0;
  std::uint32_t generation = 0;  // Differs for each lane that lives here, one after the other.
  std::uint32_t head = kNoIndex;
  std::uint32_t tail = kNoIndex;
  std::uint32_t item_count = 0;
  std::uint32_t previous = kNoIndex;  // In its list; the place in the heap of a delayed lane.
  std::uint32_t next = kNoIndex;      // In its list, of lanes or of free places.
  std::uint16_t attempt = 0;          // How often the head was taken; stops at the largest number.
  LaneState state = LaneState::none;
  bool parks_after_turn = false;
};

// A list of lanes through their `previous` and `next`.
struct LaneList {
  std::uint32_t first = kNoIndex;
  std::uint32_t last = kNoIndex;
  std::size_t count = 0;
};

// An item that needs two cache lines anyway does not begin in the middle of one.
// NOLINTBEGIN(bugprone-sizeof-expression): an Item may well be a pointer.
template <class Item>
inline constexpr std::size_t kItemAlignment = sizeof(Item) > 56 && sizeof(Item) <= 124
                                                  ? 64
                                                  : alignof(Item);
// NOLINTEND(bugprone-sizeof-expression)

template <class Item>
struct alignas(kItemAlignment<Item>) alignas(Item) LaneItem {
  LaneItem() {}
  LaneItem(const LaneItem&) = delete;
  LaneItem& operator=(const LaneItem&) = delete;
  ~LaneItem() {}

  union {
    Item item;  // Alive while the place is taken.
  };
  std::uint32_t next = kNoIndex;
};

}  // namespace ordo

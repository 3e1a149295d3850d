// IdleList: the connections of one I/O thread on which nothing runs, in the order in which they are
// closed when there is no room: first those that have never asked for anything, then those that did
// so seldom, and of these the longest silent. Where those are few (one in eight of all) they are
// left alone: one of them has just come and is about to ask.
//
//   IdleList idle;
//   idle.place(peer.idle_place, peer.number, IdleList::Rank::often, bytes);  // now last of these
//   while (idle.bytes() > bytes_max) close(*idle.first());
//   idle.remove(peer.idle_place);                                            // it is used again
//
// Threads: one owner.
// Bounds:  by its user; one node for each connection that is in it.
// Cost:    O(1).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>

#include "ordo/core/check.h"

namespace ordo::http2 {

class IdleList {
 public:
  enum class Rank : std::uint8_t { fresh, seldom, often };  // How often it has asked.

  // Where a connection is; it belongs to the connection.
  struct Place {
    std::list<std::uint64_t>::iterator at{};
    std::size_t bytes = 0;  // What it takes.
    Rank rank = Rank::fresh;
    bool is_listed = false;
  };

  // Puts the connection `number` last of its rank, wherever it was.
  void place(Place& place, std::uint64_t number, Rank rank, std::size_t bytes) {
    std::list<std::uint64_t>& target = list_of(rank);
    if (place.is_listed) {
      bytes_ -= place.bytes;
      target.splice(target.end(), list_of(place.rank), place.at);
    } else {
      place.at = target.insert(target.end(), number);
    }
    bytes_ += bytes;
    place.bytes = bytes;
    place.rank = rank;
    place.is_listed = true;
  }

  // Nothing when it is not listed.
  void remove(Place& place) {
    if (!place.is_listed) return;
    ORDO_CHECK(bytes_ >= place.bytes);
    bytes_ -= place.bytes;
    list_of(place.rank).erase(place.at);
    place.is_listed = false;
  }

  // Who is closed next.
  std::optional<std::uint64_t> first() const {
    std::size_t count = 0;
    for (const auto& list : lists_)
      count += list.size();
    for (const auto& list : lists_) {
      if (kFewShare * list.size() > count) return list.front();
    }
    return std::nullopt;
  }

  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kFewShare = 8;

  std::list<std::uint64_t>& list_of(Rank rank) { return lists_[static_cast<std::size_t>(rank)]; }

  std::array<std::list<std::uint64_t>, 3> lists_;  // By rank.
  std::size_t bytes_ = 0;
};

}  // namespace ordo::http2

// PutOffList: the connections of one I/O thread whose work waits until all others had their turn.
//
//   PutOffList list;
//   list.add(peer.number, PutOffList::Kind::unheard);  // REQUIRES: it is not in the list
//   while (!list.empty()) serve(list.take());
//
// Every second turn is that of those of which nothing has been read yet, first the newest, then the
// oldest; between them the oldest of the others have theirs. So nobody is left out, and who has
// just come does not wait for all of a crowd that came before, nor for a few that send without end.
//
// Threads: one owner.
// Bounds:  by its user: one number for each connection.
// Cost:    O(1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "ordo/core/check.h"

namespace ordo::http2 {

class PutOffList {
 public:
  enum class Kind : std::uint8_t { unheard, other };

  void add(std::uint64_t number, Kind kind) {
    (kind == Kind::unheard ? unheard_ : others_).push_back(number);
  }

  // REQUIRES: !empty().
  std::uint64_t take() {
    ORDO_CHECK(!empty());
    const int turn = turn_;
    turn_ = (turn_ + 1) % kTurns;
    const bool is_others = turn % 2 == 1 ? !others_.empty() : unheard_.empty();
    if (is_others) return take_oldest(others_);
    if (turn != kTurnOfNewest) return take_oldest(unheard_);
    const std::uint64_t newest = unheard_.back();
    unheard_.pop_back();
    return newest;
  }

  bool empty() const { return unheard_.empty() && others_.empty(); }
  std::size_t size() const { return unheard_.size() + others_.size(); }

 private:
  static constexpr int kTurnOfNewest = 0;
  static constexpr int kTurns = 4;

  static std::uint64_t take_oldest(std::deque<std::uint64_t>& numbers) {
    const std::uint64_t oldest = numbers.front();
    numbers.pop_front();
    return oldest;
  }

  std::deque<std::uint64_t> unheard_;
  std::deque<std::uint64_t> others_;
  int turn_ = 0;
};

}  // namespace ordo::http2

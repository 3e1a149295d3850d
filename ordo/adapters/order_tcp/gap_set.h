// GapSet: the correlation ids of one connection that had a task refused (strict gaps).
//
//   GapSet gaps(4096);
//   if (gaps.contains(id)) return reject_gap();
//   if (refused && !gaps.add(id)) return close();   // too many to remember
//   gaps.remove(id);                                // RESUME
//
// Threads: one owner.
// Bounds:  ids_max ids; add() refuses beyond.
// Cost:    contains() while there is no gap is one comparison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>

namespace ordo::order_tcp {

class GapSet {
 public:
  explicit GapSet(std::size_t ids_max) : ids_max_(ids_max) {}

  bool contains(std::int64_t id) const { return !ids_.empty() && ids_.contains(id); }
  // False, and nothing is remembered, when it is full.
  [[nodiscard]] bool add(std::int64_t id) {
    if (ids_.size() >= ids_max_ && !ids_.contains(id)) return false;
    ids_.insert(id);
    return true;
  }
  void remove(std::int64_t id) { ids_.erase(id); }
  std::size_t size() const { return ids_.size(); }

 private:
  const std::size_t ids_max_;
  std::unordered_set<std::int64_t> ids_;
};

}  // namespace ordo::order_tcp

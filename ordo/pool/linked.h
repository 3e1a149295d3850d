// Linked: a list of items that carry their own links, so that joining and leaving never allocate.
//
//   struct Item { Link<Item> ready; Link<Item> all; };
//   Linked<Item, &Item::ready> queue;
//   queue.push_back(item);
//
// An item may be in several lists at once, through different links, and in each at most once.
//
// Threads: one owner.
// Cost:    O(1) for everything; owns nothing.
#pragma once

#include <cstddef>

#include "ordo/core/check.h"

namespace ordo::pool {

template <class Item>
struct Link {
  Item* before = nullptr;
  Item* after = nullptr;
  bool linked = false;
};

template <class Item, Link<Item> Item::*kLink>
class Linked {
 public:
  bool empty() const { return first_ == nullptr; }
  std::size_t size() const { return size_; }
  Item* first() const { return first_; }
  Item* after(const Item& item) const { return (item.*kLink).after; }
  bool contains(const Item& item) const { return (item.*kLink).linked; }

  // REQUIRES: the item is not in the list.
  void push_back(Item& item) {
    Link<Item>& link = item.*kLink;
    ORDO_CHECK(!link.linked);
    link = {last_, nullptr, true};
    (last_ != nullptr ? (last_->*kLink).after : first_) = &item;
    last_ = &item;
    ++size_;
  }

  // REQUIRES: the item is in the list.
  void remove(Item& item) {
    Link<Item>& link = item.*kLink;
    ORDO_CHECK(link.linked);
    (link.before != nullptr ? (link.before->*kLink).after : first_) = link.after;
    (link.after != nullptr ? (link.after->*kLink).before : last_) = link.before;
    link = {};
    --size_;
  }

 private:
  Item* first_ = nullptr;
  Item* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ordo::pool

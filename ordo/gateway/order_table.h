// OrderTable: the orders of one partition, by correlation id.
//
//   OrderTable orders;
//   Order& order = orders.insert(42);
//   if (Order* found = orders.find(42)) found->filled = Quantity{3};
//   orders.erase(42);
//
// 64 small hash tables instead of a large one: each grows and shrinks by itself, so that no order
// waits for a million others to be moved, and memory follows the number of orders down as well.
//
// Threads: one owner.
// Bounds:  what the caller inserts: bound that. 48 bytes for an order, 64 to 128 with the free
//          slots around it once there are many; a fall to an eighth gives memory back.
// Cost:    O(1), one cache miss in a large table. Growing moves one 64th of the orders.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ordo/core/hash.h"
#include "ordo/gateway/decimal.h"
#include "ordo/gateway/instruction.h"
#include "ordo/gateway/symbol_table.h"

namespace ordo::gateway {

enum class OrderState : std::uint8_t { open, partially_filled, filled, cancelled };

// "open", "partially-filled", "filled", "cancelled".
std::string_view name_of(OrderState state);

struct Order {
  std::int64_t id = 0;       // Its correlation id; 0: no order.
  Symbol* symbol = nullptr;  // While it is open.
  Quantity quantity = {};    // In all.
  Quantity filled = {};      // Of it.
  Price limit = {};
  Side side = Side::buy;
  OrderState state = OrderState::open;

  bool is_closed() const { return state >= OrderState::filled; }
  // What may still be filled.
  Quantity open() const { return is_closed() ? Quantity{} : quantity - filled; }
};

class OrderTable {
 public:
  // Where an order is put depends on a number that nobody outside knows, so that no client can
  // choose ids that all get in each other's way.
  OrderTable() : OrderTable(random_seed()) {}
  explicit OrderTable(std::uint64_t seed) : seed_(seed) {}

  // The order, or nullptr. Valid until the next insert() or erase().
  Order* find(std::int64_t id) {
    const std::uint64_t hash = hash_with_seed(id);
    std::vector<Order>& part = parts_[hash >> kPartShift];
    if (part.empty()) return nullptr;
    const std::size_t mask = part.size() - 1;
    for (std::size_t place = hash & mask; part[place].id != 0; place = (place + 1) & mask) {
      if (part[place].id == id) return &part[place];
    }
    return nullptr;
  }

  // A new order. Valid until the next insert() or erase().
  // REQUIRES: id > 0, find(id) == nullptr.
  Order& insert(std::int64_t id);

  // REQUIRES: find(id) != nullptr.
  void erase(std::int64_t id);

  // Calls visit(order) for every order, in no particular order.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::vector<Order>& part : parts_) {
      for (Order& order : part) {
        if (order.id != 0) visit(order);
      }
    }
  }

  std::size_t count() const { return count_; }
  // Orders there is memory for.
  std::size_t slot_count() const;

 private:
  static constexpr int kPartShift = 58;
  static constexpr std::size_t kPartCount = 64;
  static constexpr std::size_t kSlotCountMin = 8;

  static std::uint64_t random_seed();
  std::uint64_t hash_with_seed(std::int64_t id) const {
    return hash_of(static_cast<std::uint64_t>(id) ^ seed_);
  }
  static Order& place_for(std::vector<Order>& part, std::uint64_t hash);
  void resize(std::vector<Order>& part, std::size_t slot_count) const;

  std::uint64_t seed_;
  std::array<std::vector<Order>, kPartCount> parts_;  // Each empty, or a power of two of slots.
  std::array<std::uint32_t, kPartCount> part_counts_{};
  std::size_t count_ = 0;
};

}  // namespace ordo::gateway

// PeerTable: the connections of one I/O thread by number. A number is never used again, so what
// comes late for a connection that has gone finds nobody.
//
//   PeerTable<Peer> peers;
//   Peer& peer = peers.add([&](std::uint64_t number) { return std::make_unique<Peer>(number); });
//   if (Peer* found = peers.find(number)) found->send();
//   peers.remove(number);
//
// Threads: one owner.
// Bounds:  16 bytes for each connection that was there at the same time.
// Cost:    find() is two comparisons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace ordo::sockets {

template <class Peer>
class PeerTable {
 public:
  // `make(number)` makes the peer.
  template <class Make>
  Peer& add(Make&& make) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    Slot& slot = slots_[index];
    // The slot in the low half, how often it was used in the high one.
    const std::uint64_t number = std::uint64_t{++slot.generation} << 32 | index;
    slot.peer = std::forward<Make>(make)(number);
    ++count_;
    return *slot.peer;
  }

  Peer* find(std::uint64_t number) const {
    const auto index = static_cast<std::uint32_t>(number);
    if (index >= slots_.size()) return nullptr;
    const Slot& slot = slots_[index];
    return slot.generation == number >> 32 ? slot.peer.get() : nullptr;
  }

  // REQUIRES: find(number) != nullptr.
  void remove(std::uint64_t number) {
    const auto index = static_cast<std::uint32_t>(number);
    Slot& slot = slots_[index];
    const std::unique_ptr<Peer> leaving = std::move(slot.peer);
    --count_;
    // A slot whose numbers are used up is used no more.
    if (slot.generation != ~std::uint32_t{0}) free_.push_back(index);
  }

  // Calls `visit(peer)` for each; it may remove that one.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].peer) visit(*slots_[i].peer);
    }
  }

  std::size_t size() const { return count_; }

 private:
  struct Slot {
    std::uint32_t generation = 0;
    std::unique_ptr<Peer> peer{};
  };

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t count_ = 0;
};

}  // namespace ordo::sockets

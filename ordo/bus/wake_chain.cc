#include "ordo/bus/wake_chain.h"

#include <bit>

namespace ordo::bus {

bool WakeChain::wake_seat(Subscriber& subscriber) {
  const std::lock_guard lock(subscriber.mutex);
  if (subscriber.sleeper_count == 0) return false;
  ++subscriber.wake_count;
  subscriber.woken.notify_all();
  return true;
}

void WakeChain::wake_marked(const SeatSet& takers, const SeatSet& critical) {
  for (std::size_t word = 0; word < SeatSet::kWords; ++word) {
    const std::uint64_t wanted = takers.words[word];
    if ((marks_[word].load(std::memory_order_relaxed) & wanted) == 0) continue;
    const std::uint64_t taken = marks_[word].fetch_and(~wanted, std::memory_order_acq_rel) & wanted;
    owed_critical_[word].fetch_or(taken & critical.words[word], std::memory_order_seq_cst);
    owed_[word].fetch_or(taken & ~critical.words[word], std::memory_order_seq_cst);
  }
  serve_owed();
}

void WakeChain::serve_owed() {
  const int left = serve(owed_critical_, kWakesEach);
  if (left > 0) serve(owed_, left);
}

int WakeChain::serve(Words& owed_words, int count) {
  for (std::size_t word = 0; word < SeatSet::kWords; ++word) {
    std::uint64_t owed = owed_words[word].load(std::memory_order_seq_cst);
    while (owed != 0) {
      const std::uint64_t bit = owed & (~owed + 1);
      owed = owed_words[word].fetch_and(~bit, std::memory_order_acq_rel);
      const bool is_mine = (owed & bit) != 0;
      owed &= ~bit;
      if (!is_mine) continue;
      const auto seat = word * SeatSet::kBits + static_cast<std::size_t>(std::countr_zero(bit));
      Subscriber* subscriber = seats_[seat].load(std::memory_order_seq_cst);
      if (subscriber != nullptr && wake_seat(*subscriber) && --count == 0) return 0;
    }
  }
  return count;
}

void WakeChain::wake_all() {
  for (std::atomic<Subscriber*>& seat : seats_) {
    Subscriber* subscriber = seat.load(std::memory_order_seq_cst);
    if (subscriber != nullptr) wake_seat(*subscriber);
  }
}

}  // namespace ordo::bus

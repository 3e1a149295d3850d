#include "bench/wire/judge.h"

#include <algorithm>

namespace ordo::bench {

void Judge::received(const Stamp& stamp) {
  ++count_;
  if (keys_.empty()) {
    if (stamp.number >= seen_.size())
      seen_.resize(std::max<std::size_t>(stamp.number + 1, seen_.size() * 2));
    if (seen_[stamp.number]) ++repeated_;
    seen_[stamp.number] = true;
    return;
  }
  if (stamp.key >= keys_.size()) give_up("a message of an unknown key came");
  Key& key = keys_[stamp.key];
  if (stamp.number != key.next) ++disordered_;
  key.next = stamp.number + 1;
  if (key.is_in_flight) ++overlapping_;
  key.is_in_flight = true;
}

Measures Judge::errors(std::uint64_t sent) const {
  const std::uint64_t different = count_ - repeated_;
  Measures errors;
  errors.set("lost", static_cast<double>(sent > different ? sent - different : 0));
  errors.set("repeated", static_cast<double>(repeated_));
  errors.set("disordered", static_cast<double>(disordered_));
  errors.set("overlapping", static_cast<double>(overlapping_));
  errors.set("errors", static_cast<double>((count_ == sent ? 0 : 1) + repeated_ + disordered_ +
                                           overlapping_));
  return errors;
}

}  // namespace ordo::bench

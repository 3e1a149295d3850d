// Roster: who is subscribed, in order of priority, and who of them gets the next frame.
//
// Never changed once it is in use: subscribe and unsubscribe make the next one. What publishers
// note in it (the atomics) are counts, and answers that hold as long as nothing changes.
//
//   Verdict verdict = roster.judge(tail, {.load = 0.2});
//
// How it decides: the load that counts for a subscriber is the greatest fill among those that
// outrank it, its own queue, and the load from outside. Above its watermark its frames are shed,
// until the load is `hysteresis` below it. Who is not shed and has no room: see Overflow.
//   - The own queue counts only under drop_newest: the other policies have an answer of their own
//     to a full queue.
//   - A subscriber that wants the latest frame only is no load for others: it is normally full.
//
// Threads: any.
// Cost:    judge(): 1 to 4 ns per subscriber; not called while calm_until or stuck_at say all.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ordo/bus/seat_set.h"
#include "ordo/bus/settings.h"
#include "ordo/bus/subscriber.h"

namespace ordo::bus {

// What there is to know about one frame before it is offered.
struct Terms {
  double load = 0;     // From outside: bytes, the user's signal.
  bool late = false;   // Past its deadline: the first to be shed, and nobody waits for it.
  bool plain = false;  // Not late, and nothing from outside: an answer for one holds for the next.
};

struct Verdict {
  SeatSet takers;     // Get it now.
  SeatSet evictions;  // Of the takers: those whose oldest frame has to go first.
  SeatSet waiters;    // Have no room, and publish() may wait for it.
  std::size_t taker_count = 0;
  std::size_t waiter_count = 0;
  std::uint64_t counted = 0;     // Sum of all counted(): what the verdict was based on.
  std::uint64_t calm_until = 0;  // Below this position everybody gets everything; 0: not calm.
};

class Roster {
 public:
  using Members = std::vector<std::shared_ptr<Subscriber>>;

  // `leaving` are not offered anything; the log still has to wait for them.
  Roster(Members members, Members leaving, const Settings& settings);

  Verdict judge(std::uint64_t tail, const Terms& terms) const;
  // Everybody gets it.
  const Verdict& calm_verdict() const { return calm_; }

  std::size_t size() const { return members_.size(); }
  const Members& members() const { return members_; }
  const SeatSet& critical() const { return critical_; }
  // The member on `seat` if it was there at `position`, else nullptr.
  Subscriber* member_at(std::size_t seat, std::uint64_t position) const;

  // As Verdict::counted, now.
  std::uint64_t counted() const;
  // Moves what would be overwritten in the log into the backlogs.
  void spill(std::uint64_t target) const;

  // Written by publishers.
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> dropped_for_all{0};
  std::atomic<std::uint64_t> calm_until{0};
  // At this tail and with this sum of counts, nobody took a frame and nobody could be waited for.
  std::atomic<std::uint64_t> stuck_at{~std::uint64_t{0}};
  std::atomic<std::uint64_t> stuck_counted{0};

 private:
  static constexpr std::size_t kShedding = kPriorityCount - 1;  // Priorities that can be shed.

  struct alignas(kCacheLineBytes) Member {
    Subscriber* subscriber = nullptr;
    std::uint32_t capacity = 0;
    std::uint32_t quiet = 0;                       // Up to this fill it is no load to anybody.
    std::array<std::uint32_t, kShedding> above{};  // By priority: loads above the watermark.
    std::array<std::uint32_t, kShedding> still{};  // By priority: loads that keep it shed.
    std::uint8_t seat = 0;
    Priority priority = Priority::normal;
    Overflow overflow = Overflow::drop_newest;
  };

  // For which priorities a load is above the watermark (lower half) or keeps them shed (upper).
  using Heat = std::uint32_t;
  static Heat heat_of(const Member& member, std::uint64_t fill);
  Heat heat_of(double load) const;
  static bool is_shed(const Member& member, Heat heat, bool late);
  void judge_member(const Member& member, Heat heat, bool full, const Terms& terms,
                    Verdict& verdict) const;

  std::vector<Member> table_;
  Members members_;
  Members leaving_;
  SeatSet critical_;
  Verdict calm_;
  std::array<double, kPriorityCount> watermarks_;
  double hysteresis_;
  bool waits_for_critical_;
};

}  // namespace ordo::bus

#include "ordo/dispatcher/lookout.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "ordo/core/check.h"

namespace ordo::dispatcher {
namespace {

constexpr std::uint64_t kWakeWorthNs = 25'000;  // Less work than this is not worth waking for.
constexpr std::chrono::nanoseconds kWatch = std::chrono::microseconds(200);
constexpr int kLooks = 64;  // Counted, not timed: while others run, time passes.
constexpr int kPausesPerLook = 32;
constexpr int kLooksAtMoving = 4;
constexpr int kLooksAtStanding = 6;
constexpr double kNsPerLook = 4'000;  // A worker looks at the clock about so often.
constexpr std::size_t kEventsPerLookMax = 128;
constexpr std::uint32_t kFewEvents = 8;  // Per visit.
constexpr std::uint32_t kGather = 2;

void pause_a_moment() {
  for (int pause = 0; pause < kPausesPerLook; ++pause)
    StdAtomics::pause();
}

}  // namespace

Lookout::Lookout(std::size_t worker_count)
    : worker_count_(worker_count),
      seats_(new Seat[worker_count]) {
  ORDO_CHECK(worker_count > 0);
}

std::size_t Lookout::next(std::size_t worker) {
  Seat& seat = seats_[worker];
  std::uint64_t own = seat.own.load(std::memory_order_relaxed);
  const std::uint64_t ahead =
      seat.cursor + 1 < kShardsMax ? own & (~std::uint64_t{0} << (seat.cursor + 1)) : 0;
  if (ahead == 0) {
    // Once round: what came meanwhile joins in, or it would wait for ever behind busy shards.
    if (!take_common(seat) && own == 0 && !steal(worker)) return kNone;
    own = seat.own.load(std::memory_order_relaxed);
    if (own == 0) return kNone;  // Somebody took them again.
  }
  seat.cursor = static_cast<unsigned>(std::countr_zero(ahead != 0 ? ahead : own));
  if (seat.was_idle) begin_work(seat);
  ++seat.visits;
  seat.progress.store(seat.progress.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return seat.cursor;
}

// Close behind the dispatching threads every event costs both sides several cache misses; a moment
// later there are more of them, at the price of one. So a worker that has just worked off few cheap
// events per shard waits a little, about as long as those took. It does not after it was idle: then
// they come one by one, and waiting would only delay them.
void Lookout::let_gather(Seat& seat) {
  const bool cheap = seat.event_ns > 0 && seat.event_ns * kFewEvents < kNsPerLook;
  const std::uint32_t visits = std::exchange(seat.visits, 0);
  const std::uint32_t events = std::exchange(seat.events, 0);
  if (!cheap || seat.was_idle || visits == 0) return;
  for (std::uint32_t per_visit = events / visits; per_visit < kFewEvents; per_visit += kGather)
    pause_a_moment();
}

bool Lookout::take_common(Seat& seat) {
  std::uint64_t bits = common_.load(std::memory_order_relaxed);
  if (bits == 0) return false;
  let_gather(seat);
  // First out of the common word, then into its own: a bit that is taken is taken once. The other
  // way round, its later removal could hit a bit that was published meanwhile.
  bits = common_.exchange(0, std::memory_order_seq_cst);
  seat.own.fetch_or(bits, std::memory_order_seq_cst);
  return bits != 0;
}

// Takes half of what the first worker has that has anything.
bool Lookout::steal(std::size_t worker) {
  for (std::size_t i = 1; i < worker_count_; ++i) {
    Seat& victim = seats_[(worker + i) % worker_count_];
    std::uint64_t bits = victim.own.load(std::memory_order_seq_cst);
    if (bits == 0) continue;
    std::uint64_t wanted = bits;
    for (int left = std::popcount(bits) / 2; left > 0; --left)
      wanted &= wanted - 1;  // Without the lowest, which the victim comes to first.
    const std::uint64_t taken = victim.own.fetch_and(~wanted, std::memory_order_seq_cst) & wanted;
    if (taken == 0) continue;  // Somebody was faster.
    seats_[worker].own.fetch_or(taken, std::memory_order_seq_cst);
    return true;
  }
  return false;
}

// A worker that was idle has work. It may have been the one that looked after what waits.
void Lookout::begin_work(Seat& seat) {
  seat.was_idle = false;
  seat.active.store(true, std::memory_order_relaxed);
  waking_.exchange(false, std::memory_order_seq_cst);
  if (idle_.has_waiters() && has_work()) wake_for_work();
}

bool Lookout::has_work() const {
  if (common_.load(std::memory_order_seq_cst) != 0) return true;
  return std::any_of(seats_.get(), seats_.get() + worker_count_, [](const Seat& seat) {
    return seat.own.load(std::memory_order_seq_cst) != 0;
  });
}

std::uint64_t Lookout::progress() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < worker_count_; ++i)
    sum += seats_[i].progress.load(std::memory_order_relaxed);
  return sum;
}

bool Lookout::somebody_gets_on() const {
  return std::any_of(seats_.get(), seats_.get() + worker_count_, [](const Seat& seat) {
    return seat.active.load(std::memory_order_relaxed) &&
           seat.progress.load(std::memory_order_relaxed) !=
               seat.held_up_at.load(std::memory_order_relaxed);
  });
}

// Nothing has moved for a while: who has work is held up, until it moves.
void Lookout::note_standstill() {
  for (std::size_t i = 0; i < worker_count_; ++i) {
    Seat& seat = seats_[i];
    seat.held_up_at.store(seat.progress.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
}

bool Lookout::is_worth_waking() const {
  const auto shards =
      static_cast<std::uint64_t>(std::popcount(common_.load(std::memory_order_relaxed)));
  const std::uint64_t lanes = shards + lanes_left_.load(std::memory_order_relaxed);
  return lanes * event_ns_.load(std::memory_order_relaxed) >= kWakeWorthNs;
}

void Lookout::wake_for_work() {
  if (lookers_.load(std::memory_order_seq_cst) > 0) return;
  if (watcher_.load(std::memory_order_seq_cst) && !is_worth_waking()) return;
  if (!waking_.exchange(true, std::memory_order_seq_cst)) idle_.notify_one();
}

// Looks for work for a while. What is little and moves, somebody else is at already: two workers
// on events that cost less than a cache miss only take them from each other.
bool Lookout::look_around(const std::function<bool()>& leaving) {
  std::uint64_t progress_before = ~std::uint64_t{0};
  int looks_at_standing = 0;
  int looks_at_moving = 0;
  for (int look = 0; look < kLooks && !leaving(); ++look) {
    if (has_work()) {
      if (!somebody_gets_on() || is_worth_waking()) return true;
      const std::uint64_t now = progress();
      if (now == progress_before && ++looks_at_standing > kLooksAtStanding) {
        note_standstill();
        return true;
      }
      if (now != progress_before && ++looks_at_moving > kLooksAtMoving) return false;
      progress_before = now;
    }
    pause_a_moment();
    if (look % 2 == 1) StdAtomics::yield();
  }
  return false;
}

void Lookout::await_work(std::size_t worker, const std::function<bool()>& leaving) {
  seats_[worker].was_idle = true;
  seats_[worker].active.store(false, std::memory_order_relaxed);
  for (;;) {
    bool found = false;
    if (lookers_.fetch_add(1, std::memory_order_seq_cst) == 0) found = look_around(leaving);
    lookers_.fetch_sub(1, std::memory_order_seq_cst);
    if (found || leaving() || sleep_until_needed(leaving)) return;
  }
}

// True: there is work that nobody is getting on with.
bool Lookout::sleep_until_needed(const std::function<bool()>& leaving) {
  const EventCount::Ticket ticket = idle_.prepare();
  // Only now: a wake-up that comes before the announcement, and finds nobody, would stay for good.
  waking_.exchange(false, std::memory_order_seq_cst);
  if (leaving()) {
    idle_.cancel();
    return true;
  }
  const std::uint64_t before = progress();
  const bool naps = has_work() && !watcher_.exchange(true, std::memory_order_seq_cst);
  if (!naps) {
    // Nothing waits, or another worker watches it.
    idle_.wait(ticket);
    waking_.exchange(false, std::memory_order_seq_cst);
    return has_work();
  }
  // What waits is little and moved when last looked at. If it does not move during the nap, whoever
  // was at it is held up.
  idle_.wait_for(ticket, kWatch);
  waking_.exchange(false, std::memory_order_seq_cst);
  watcher_.exchange(false, std::memory_order_seq_cst);
  return has_work() && (before == progress() || is_worth_waking());
}

void Lookout::note_pace(std::size_t worker, std::size_t event_count, std::chrono::nanoseconds took,
                        std::size_t lanes_left) {
  // Quick to believe that events are dear, slow to believe that they are cheap: an error in the
  // first direction costs a wake-up, in the second it holds up the others.
  Seat& seat = seats_[worker];
  const double sample =
      std::max(1.0, static_cast<double>(took.count()) /
                        static_cast<double>(std::max<std::size_t>(1, event_count)));
  if (seat.event_ns <= 0) {
    seat.event_ns = sample;
  } else {
    seat.event_ns += (sample - seat.event_ns) / (sample > seat.event_ns ? 2 : 16);
  }
  event_ns_.store(static_cast<std::uint64_t>(seat.event_ns), std::memory_order_relaxed);
  lanes_left_.store(lanes_left, std::memory_order_relaxed);
}

std::size_t Lookout::events_per_look(std::size_t worker) const {
  const double event_ns = seats_[worker].event_ns;
  if (event_ns <= 0) return 1;
  return std::clamp<std::size_t>(static_cast<std::size_t>(kNsPerLook / event_ns), 1,
                                 kEventsPerLookMax);
}

}  // namespace ordo::dispatcher

#include "ordo/pool/run_deck.h"

#include <algorithm>
#include <utility>

#include "ordo/core/check.h"
#include "ordo/core/clock.h"

namespace ordo::pool {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr double kRunNs = 4'000;                // A run is about this much work.
constexpr std::uint64_t kWakeWorthNs = 25'000;  // Less work than this is not worth waking for.
constexpr nanoseconds kSpin = microseconds(50);
constexpr nanoseconds kWatch = microseconds(200);
constexpr int kPausesPerLook = 32;
constexpr int kLooksAtMoving = 4;

void pause_between_looks() {
  for (int pause = 0; pause < kPausesPerLook; ++pause)
    StdAtomics::pause();
}

}  // namespace

RunDeck::RunDeck(std::size_t workers_max, std::size_t run_max)
    : worker_count_(workers_max),
      run_max_(run_max),
      seats_(new Seat[workers_max]) {
  ORDO_CHECK(workers_max > 0);
  ORDO_CHECK(run_max > 0);
}

std::uint64_t RunDeck::run_length(const Seat& seat) const {
  if (seat.item_ns <= 0) return 1;
  const auto items = static_cast<std::uint64_t>(kRunNs / seat.item_ns);
  return std::clamp<std::uint64_t>(items, 1, run_max_);
}

std::uint64_t RunDeck::begin_run(Seat& seat, std::uint64_t first, std::uint64_t count) {
  seat.base = first;
  seat.base_low = static_cast<std::uint32_t>(first);
  // The first item is the caller's already; the rest is there for whoever comes.
  seat.run.exchange(make_run(seat.base_low + 1, static_cast<std::uint32_t>(first + count)),
                    std::memory_order_seq_cst);
  // Whoever was idle may have been the one that looked after what others left over.
  const bool was_idle = std::exchange(seat.was_idle, false);
  if (idle_.has_waiters()) {
    if (was_idle ? unstarted() > 0 : count > 1 || backlog() > 0) wake_for_work();
  }
  return first;
}

std::uint64_t RunDeck::next_run(std::size_t worker) {
  Seat& seat = seats_[worker];
  const std::uint64_t wanted = run_length(seat);
  // Close behind the producer, every look costs both a cache miss; a moment later there is more.
  if (!seat.was_idle && backlog() < wanted) pause_between_looks();
  std::uint64_t claim = claim_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t head = head_.load(std::memory_order_seq_cst);
    if (claim >= head) break;
    const std::uint64_t count = std::min(head - claim, wanted);
    if (claim_.compare_exchange_weak(claim, claim + count, std::memory_order_seq_cst,
                                     std::memory_order_relaxed)) {
      return begin_run(seat, claim, count);
    }
  }
  return seat.may_steal ? take_over(worker) : kNone;
}

std::uint64_t RunDeck::take_over(std::size_t worker) {
  Seat& seat = seats_[worker];
  seat.may_steal = false;
  std::atomic<Run>& other = seats_[seat.victim].run;
  Run run = other.load(std::memory_order_acquire);
  for (;;) {
    if (is_empty(run)) return kNone;
    const std::uint32_t count = (length(run) + 1) / 2;
    if (other.compare_exchange_weak(run, run - count, std::memory_order_seq_cst,
                                    std::memory_order_acquire)) {
      const std::uint64_t first = whole(back(run) - count);
      return begin_run(seat, first, count);
    }
  }
}

std::uint64_t RunDeck::backlog() const {
  const std::uint64_t claim = claim_.load(std::memory_order_seq_cst);
  const std::uint64_t head = head_.load(std::memory_order_seq_cst);
  return head > claim ? head - claim : 0;
}

void RunDeck::wake_for_work() {
  if (spinners_.load(std::memory_order_seq_cst) > 0) return;
  if (watcher_.load(std::memory_order_seq_cst) && !is_worth_waking()) return;
  if (!waking_.exchange(true, std::memory_order_seq_cst)) idle_.notify_one();
}

std::size_t RunDeck::find_remainder(std::size_t worker) const {
  for (std::size_t step = 1; step < worker_count_; ++step) {
    const std::size_t other = (worker + step) % worker_count_;
    if (!is_empty(seats_[other].run.load(std::memory_order_seq_cst))) return other;
  }
  return worker;
}

bool RunDeck::is_worth_waking() const {
  return unstarted() * item_ns_.load(std::memory_order_relaxed) >= kWakeWorthNs;
}

// Looks for work for a while. What is little and moves, somebody else is at already: two workers
// on items that cost less than a cache miss only take them from each other.
bool RunDeck::spin_for_work(const std::function<bool()>& leaving) const {
  const TimePoint begin = system_clock().now();
  std::uint64_t claim_before = kNone;
  int looks_at_moving = 0;
  for (;;) {
    const std::uint64_t claim = claim_.load(std::memory_order_seq_cst);
    if (backlog() > 0) {
      if (claim == claim_before || is_worth_waking()) return true;
      if (++looks_at_moving > kLooksAtMoving) return false;
    }
    claim_before = claim;
    pause_between_looks();
    if (leaving() || system_clock().now() - begin >= kSpin) return false;
    StdAtomics::yield();
  }
}

void RunDeck::await_work(std::size_t worker, const std::function<bool()>& leaving) {
  seats_[worker].was_idle = true;
  for (;;) {
    bool found = false;
    if (spinners_.fetch_add(1, std::memory_order_seq_cst) == 0) found = spin_for_work(leaving);
    spinners_.fetch_sub(1, std::memory_order_seq_cst);
    if (found || leaving() || sleep_until_needed(worker, leaving)) return;
  }
}

// True: there is work that nobody is getting on with.
bool RunDeck::sleep_until_needed(std::size_t worker, const std::function<bool()>& leaving) {
  Seat& seat = seats_[worker];
  waking_.exchange(false, std::memory_order_seq_cst);
  const EventCount::Ticket ticket = idle_.prepare();
  if (leaving()) {
    idle_.cancel();
    return true;
  }
  const std::uint64_t claim = claim_.load(std::memory_order_seq_cst);
  seat.victim = find_remainder(worker);
  const bool work_is_left = seat.victim != worker || backlog() > 0;
  if (!work_is_left || watcher_.exchange(true, std::memory_order_seq_cst)) {
    idle_.wait(ticket);
    waking_.exchange(false, std::memory_order_seq_cst);
    return false;
  }
  // Somebody else has items left. Most likely they are about to be run; if nothing has moved by
  // the end of the nap, whoever had them is held up, and they are taken over.
  const Run run = seats_[seat.victim].run.load(std::memory_order_seq_cst);
  idle_.wait_for(ticket, kWatch);
  waking_.exchange(false, std::memory_order_seq_cst);
  watcher_.exchange(false, std::memory_order_seq_cst);
  const bool run_stands = run == seats_[seat.victim].run.load(std::memory_order_seq_cst);
  seat.may_steal = run_stands && seat.victim != worker && !is_empty(run);
  return seat.may_steal || (backlog() > 0 && claim == claim_.load(std::memory_order_seq_cst));
}

void RunDeck::note_pace(std::size_t worker, std::size_t item_count, nanoseconds took) {
  // Quick to believe that items are dear, slow to believe that they are cheap: an error in the
  // first direction costs some cache misses, in the second it holds up others.
  Seat& seat = seats_[worker];
  const double sample =
      std::max(1.0, static_cast<double>(took.count()) / static_cast<double>(item_count));
  if (seat.item_ns <= 0) {
    seat.item_ns = sample;
  } else {
    seat.item_ns += (sample - seat.item_ns) / (sample > seat.item_ns ? 2 : 64);
  }
  item_ns_.store(static_cast<std::uint64_t>(seat.item_ns), std::memory_order_relaxed);
}

std::uint64_t RunDeck::unstarted() const {
  const std::uint64_t claim = claim_.load(std::memory_order_acquire);
  const std::uint64_t head = head_.load(std::memory_order_acquire);
  std::uint64_t count = head > claim ? head - claim : 0;
  for (std::size_t worker = 0; worker < worker_count_; ++worker) {
    count += length(seats_[worker].run.load(std::memory_order_relaxed));
  }
  return count;
}

}  // namespace ordo::pool

#include "ordo/pool/work_line.h"

#include <algorithm>
#include <utility>

#include "ordo/core/check.h"

namespace ordo::pool {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr std::uint64_t kWakeWorthNs = 25'000;   // Less work than this is not worth waking for.
constexpr std::uint64_t kHelpWorthNs = 200'000;  // The same while a helper is at it.
constexpr std::size_t kLeanItems = 8;
constexpr std::uint64_t kTrifleNs = 200;  // An item that is cheaper than to hand it over.
constexpr nanoseconds kNap = microseconds(200);
constexpr nanoseconds kNapMax = microseconds(1'600);
constexpr double kClockReadNs = 24;
constexpr int kLooks = 64;  // Counted, not timed: while others run, time passes.
constexpr int kPausesPerLook = 32;
constexpr int kLooksAtMoving = 4;
constexpr int kLooksAtStanding = 6;
constexpr double kNsPerLook = 4'000;  // A worker looks at the clock about so often.
constexpr std::size_t kItemsPerLookMax = 128;
constexpr std::uint64_t kFewItems = 32;

void pause_between_looks() {
  for (int pause = 0; pause < kPausesPerLook; ++pause)
    StdAtomics::pause();
}

}  // namespace

WorkLine::WorkLine(std::size_t workers_max)
    : worker_count_(workers_max),
      seats_(new Seat[workers_max]) {
  ORDO_CHECK(workers_max > 0);
}

std::size_t WorkLine::items_per_look(std::size_t worker) const {
  const double item_ns = seats_[worker].item_ns;
  if (item_ns <= 0) return 1;
  return std::clamp<std::size_t>(static_cast<std::size_t>(kNsPerLook / item_ns), 1,
                                 kItemsPerLookMax);
}

// Reads head_ again; false if there is nothing at `claim` still.
bool WorkLine::look_ahead(Seat& seat, std::uint64_t& claim) {
  // Close behind the producer every look costs both a cache miss; a moment later there is more.
  const bool cheap = seat.item_ns > 0 && seat.item_ns * kFewItems < kNsPerLook;
  if (cheap && !seat.was_idle && unstarted() < kFewItems) pause_between_looks();
  seat.head_seen = head_.load(std::memory_order_seq_cst);
  claim = claim_.load(std::memory_order_seq_cst);
  return claim < seat.head_seen;
}

// A worker that was idle has an item. It may have been the one that looked after what waits.
void WorkLine::begin_work(Seat& seat) {
  seat.was_idle = false;
  active_.fetch_add(1, std::memory_order_relaxed);
  waking_.exchange(false, std::memory_order_seq_cst);
  if (idle_.has_waiters() && unstarted() > 0) wake_for_work();
}

bool WorkLine::is_worth_waking() const {
  const std::uint64_t item_ns = pace_.item_ns();
  std::uint64_t worth_ns = kWakeWorthNs;
  if (released_ != nullptr && pace_.items_are_short() && item_ns >= kTrifleNs) {
    worth_ns = std::min(kHelpWorthNs, item_ns * std::max<std::uint64_t>(window_ / 2, 2));
  }
  return unstarted() * item_ns >= worth_ns;
}

void WorkLine::wake_for_work() {
  head_.fetch_add(0, std::memory_order_seq_cst);  // What is published is seen before what is read.
  if (spinners_.load(std::memory_order_seq_cst) > 0) return;
  if (watcher_.load(std::memory_order_seq_cst) && !is_worth_waking()) return;
  if (!waking_.exchange(true, std::memory_order_seq_cst)) idle_.notify_one();
}

// Looks for work for a while. What is little and moves, somebody else is at already: two workers
// on items that cost less than a cache miss only take them from each other.
bool WorkLine::spin_for_work(std::size_t worker, const std::function<bool()>& leaving) {
  std::uint64_t claim_before = kNone;
  int looks_at_standing = 0;
  int looks_at_moving = 0;
  for (int look = 0; look < kLooks && !leaving() && !may_stand_down(worker); ++look) {
    const std::uint64_t claim = claim_.load(std::memory_order_seq_cst);
    if (unstarted() > 0) {
      if (active_.load(std::memory_order_relaxed) == 0 || is_worth_waking()) return true;
      if (claim == claim_before) {
        if (++looks_at_standing > kLooksAtStanding) return true;
      } else {
        if (++looks_at_moving > kLooksAtMoving) return false;
        looks_at_standing = 0;
      }
    }
    claim_before = claim;
    pause_between_looks();
    if (look % 2 == 1) StdAtomics::yield();
  }
  return false;
}

void WorkLine::await_work(std::size_t worker, const std::function<bool()>& leaving) {
  if (!std::exchange(seats_[worker].was_idle, true))
    active_.fetch_sub(1, std::memory_order_relaxed);
  for (;;) {
    bool found = false;
    if (spinners_.fetch_add(1, std::memory_order_seq_cst) == 0)
      found = spin_for_work(worker, leaving);
    spinners_.fetch_sub(1, std::memory_order_seq_cst);
    if (found || leaving() || sleep_until_needed(leaving)) return;
  }
}

void WorkLine::pass_on(std::size_t worker) {
  if (!std::exchange(seats_[worker].was_idle, true))
    active_.fetch_sub(1, std::memory_order_relaxed);
  waking_.exchange(false, std::memory_order_seq_cst);
  if (unstarted() > 0) idle_.notify_one();
}

// True: there is work that nobody is getting on with.
bool WorkLine::sleep_until_needed(const std::function<bool()>& leaving) {
  const EventCount::Ticket ticket = idle_.prepare();
  // Only now: a wake-up that comes before the announcement, and finds nobody, would stay for good.
  waking_.exchange(false, std::memory_order_seq_cst);
  if (leaving()) {
    idle_.cancel();
    return true;
  }
  const bool is_needed = unstarted() > 0 || helpers_are_at_it();
  if (!is_needed || watcher_.exchange(true, std::memory_order_seq_cst)) {
    idle_.wait(ticket);
    waking_.exchange(false, std::memory_order_seq_cst);
    return false;
  }
  const bool stands_still = watch(ticket, leaving);
  waking_.exchange(false, std::memory_order_seq_cst);
  watcher_.exchange(false, std::memory_order_seq_cst);
  heavy_fence();  // What was published and left to the watcher is seen by its next look.
  return stands_still;
}

// Naps while helpers get on with what is there, at least once. What waits is little and moved when
// last looked at: if it does not move during a nap, whoever was at it is held up, or gone.
bool WorkLine::watch(EventCount::Ticket ticket, const std::function<bool()>& leaving) {
  nanoseconds nap = kNap;
  for (;;) {
    const std::uint64_t claim = claim_.load(std::memory_order_seq_cst);
    helped_before_nap_.store(helped_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    const bool was_called = idle_.wait_for(ticket, nap);
    if (unstarted() > 0 && claim == claim_.load(std::memory_order_seq_cst)) return true;
    if (was_called || leaving() || !helpers_are_at_it()) return false;
    nap = std::min(2 * nap, kNapMax);
    ticket = idle_.prepare_nap();
  }
}

void WorkLine::note_pace(std::size_t worker, std::size_t item_count, nanoseconds took) {
  Seat& seat = seats_[worker];
  took -= std::exchange(seat.telling, {});
  const double sample =
      std::max(1.0, static_cast<double>(took.count()) / static_cast<double>(item_count));
  seat.item_ns = Pace::blend(seat.item_ns, sample);
  seat.lean = unstarted() <= 1 ? seat.lean + item_count : 0;
  pace_.note(sample, seat.item_ns);
}

void WorkLine::note_help(nanoseconds took) {
  const double sample = std::max(1.0, static_cast<double>(took.count()) - kClockReadNs);
  help_ns_ = Pace::blend(help_ns_, sample);
  pace_.note(sample, help_ns_);
}

bool WorkLine::wants_help() const {
  if (!pace_.items_are_short()) return false;
  if (pace_.item_ns() < kTrifleNs) return true;
  return active_.load(std::memory_order_relaxed) == 0 && !is_worth_waking();
}

bool WorkLine::may_stand_down(std::size_t worker) {
  if (released_ == nullptr || !pace_.items_are_short()) return false;
  Seat& seat = seats_[worker];
  const std::uint64_t released = released_->load(std::memory_order_relaxed);
  const bool moved = std::exchange(seat.released_seen, released) != released;
  if (!moved || is_worth_waking()) return false;
  return pace_.item_ns() < kTrifleNs || seat.lean >= kLeanItems;
}

// Whether a helper has taken something since the last nap.
bool WorkLine::helpers_are_at_it() const {
  return pace_.items_are_short() && helped_.load(std::memory_order_relaxed) !=
                                        helped_before_nap_.load(std::memory_order_relaxed);
}

std::uint64_t WorkLine::unstarted() const {
  const std::uint64_t claim = claim_.load(std::memory_order_seq_cst);
  const std::uint64_t head = head_.load(std::memory_order_seq_cst);
  return head > claim ? head - claim : 0;
}

}  // namespace ordo::pool

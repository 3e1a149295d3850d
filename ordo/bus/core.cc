#include "ordo/bus/core.h"

#include <algorithm>
#include <utility>

#include "ordo/bus/offer.h"
#include "ordo/core/check.h"
#include "ordo/runtime/atomics.h"

namespace ordo::bus {

double BusCore::load_from_outside() const {
  double load = 0;
  if (settings_.load) {
    try {
      load = settings_.load();
    } catch (...) {
      load = 0;  // A signal that fails says nothing.
    }
    if (!(load > 0)) load = 0;
  }
  if (settings_.bytes_max > 0) {
    const auto bytes = static_cast<double>(bytes_queued_.load(std::memory_order_relaxed));
    load = std::max(load, bytes / static_cast<double>(settings_.bytes_max));
  }
  return load;
}

PublishResult BusCore::publish(FrameMaker maker, std::optional<TimePoint> deadline) {
  PublishResult result;
  Offer offer(maker, result);
  offer.terms.load = load_from_outside();
  offer.terms.late = deadline && settings_.clock->now() >= *deadline;
  offer.terms.plain = offer.terms.load == 0 && !offer.terms.late;
  roll_health();
  if (!is_stuck_.load(std::memory_order_relaxed)) offer.make_frame();
  Step step = Step::needs_frame;
  while (step == Step::needs_frame) {
    {
      const PublisherGate::Pass pass(gate_);
      step = try_publish(offer);
    }
    if (FrameNode* garbage = offer.take_garbage()) destroy(garbage);
    if (step == Step::needs_frame) offer.make_frame();
  }
  if (step == Step::waits) await_room(offer, deadline.value_or(TimePoint::max()));
  return result;
}

BusCore::Step BusCore::try_publish(Offer& offer) {
  Word word = word_.load(std::memory_order_seq_cst);
  for (;; word = word_.load(std::memory_order_seq_cst)) {
    if (is_closed(word)) {
      offer.result.closed = true;
      return Step::done;
    }
    Roster& roster = roster_of(word);
    const std::uint64_t tail = tail_of(word);
    const bool plain = offer.terms.plain;
    if (plain && roster.stuck_at.load(std::memory_order_acquire) == tail &&
        roster.stuck_counted.load(std::memory_order_relaxed) == roster.counted()) {
      roster.dropped_for_all.fetch_add(1, std::memory_order_relaxed);
      offer.result.dropped = roster.size();
      return Step::done;
    }
    if (offer.frame() == nullptr) return Step::needs_frame;

    Verdict judged;
    const bool calm = plain && tail < roster.calm_until.load(std::memory_order_relaxed);
    if (!calm) judged = roster.judge(tail, offer.terms);
    const Verdict& verdict = calm ? roster.calm_verdict() : judged;
    // What is not plain may begin to shed, and that ends the calm.
    if (judged.calm_until != 0 || !plain)
      roster.calm_until.store(judged.calm_until, std::memory_order_relaxed);
    if (verdict.taker_count + verdict.waiter_count == 0) {
      drop_for_all(roster, tail, verdict, plain);
      offer.result.dropped = roster.size();
      return Step::done;
    }
    if (tail >= lap_horizon_.load(std::memory_order_acquire)) {
      make_room_in_log(roster, tail);
      continue;
    }
    const bool evicts = !calm && judged.evictions.any();
    if (evicts) offer.plan_evictions(roster, judged.evictions, tail);
    if (!word_.compare_exchange_strong(word, word + 1, std::memory_order_seq_cst)) continue;
    const bool all_take = verdict.taker_count == roster.size();
    if (!all_take) give_back(roster, verdict);
    if (evicts) evict(roster, tail, verdict, offer);
    write(tail, verdict, roster, offer);
    if (!all_take) ring_for_places(roster, verdict.takers, tail + 1);
    offer.result.sent = verdict.taker_count;
    offer.result.dropped = roster.size() - verdict.taker_count - verdict.waiter_count;
    if (verdict.waiter_count == 0) return Step::done;
    offer.waiters = verdict.waiters;
    offer.position = tail;
    return Step::waits;
  }
}

void BusCore::drop_for_all(Roster& roster, std::uint64_t tail, const Verdict& verdict, bool plain) {
  roster.dropped_for_all.fetch_add(1, std::memory_order_relaxed);
  if (!plain) return;
  // As long as tail and counts stay, so does the verdict.
  roster.stuck_counted.store(verdict.counted, std::memory_order_relaxed);
  roster.stuck_at.store(tail, std::memory_order_release);
  is_stuck_.store(true, std::memory_order_relaxed);
}

void BusCore::evict(const Roster& roster, std::uint64_t position, const Verdict& verdict,
                    Offer& offer) {
  verdict.evictions.for_each([&](std::size_t seat) {
    Subscriber* subscriber = roster.member_at(seat, position);
    const auto drop = [&](FrameNode* frame) { offer.drop_later(taken(frame)); };
    while (!subscriber->evict(position, offer.pops_needed(seat), drop))
      StdAtomics::yield();
  });
}

void BusCore::make_room_in_log(const Roster& roster, std::uint64_t tail) {
  const std::uint64_t target = tail - FrameLog::kSlots / 2;
  await_published(target);
  roster.spill(target);
  const std::uint64_t horizon = target + FrameLog::kSlots;
  std::uint64_t known = lap_horizon_.load(std::memory_order_relaxed);
  while (known < horizon &&
         !lap_horizon_.compare_exchange_weak(known, horizon, std::memory_order_seq_cst)) {
  }
}

void BusCore::await_published(std::uint64_t end) {
  std::uint64_t position = published_until_.load(std::memory_order_acquire);
  if (position >= end) return;
  for (; position < end; ++position) {
    while (!log_.is_published(position))
      StdAtomics::yield();
  }
  std::uint64_t known = published_until_.load(std::memory_order_relaxed);
  while (known < end &&
         !published_until_.compare_exchange_weak(known, end, std::memory_order_release)) {
  }
}

void BusCore::give_back(const Roster& roster, const Verdict& verdict) {
  for (const std::shared_ptr<Subscriber>& subscriber : roster.members()) {
    const std::size_t seat = subscriber->seat();
    if (verdict.takers.has(seat)) continue;
    if (verdict.waiters.has(seat)) {  // Not dropped yet.
      subscriber->passed.fetch_add(1, std::memory_order_relaxed);
      subscriber->pending.fetch_add(1, std::memory_order_relaxed);
    }
    subscriber->skipped.fetch_add(1, std::memory_order_seq_cst);
  }
}

void BusCore::ring_for_places(const Roster& roster, const SeatSet& takers, std::uint64_t tail) {
  if (!bell_.has_waiters()) [[likely]]
    return;
  for (const std::shared_ptr<Subscriber>& subscriber : roster.members()) {
    if (takers.has(subscriber->seat())) continue;
    if (subscriber->pending.load(std::memory_order_relaxed) == 0) continue;
    if (subscriber->fill(tail) >= subscriber->capacity()) continue;
    bell_.ring();
    return;
  }
}

void BusCore::write(std::uint64_t position, const Verdict& verdict, const Roster& roster,
                    Offer& offer) {
  FrameNode* frame = nullptr;
  if (verdict.taker_count > 0) {
    const auto count = static_cast<std::uint32_t>(verdict.taker_count);
    if (settings_.bytes_max > 0) bytes_queued_.fetch_add(offer.frame()->enter_queues(this, count));
    frame = offer.give(count, verdict.waiter_count == 0);
    if (is_stuck_.load(std::memory_order_relaxed))
      is_stuck_.store(false, std::memory_order_relaxed);
  }
  log_.write(position, frame, verdict.takers);
  if (verdict.taker_count > 0) chain_.wake(verdict.takers, roster.critical());
}

void BusCore::await_room(Offer& offer, TimePoint deadline) {
  Clock& clock = *settings_.clock;
  const TimePoint patience =
      std::min(saturating_add(clock.now(), settings_.critical_timeout), deadline);
  const RoomBell::Waiter waiter(bell_);
  for (;;) {
    const std::uint64_t ticket = bell_.ticket();
    const TimePoint now = clock.now();
    TimePoint limit = patience;
    {
      const PublisherGate::Pass pass(gate_);
      serve_waiters(offer);
      if (now >= patience) {
        drop_waiters(offer, now >= deadline || is_closed());
        limit = deadline;
      } else if (is_closed()) {
        drop_waiters(offer, true);
      }
    }
    if (!offer.waiters.any()) return;
    bell_.wait(ticket, clock, limit);
  }
}

void BusCore::forget_leavers(const Roster& roster, Offer& offer) {
  const SeatSet waiters = offer.waiters;
  waiters.for_each([&](std::size_t seat) {
    if (roster.member_at(seat, offer.position) != nullptr) return;
    offer.waiters.remove(seat);  // Counted as dropped when it left.
    ++offer.result.dropped;
  });
}

void BusCore::serve_waiters(Offer& offer) {
  for (;;) {
    Word word = word_.load(std::memory_order_seq_cst);
    const Roster& roster = roster_of(word);
    forget_leavers(roster, offer);
    if (is_closed(word)) return;
    const std::uint64_t tail = tail_of(word);
    Verdict verdict;
    offer.waiters.for_each([&](std::size_t seat) {
      const Subscriber* subscriber = roster.member_at(seat, offer.position);
      if (subscriber->fill(tail) >= subscriber->capacity()) return;
      verdict.takers.add(seat);
      ++verdict.taker_count;
    });
    if (verdict.taker_count == 0) return;
    if (tail >= lap_horizon_.load(std::memory_order_acquire)) {
      make_room_in_log(roster, tail);
      continue;
    }
    encores_.fetch_add(1, std::memory_order_relaxed);
    if (!word_.compare_exchange_strong(word, word + 1, std::memory_order_seq_cst)) {
      encores_.fetch_sub(1, std::memory_order_relaxed);
      continue;
    }
    for (const std::shared_ptr<Subscriber>& subscriber : roster.members()) {
      if (verdict.takers.has(subscriber->seat())) {
        subscriber->pending.fetch_sub(1, std::memory_order_relaxed);
        offer.waiters.remove(subscriber->seat());
      } else {
        subscriber->passed.fetch_add(1, std::memory_order_relaxed);
        subscriber->skipped.fetch_add(1, std::memory_order_seq_cst);
      }
    }
    verdict.waiter_count = offer.waiters.any() ? 1 : 0;  // Whether the frame is needed again.
    write(tail, verdict, roster, offer);
    ring_for_places(roster, verdict.takers, tail + 1);
    offer.result.sent += verdict.taker_count;
    return;
  }
}

void BusCore::drop_waiters(Offer& offer, bool blocking_ones_too) {
  const Roster& roster = roster_of(word_.load(std::memory_order_seq_cst));
  forget_leavers(roster, offer);
  const SeatSet waiters = offer.waiters;
  waiters.for_each([&](std::size_t seat) {
    Subscriber* subscriber = roster.member_at(seat, offer.position);
    if (subscriber->overflow() == Overflow::block && !blocking_ones_too) return;
    subscriber->passed.fetch_sub(1, std::memory_order_relaxed);
    subscriber->pending.fetch_sub(1, std::memory_order_relaxed);
    offer.waiters.remove(seat);
    ++offer.result.dropped;
  });
}

FrameNode* BusCore::taken(FrameNode* frame) {
  if (settings_.bytes_max > 0) bytes_queued_.fetch_sub(frame->leave_queue(this));
  return frame;
}

void BusCore::destroy(FrameNode* list) {
  while (list != nullptr) {
    FrameNode* next = list->next();
    list->destroy(list);
    list = next;
  }
}

FrameNode* BusCore::try_pop(Subscriber& subscriber) {
  const Subscriber::Taken found = subscriber.take(Subscriber::kNoLimit);
  if (found.frame == nullptr) return nullptr;
  bell_.ring();
  return taken(found.frame);
}

FrameNode* BusCore::pop(Subscriber& subscriber, TimePoint deadline) {
  for (int look = 0;; ++look) {
    if (FrameNode* frame = try_pop(subscriber)) return frame;
    if (subscriber.has_left()) return nullptr;
    const Word word = word_.load(std::memory_order_seq_cst);
    if (is_closed(word)) return pop_rest(subscriber, tail_of(word));
    if (look < StdAtomics::kYieldsBeforeSleep) {
      StdAtomics::yield();
      continue;
    }
    if (deadline != TimePoint::max() && settings_.clock->now() >= deadline) return nullptr;
    if (subscriber.may_have_frame(tail_of(word))) {
      StdAtomics::yield();
      continue;
    }
    chain_.doze(subscriber, *settings_.clock, deadline, [&] {
      const Word last = word_.load(std::memory_order_seq_cst);
      return is_closed(last) || subscriber.has_left() || subscriber.may_have_frame(tail_of(last));
    });
  }
}

FrameNode* BusCore::pop_rest(Subscriber& subscriber, std::uint64_t end) {
  for (;;) {
    const Subscriber::Taken found = subscriber.take(end);
    if (found.frame != nullptr) return taken(found.frame);
    if (!found.blocked) return nullptr;
    StdAtomics::yield();
  }
}

}  // namespace ordo::bus

#include "ordo/bus/roster.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ordo::bus {
namespace {

// 0.95 - 0.1 is 0.85, and 0.7 of 10 is 7, whatever binary fractions make of it.
constexpr double kEpsilon = 1e-9;

// A share of a capacity in frames.
std::uint32_t frames_at(double share, std::uint32_t capacity) {
  return static_cast<std::uint32_t>(std::floor(share * capacity + kEpsilon));
}

std::size_t index_of(Priority priority) {
  return static_cast<std::size_t>(priority) - 1;  // Critical has no watermark.
}

}  // namespace

Roster::Roster(Members members, Members leaving, const Settings& settings)
    : members_(std::move(members)),
      leaving_(std::move(leaving)),
      watermarks_(settings.watermarks),
      hysteresis_(settings.hysteresis),
      waits_for_critical_(settings.critical_timeout > std::chrono::nanoseconds::zero()) {
  std::stable_sort(members_.begin(), members_.end(), [](const auto& left, const auto& right) {
    return left->priority() < right->priority();
  });
  for (const std::shared_ptr<Subscriber>& subscriber : members_) {
    Member member;
    member.subscriber = subscriber.get();
    member.capacity = static_cast<std::uint32_t>(subscriber->capacity());
    for (std::size_t i = 0; i < kShedding; ++i) {
      member.above[i] = frames_at(watermarks_[i + 1], member.capacity);
      member.still[i] = frames_at(watermarks_[i + 1] - hysteresis_, member.capacity);
    }
    member.quiet = std::min(member.still[kShedding - 1], member.capacity - 1);
    member.seat = static_cast<std::uint8_t>(subscriber->seat());
    member.priority = subscriber->priority();
    member.overflow = subscriber->overflow();
    table_.push_back(member);
    calm_.takers.add(member.seat);
    if (member.priority == Priority::critical) critical_.add(member.seat);
  }
  calm_.taker_count = members_.size();
}

Roster::Heat Roster::heat_of(const Member& member, std::uint64_t fill) {
  Heat heat = 0;
  for (std::size_t i = 0; i < kShedding; ++i) {
    heat |= static_cast<Heat>(fill > member.above[i]) << i;
    heat |= static_cast<Heat>(fill > member.still[i]) << (i + kShedding);
  }
  return heat;
}

Roster::Heat Roster::heat_of(double load) const {
  Heat heat = 0;
  for (std::size_t i = 0; i < kShedding; ++i) {
    const double mark = watermarks_[i + 1] + kEpsilon;
    heat |= static_cast<Heat>(load > mark) << i;
    heat |= static_cast<Heat>(load > mark - hysteresis_) << (i + kShedding);
  }
  return heat;
}

// Also remembers it, for the hysteresis.
bool Roster::is_shed(const Member& member, Heat heat, bool late) {
  const std::size_t index = index_of(member.priority);
  std::atomic<bool>& shedding = member.subscriber->shedding;
  const bool was_shed = shedding.load(std::memory_order_relaxed);
  const bool is_above = ((heat >> index) & 1U) != 0;
  const bool is_still = ((heat >> (index + kShedding)) & 1U) != 0;
  const bool shed = is_above || (was_shed && is_still);
  if (shed != was_shed) shedding.store(shed, std::memory_order_relaxed);
  return shed || (late && ((heat >> (kShedding - 1)) & 1U) != 0);
}

void Roster::judge_member(const Member& member, Heat heat, bool full, const Terms& terms,
                          Verdict& verdict) const {
  const bool critical = member.priority == Priority::critical;
  if (!critical && is_shed(member, heat, terms.late)) return;
  if (full) {
    switch (member.overflow) {
      case Overflow::drop_newest:
        if (!critical || !waits_for_critical_ || terms.late) return;
        [[fallthrough]];
      case Overflow::block:
        if (terms.late) return;
        verdict.waiters.add(member.seat);
        ++verdict.waiter_count;
        return;
      case Overflow::drop_oldest:
      case Overflow::latest:
        verdict.evictions.add(member.seat);
        break;
    }
  }
  verdict.takers.add(member.seat);
  ++verdict.taker_count;
}

Verdict Roster::judge(std::uint64_t tail, const Terms& terms) const {
  Verdict verdict;
  Heat outranking = terms.load > 0 ? heat_of(terms.load) : 0;  // Of higher priorities.
  Heat peers = 0;                                              // Of the priority at hand.
  bool calm = terms.plain;
  std::uint64_t slack = FrameLog::kSlots;
  Priority priority = Priority::critical;
  for (const Member& member : table_) {
    if (member.priority != priority) {
      priority = member.priority;
      outranking |= std::exchange(peers, 0);
    }
    const std::uint64_t counted = member.subscriber->counted();
    const std::uint64_t fill = tail > counted ? tail - counted : 0;
    verdict.counted += counted;
    if (fill <= member.quiet) {
      slack = std::min(slack, member.quiet - fill);
      judge_member(member, outranking, false, terms, verdict);
      continue;
    }
    calm = false;
    const Heat own = heat_of(member, fill);
    const bool own_counts = member.overflow == Overflow::drop_newest;
    judge_member(member, own_counts ? outranking | own : outranking, fill >= member.capacity, terms,
                 verdict);
    if (member.overflow != Overflow::latest) peers |= own;
  }
  if (calm && outranking == 0) verdict.calm_until = tail + slack + 1;
  return verdict;
}

Subscriber* Roster::member_at(std::size_t seat, std::uint64_t position) const {
  for (const Member& member : table_) {
    if (member.seat != seat) continue;
    return member.subscriber->begin() <= position ? member.subscriber : nullptr;
  }
  return nullptr;
}

std::uint64_t Roster::counted() const {
  std::uint64_t sum = 0;
  for (const Member& member : table_)
    sum += member.subscriber->counted();
  return sum;
}

void Roster::spill(std::uint64_t target) const {
  for (const std::shared_ptr<Subscriber>& subscriber : members_)
    subscriber->spill(target);
  for (const std::shared_ptr<Subscriber>& subscriber : leaving_)
    subscriber->spill(target);
}

}  // namespace ordo::bus

#include "ordo/dispatcher/settings.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "ordo/core/hash.h"

namespace ordo::dispatcher {
namespace {

void require(bool condition, const std::string& message) {
  // tidy: allow(throw) as public constructors do
  if (!condition) throw std::invalid_argument(message);
}

void check_range(std::size_t value, const std::string& field, std::size_t most) {
  require(value >= 1 && value <= most, field + " is " + std::to_string(value) +
                                           "; it must be between 1 and " + std::to_string(most));
}

// The innermost CallingOut of this thread.
CallingOut*& innermost() {
  thread_local CallingOut* call = nullptr;
  return call;
}

}  // namespace

void check_settings(const Settings& settings) {
  check_range(settings.threads, "threads", kThreadsMax);
  require(settings.stripes == 0 ||
              (std::has_single_bit(settings.stripes) && settings.stripes <= kStripesMax),
          "stripes is " + std::to_string(settings.stripes) +
              "; it must be 0 (elastic) or a power of two up to " + std::to_string(kStripesMax));
  check_range(settings.max_queued_per_key, "max_queued_per_key", kQueuedMax);
  check_range(settings.max_queued, "max_queued", kQueuedMax);
  require(settings.idle_timeout.count() > 0, "idle_timeout is " +
                                                 std::to_string(settings.idle_timeout.count()) +
                                                 " ns; it must be above zero");
  require(settings.overflow <= Overflow::drop_oldest, "overflow is not one of its values");
  require(settings.gaps <= GapPolicy::wait, "gaps is not one of its values");
  require(settings.gaps != GapPolicy::wait ||
              (settings.max_queued_per_key >= 2 && settings.max_queued >= 2),
          "max_queued_per_key or max_queued is 1; with gaps that wait they must be at least 2, "
          "one of them for the event that closes the gap");
  if (!settings.retry.is_asked) return;
  require(settings.retry.retries >= 1 && settings.retry.retries <= kRetriesMax,
          "on_failure: retry() is given " + std::to_string(settings.retry.retries) +
              " retries; it must be between 1 and " + std::to_string(kRetriesMax));
  require(settings.retry.base.count() > 0 && settings.retry.base <= kBackOffMax,
          "on_failure: retry() is given a base of " + std::to_string(settings.retry.base.count()) +
              " ns; it must be above zero and at most an hour");
}

std::chrono::nanoseconds back_off(std::chrono::nanoseconds base, unsigned attempt,
                                  std::uint64_t random) {
  std::chrono::nanoseconds whole = base;
  for (unsigned i = 1; i < attempt && whole < kBackOffMax; ++i)
    whole *= 2;
  whole = std::min(whole, kBackOffMax);
  const std::int64_t half = whole.count() / 2;
  const auto spread = static_cast<std::uint64_t>(whole.count() - half) + 1;
  return std::chrono::nanoseconds(half + static_cast<std::int64_t>(random % spread));
}

std::uint64_t next_random(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  return mix64(state);
}

TimePoint later(TimePoint time, std::chrono::nanoseconds span) {
  return span > TimePoint::max() - time ? TimePoint::max() : time + span;
}

CallingOut::CallingOut(const void* owner) : owner_(owner), outer_(innermost()) {
  innermost() = this;
}

CallingOut::~CallingOut() {
  innermost() = outer_;
}

bool CallingOut::is_for(const void* owner) {
  for (const CallingOut* call = innermost(); call != nullptr; call = call->outer_) {
    if (call->owner_ == owner) return true;
  }
  return false;
}

}  // namespace ordo::dispatcher

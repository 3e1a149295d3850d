#include "ordo/runtime/atomics.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <sched.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "ordo/core/check.h"

namespace ordo {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

namespace {

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  return ::syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, timeout, nullptr, 0);
}

StdAtomics::FutexWait wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                           const timespec* timeout) {
  if (futex(word, FUTEX_WAIT, expected, timeout) == 0) return StdAtomics::FutexWait::woken;
  if (errno == ETIMEDOUT) return StdAtomics::FutexWait::timed_out;
  if (errno == EINTR) return StdAtomics::FutexWait::woken;  // A signal: the caller looks again.
  ORDO_CHECK(errno == EAGAIN);
  return StdAtomics::FutexWait::changed;
}

}  // namespace

StdAtomics::FutexWait StdAtomics::futex_wait(Atomic<std::uint32_t>& word, std::uint32_t expected) {
  return wait(word, expected, nullptr);
}

StdAtomics::FutexWait StdAtomics::futex_wait_for(Atomic<std::uint32_t>& word,
                                                 std::uint32_t expected,
                                                 std::chrono::nanoseconds timeout) {
  const auto nanoseconds = std::max(timeout, std::chrono::nanoseconds(0)).count();
  constexpr std::int64_t kSecond = 1'000'000'000;
  timespec relative{};
  relative.tv_sec = static_cast<decltype(relative.tv_sec)>(nanoseconds / kSecond);
  relative.tv_nsec = static_cast<decltype(relative.tv_nsec)>(nanoseconds % kSecond);
  return wait(word, expected, &relative);
}

void StdAtomics::futex_wake(Atomic<std::uint32_t>& word, std::uint32_t count) {
  const auto limit = std::min(count, static_cast<std::uint32_t>(INT_MAX));
  ORDO_CHECK(futex(word, FUTEX_WAKE, limit, nullptr) >= 0);
}

void StdAtomics::yield() {
  ::sched_yield();
}

}  // namespace ordo

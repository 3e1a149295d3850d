// StdAtomics: the atomics policy of the lock-free pieces, as the program runs them.
//
// EventCount, SpscRing and MpscRing take their atomics, fences, futex and pauses from a policy, so
// that the very same code runs under tests/support/schedule_explorer.h, which tries every
// interleaving of small cases, with and without store buffers.
//
// Threads: any.
// Cost:    none over std::atomic; a futex call is a system call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "ordo/runtime/asymmetric_fence.h"

namespace ordo {

// Two words used by different threads stand this far apart. std::hardware_destructive_
// interference_size may differ between translation units; this may not.
inline constexpr std::size_t kCacheLineBytes = 64;

struct StdAtomics {
  template <class T>
  using Atomic = std::atomic<T>;

  static void light_fence() { ordo::light_fence(); }
  static void heavy_fence() { ordo::heavy_fence(); }

  enum class FutexWait : std::uint8_t { woken, changed, timed_out };

  // Sleeps until a futex_wake() of `word`; `changed` at once when it does not hold `expected`.
  static FutexWait futex_wait(Atomic<std::uint32_t>& word, std::uint32_t expected);
  static FutexWait futex_wait_for(Atomic<std::uint32_t>& word, std::uint32_t expected,
                                  std::chrono::nanoseconds timeout);

  // Wakes up to `count` threads that sleep on `word`.
  static void futex_wake(Atomic<std::uint32_t>& word, std::uint32_t count);

  // One turn of a loop that waits for another thread: let the sibling core run; let others run.
  static void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
  }
  static void pause(int times) {
    for (int i = 0; i < times; ++i)
      pause();
  }
  static void yield();

  // How often a blocking wait looks again before it sleeps: first pausing, then yielding.
  static constexpr int kPausesBeforeSleep = 64;
  static constexpr int kYieldsBeforeSleep = 16;
};

}  // namespace ordo

#include "ordo/runtime/asymmetric_fence.h"

#include <unistd.h>

#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "ordo/core/check.h"

namespace ordo {

namespace fence_detail {
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a fact about the kernel.
constinit std::atomic<bool> light_is_free{false};
}  // namespace fence_detail

namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kMembarrierWanted = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool kMembarrierWanted = false;
#else
constexpr bool kMembarrierWanted = true;
#endif
#else
constexpr bool kMembarrierWanted = true;
#endif

bool membarrier(int command) {
  return ::syscall(SYS_membarrier, command, 0, 0) == 0;
}

bool register_process() {
  if (!kMembarrierWanted) return false;
  if (!membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) return false;
  fence_detail::light_is_free.store(true, std::memory_order_release);
  return true;
}

// heavy_fence() never falls back to a plain barrier once registration succeeded, so a thread that
// already trusts light_is_free is always covered, whatever the order of start-up.
bool registered() {
  static const bool kRegistered = register_process();
  return kRegistered;
}

[[maybe_unused]] const bool kRegisteredAtStart = registered();

}  // namespace

void heavy_fence() {
  if (!registered()) {
    fence_detail::full_barrier();
    return;
  }
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) [[likely]] {
    return;
  }
  // A child made by fork() may have to register again.
  ORDO_CHECK(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED));
  ORDO_CHECK(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}

bool light_fence_is_free() {
  return fence_detail::light_is_free.load(std::memory_order_relaxed);
}

}  // namespace ordo

#include "tests/support/fiber.h"

#include <utility>

#include "ordo/core/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace ordo::test {

namespace {
// makecontext() passes no pointer.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local Fiber* entering = nullptr;
}  // namespace

void Fiber::start(std::function<void()> body) {
  body_ = std::move(body);
  entered_ = false;
  finished_ = false;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_.data(), stack_.size());
#endif
  ::getcontext(&beginning_);
  beginning_.uc_stack.ss_sp = stack_.data();
  beginning_.uc_stack.ss_size = stack_.size();
  beginning_.uc_link = nullptr;
  ::makecontext(&beginning_, &Fiber::enter, 0);
}

void Fiber::enter() {
  Fiber& self = *entering;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self.resumer_stack_, &self.resumer_stack_bytes_);
#endif
  self.body_();
  self.finished_ = true;
  self.suspend();
}

void Fiber::resume() {  // Needs no local variable after the jump but `this`.
  ORDO_CHECK(!finished_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&resumer_fake_stack_, stack_.data(), stack_.size());
#endif
  if (_setjmp(resumer_place_) == 0) {
    if (entered_) _longjmp(own_place_, 1);
    entered_ = true;
    entering = this;
    ::setcontext(&beginning_);
  }
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(resumer_fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::suspend() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&own_fake_stack_, resumer_stack_, resumer_stack_bytes_);
#endif
  if (_setjmp(own_place_) == 0) _longjmp(resumer_place_, 1);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(own_fake_stack_, &resumer_stack_, &resumer_stack_bytes_);
#endif
}

}  // namespace ordo::test

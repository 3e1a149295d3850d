// Fiber: a call that can stop in the middle and go on later, on the caller's thread.
//
//   Fiber fiber;
//   fiber.start([&] { first(); fiber.suspend(); second(); });
//   fiber.resume();   // first()
//   fiber.resume();   // second(); fiber.finished()
//   fiber.start(...); // again; a call that has not finished is dropped without unwinding its stack
//
// Threads: one; a fiber is resumed by the thread that started it.
// Bounds:  kStackBytes of stack.
// Cost:    a jump for a switch; system calls only to start.
#pragma once

#include <cstddef>
#include <functional>
#include <setjmp.h>
#include <ucontext.h>
#include <vector>

namespace ordo::test {

class Fiber {
 public:
  static constexpr std::size_t kStackBytes = 64 * 1024;

  Fiber() : stack_(kStackBytes) {}
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void start(std::function<void()> body);

  // Runs the body until it suspends or ends. REQUIRES: started, not finished, not inside a fiber.
  void resume();

  // Goes back to the one who resumed. REQUIRES: inside this fiber's body.
  void suspend();

  bool finished() const { return finished_; }

 private:
  static void enter();

  std::vector<std::byte> stack_;
  std::function<void()> body_;
  ucontext_t beginning_{};
  jmp_buf own_place_{};      // Where it stopped.
  jmp_buf resumer_place_{};  // Who resumed it.
  bool entered_ = false;
  bool finished_ = false;
  // For the address sanitizer, which must know on which stack the thread is.
  void* own_fake_stack_ = nullptr;
  void* resumer_fake_stack_ = nullptr;
  const void* resumer_stack_ = nullptr;
  std::size_t resumer_stack_bytes_ = 0;
};

}  // namespace ordo::test

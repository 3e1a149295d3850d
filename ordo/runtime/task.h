// Task: a call to make once, later, maybe elsewhere. Like std::function<void()>, but moves only, so
// that it can carry what cannot be copied, and small ones need no memory of their own.
//
//   Task task([reply = std::move(reply)]() mutable { reply.send(); });
//   task();
//
// Threads: one owner at a time.
// Bounds:  kInlineBytes of captures without allocation; more take one allocation.
// Cost:    a call through a pointer.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "ordo/core/check.h"

namespace ordo {

class Task {
 public:
  static constexpr std::size_t kInlineBytes = 48;

  Task() = default;

  template <class Function>
  requires(!std::is_same_v<std::remove_cvref_t<Function>, Task> &&
           std::is_invocable_v<std::remove_cvref_t<Function>&>) Task(Function&& function) {
    using Stored = std::remove_cvref_t<Function>;
    if constexpr (fits_inline<Stored>()) {
      ::new (static_cast<void*>(bytes_)) Stored(std::forward<Function>(function));
      actions_ = &kInline<Stored>;
    } else {
      using Pointer = std::unique_ptr<Stored>;
      ::new (static_cast<void*>(bytes_))
          Pointer(std::make_unique<Stored>(std::forward<Function>(function)));
      actions_ = &kOutside<Stored>;
    }
  }

  Task(Task&& other) noexcept { take(other); }
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~Task() { reset(); }

  explicit operator bool() const { return actions_ != nullptr; }

  // REQUIRES: it holds a call.
  void operator()() {
    ORDO_CHECK(actions_ != nullptr);
    actions_->call(bytes_);
  }

  void reset() {
    if (actions_ != nullptr) std::exchange(actions_, nullptr)->destroy(bytes_);
  }

 private:
  struct Actions {
    void (*call)(void*);
    void (*move)(void* from, void* to);  // Leaves nothing at `from`.
    void (*destroy)(void*);
  };

  template <class Stored>
  static constexpr bool fits_inline() {
    return sizeof(Stored) <= kInlineBytes && alignof(Stored) <= alignof(void*) &&
           std::is_nothrow_move_constructible_v<Stored>;
  }

  template <class Stored>
  static Stored& at(void* bytes) {
    return *std::launder(static_cast<Stored*>(bytes));
  }

  template <class Stored>
  static void move_to(void* from, void* to) {
    ::new (to) Stored(std::move(at<Stored>(from)));
    std::destroy_at(&at<Stored>(from));
  }

  template <class Stored>
  static constexpr Actions kInline = {
      [](void* bytes) { at<Stored>(bytes)(); },
      &move_to<Stored>,
      [](void* bytes) { std::destroy_at(&at<Stored>(bytes)); },
  };

  template <class Stored>
  static constexpr Actions kOutside = {
      [](void* bytes) { (*at<std::unique_ptr<Stored>>(bytes))(); },
      &move_to<std::unique_ptr<Stored>>,
      [](void* bytes) { std::destroy_at(&at<std::unique_ptr<Stored>>(bytes)); },
  };

  void take(Task& other) noexcept {
    if (other.actions_ == nullptr) return;
    other.actions_->move(other.bytes_, bytes_);
    actions_ = std::exchange(other.actions_, nullptr);
  }

  const Actions* actions_ = nullptr;
  alignas(void*) std::byte bytes_[kInlineBytes];
};

}  // namespace ordo

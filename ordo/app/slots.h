// Slots: numbers from 1 on for jobs that run at the same time; the lowest free one is taken.
//
//   const Slots::Taken slot = slots.take();
//   run(slot.number());  // given back at the end of the scope
//
// Threads: any thread may call take() and end a Taken.
// Bounds:  as many numbers as were ever taken at once.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <queue>
#include <vector>

namespace ordo::app {

class Slots {
 public:
  class Taken {
   public:
    Taken(Slots& slots, std::size_t number) : slots_(slots), number_(number) {}
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    ~Taken() { slots_.give_back(number_); }

    std::size_t number() const { return number_; }

   private:
    Slots& slots_;
    std::size_t number_;
  };

  Taken take() {
    const std::lock_guard lock(mutex_);
    std::size_t number = last_ + 1;
    if (free_.empty()) {
      last_ = number;
    } else {
      number = free_.top();
      free_.pop();
    }
    return {*this, number};
  }

 private:
  void give_back(std::size_t number) {
    const std::lock_guard lock(mutex_);
    free_.push(number);
  }

  std::mutex mutex_;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free_;
  std::size_t last_ = 0;
};

}  // namespace ordo::app

#include "ordo/bus/subscriber.h"

#include <utility>

#include "ordo/core/check.h"

namespace ordo::bus {

Subscriber::Subscriber(std::string id, Priority priority, const SubscribeOptions& options,
                       std::size_t seat, const FrameLog& log)
    : id_(std::move(id)),
      priority_(priority),
      overflow_(options.overflow),
      capacity_(options.overflow == Overflow::latest ? 1 : options.capacity),
      seat_(seat),
      log_(log),
      backlog_(std::make_unique<FrameNode*[]>(capacity_)) {}

void Subscriber::begin_at(std::uint64_t tail) {
  std::lock_guard lock(lock_);
  cursor_.store(tail, std::memory_order_release);
  begin_.store(tail, std::memory_order_relaxed);
  skipped.store(tail, std::memory_order_relaxed);
}

bool Subscriber::seek(std::uint64_t limit, bool* blocked) {
  std::uint64_t position = cursor_.load(std::memory_order_relaxed);
  bool found = false;
  while (position < limit) {
    if (!log_.is_published(position)) {
      if (blocked != nullptr) *blocked = true;
      break;
    }
    if (log_.has(position, seat_)) {
      found = true;
      break;
    }
    ++position;
  }
  if (position != cursor_.load(std::memory_order_relaxed))
    cursor_.store(position, std::memory_order_release);
  return found;
}

FrameNode* Subscriber::take_oldest(std::uint64_t limit, bool* blocked) {
  FrameNode* frame = nullptr;
  if (backlog_count_ > 0) {
    frame = backlog_[backlog_first_];
    backlog_first_ = (backlog_first_ + 1) % capacity_;
    --backlog_count_;
  } else if (seek(limit, blocked)) {
    const std::uint64_t position = cursor_.load(std::memory_order_relaxed);
    frame = log_.frame(position);
    cursor_.store(position + 1, std::memory_order_release);
  } else {
    return nullptr;
  }
  popped.store(popped.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  return frame;
}

Subscriber::Taken Subscriber::take(std::uint64_t limit) {
  std::lock_guard lock(lock_);
  Taken taken;
  if (has_left()) return taken;
  taken.frame = take_oldest(limit, &taken.blocked);
  return taken;
}

bool Subscriber::may_have_frame(std::uint64_t tail) {
  std::lock_guard lock(lock_);
  if (has_left()) return false;
  bool blocked = false;
  return backlog_count_ > 0 || seek(tail, &blocked) || blocked;
}

void Subscriber::spill(std::uint64_t target) {
  if (cursor_.load(std::memory_order_acquire) >= target) return;
  std::lock_guard lock(lock_);
  while (seek(target, nullptr)) {
    ORDO_CHECK(backlog_count_ < capacity_);
    const std::uint64_t position = cursor_.load(std::memory_order_relaxed);
    backlog_[(backlog_first_ + backlog_count_) % capacity_] = log_.frame(position);
    ++backlog_count_;
    cursor_.store(position + 1, std::memory_order_release);
  }
}

void Subscriber::leave() {
  std::lock_guard lock(lock_);
  left_.store(true, std::memory_order_release);
}

}  // namespace ordo::bus

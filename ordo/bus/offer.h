// Offer: one frame on its way through publish(): made when first needed, owned until given away.
//
// Threads: one owner.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "ordo/bus/core.h"

namespace ordo::bus {

class BusCore::Offer {
 public:
  Offer(FrameMaker maker, PublishResult& given_result) : result(given_result), maker_(maker) {}
  ~Offer() {
    if (frame_ != nullptr && frame_->drop_owner()) frame_->destroy(frame_);
  }
  Offer(const Offer&) = delete;
  Offer& operator=(const Offer&) = delete;

  FrameNode* frame() const { return frame_; }
  void make_frame() {
    if (frame_ == nullptr) frame_ = maker_.make(maker_.context);
  }

  // The frame gets `count` more owners; `last` says that the offer does not need it any more.
  FrameNode* give(std::size_t count, bool last) {
    FrameNode* frame = frame_;
    const auto more = static_cast<std::uint32_t>(last ? count - 1 : count);
    if (more != 0) frame->add_owners(more);
    if (last) frame_ = nullptr;
    return frame;
  }

  // A frame that lost its last owner inside the gate is destroyed outside: that is users' code.
  void drop_later(FrameNode* frame) {
    if (!frame->drop_owner()) return;
    frame->set_next(garbage_);
    garbage_ = frame;
  }
  FrameNode* take_garbage() { return std::exchange(garbage_, nullptr); }

  // Notes what has to go from full queues before the frame of `tail` is written there.
  void plan_evictions(const Roster& roster, const SeatSet& seats, std::uint64_t tail) {
    seats.for_each([&](std::size_t seat) {
      pops_needed_[seat] = roster.member_at(seat, tail)->pops_needed(tail);
    });
  }
  // REQUIRES: it was noted.
  std::uint64_t pops_needed(std::size_t seat) const { return pops_needed_[seat]; }

  Terms terms{};
  PublishResult& result;
  // Set when publish() has to wait.
  SeatSet waiters{};
  std::uint64_t position = 0;  // Where the others got it.

 private:
  FrameMaker maker_;
  FrameNode* frame_ = nullptr;
  FrameNode* garbage_ = nullptr;
  std::array<std::uint64_t, kSubscribersMax> pops_needed_;  // By seat; last, since rarely used.
};

}  // namespace ordo::bus

// HealthWindow: which share of the frames offered lately was dropped, without a clock per frame.
//
// Keeps what the lifetime counters were when a bucket of time began, for the buckets of one window.
// Whoever publishes first in a new bucket notes them; nobody counts twice.
//
//   window.note(bucket, {.offered = 900, .dropped = 20});          // at the start of a bucket
//   Health health = window.judge(bucket_now, {.offered = 1000, .dropped = 25});
//
// Threads: one owner at a time.
// Bounds:  kBuckets + 1 notes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ordo/bus/options.h"

namespace ordo::bus {

class HealthWindow {
 public:
  static constexpr std::int64_t kBuckets = 20;

  struct Counts {
    std::uint64_t offered = 0;
    std::uint64_t dropped = 0;
  };

  // What the counters were before the first frame of `bucket`; a second note of it is left out.
  void note(std::int64_t bucket, Counts counts) {
    Note& last = notes_[static_cast<std::size_t>(next_ + kNotes - 1) % kNotes];
    if (last.bucket == bucket) return;
    notes_[next_] = {bucket, counts};
    next_ = (next_ + 1) % kNotes;
  }

  // From the buckets of one window that ends with `bucket`.
  Health judge(std::int64_t bucket, Counts now) const {
    const Note* first = nullptr;
    for (const Note& note : notes_) {
      if (note.bucket <= bucket - kBuckets || note.bucket > bucket) continue;
      if (first == nullptr || note.bucket < first->bucket) first = &note;
    }
    if (first == nullptr || now.offered <= first->counts.offered) return Health::unknown;
    const std::uint64_t offered = now.offered - first->counts.offered;
    const std::uint64_t dropped =
        now.dropped > first->counts.dropped ? now.dropped - first->counts.dropped : 0;
    if (dropped * 2 < offered) return Health::healthy;
    return dropped * 10 < offered * 9 ? Health::degraded : Health::saturated;
  }

 private:
  static constexpr std::size_t kNotes = static_cast<std::size_t>(kBuckets) + 1;
  static constexpr std::int64_t kNever = INT64_MIN;

  struct Note {
    std::int64_t bucket = kNever;
    Counts counts{};
  };

  std::array<Note, kNotes> notes_{};
  std::size_t next_ = 0;
};

}  // namespace ordo::bus

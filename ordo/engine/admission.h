// TaskAdmission: decides at once, exactly, and for any thread who may come into a partition.
//
//   Entry entry = admission.enter(id, hash, [&] { ring.push(std::move(task)); });
//   ...
//   admission.leave(ended_ids);                     // at the end of a loop turn, all at once
//
// One budget covers a task from here until its partition has done with it, wherever it is in
// between; so whatever holds a partition's tasks needs room for `budget` of them and never
// overflows. The order of entry is the order under the lock of this class.
//
// Threads: any, all calls. The lock is a leaf; what runs under it is a move of the task.
// Bounds:  `budget` tasks, `per_id` of one correlation id.
// Cost:    a short lock and one place of a table for each enter(); one lock for each leave().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "ordo/core/counter.h"
#include "ordo/core/hash.h"
#include "ordo/engine/id_counts.h"
#include "ordo/engine/options.h"
#include "ordo/runtime/short_lock.h"

namespace ordo::engine {

struct AdmissionCounts {
  std::size_t present = 0;  // Admitted and not done with.
  std::uint64_t admitted = 0;
  std::uint64_t busy = 0;
  std::uint64_t id_busy = 0;
  std::uint64_t closing = 0;
};

class alignas(kCacheLineBytes) TaskAdmission {
 public:
  TaskAdmission(std::size_t budget, std::size_t per_id)
      : budget_(budget),
        per_id_(per_id),
        counts_(budget) {}

  // Calls take() under the lock if the task is admitted. Ids up to zero have no limit of their own.
  // A refusal is counted by refuse(), once it is final.
  // REQUIRES: hash == hash_of(id); take() does not throw, block or call out.
  template <class Take>
  Entry enter(CorrelationId id, std::uint64_t hash, Take&& take) {
    const std::lock_guard lock(lock_);
    if (closed_) [[unlikely]]
      return Entry::closing;
    if (present_ >= budget_) [[unlikely]]
      return Entry::busy;
    if (id > 0 && !counts_.try_add(id, hash, per_id_)) [[unlikely]]
      return Entry::id_busy;
    ++present_;
    admitted_.add();
    take();
    return Entry::admitted;
  }

  // Counts a task that was not admitted. REQUIRES: the entry is a refusal.
  void refuse(Entry entry) {
    const std::lock_guard lock(lock_);
    (entry == Entry::busy ? busy_ : entry == Entry::id_busy ? id_busy_ : closing_).add();
  }

  // The partition has done with these.
  void leave(const std::vector<CorrelationId>& ids) {
    const std::lock_guard lock(lock_);
    if (abandoned_) return;
    for (const CorrelationId id : ids) {
      if (id > 0) counts_.remove(id, hash_of(id));
    }
    present_ -= ids.size();
  }

  // Nobody comes in any more.
  void close() {
    const std::lock_guard lock(lock_);
    closed_ = true;
  }

  // Forgets who is in; leave() does nothing any more.
  void abandon() {
    const std::lock_guard lock(lock_);
    closed_ = true;
    abandoned_ = true;
    present_ = 0;
  }

  bool closed_and_empty() const {
    const std::lock_guard lock(lock_);
    return closed_ && present_ == 0;
  }

  AdmissionCounts counts() const {
    const std::lock_guard lock(lock_);
    return {present_, admitted_.value(), busy_.value(), id_busy_.value(), closing_.value()};
  }

 private:
  mutable ShortLock lock_;  // Guards all below.
  bool closed_ = false;
  bool abandoned_ = false;
  const std::size_t budget_;
  const std::size_t per_id_;
  std::size_t present_ = 0;
  IdCounts counts_;
  Counter admitted_;
  Counter busy_;
  Counter id_busy_;
  Counter closing_;
};

}  // namespace ordo::engine

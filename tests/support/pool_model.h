// PoolModel: what a Pool must show, computed one event at a time, without threads.
//
// The test tells the model what it did (admitted an input, let a handler return, moved the clock,
// took an output) and asks what must be true of the pool once that has sunk in. Where a pool is
// free, the model gives bounds: without total order it may hold back an empty result behind
// outputs that nobody takes, or not.
//
//   PoolModel model(plan, now);
//   model.admit(now);  model.start(0, now);  model.leave(0, {.outs = 2}, now);
//   EXPECT_EQ(model.take(0, 0, now), "");   // empty: that output was due
//
// Threads: one owner.
// Bounds:  keeps every item of a run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ordo/core/clock.h"

namespace ordo::testing_support {

enum class PoolMode { ordered, unordered, keyed };

// How a handler shall return.
struct Verdict {
  int thrown = 0;        // 0: returns; otherwise the type of what it throws.
  std::size_t outs = 0;  // Outputs, when it returns.
  bool dropped = false;  // The item has timed out or was skipped: its result is not wanted.
};

struct PoolPlan {
  PoolMode mode = PoolMode::ordered;
  std::size_t workers = 1;
  std::size_t window = 1;
  std::size_t buffer = 0;
  bool emit = false;
  bool fail_stop = false;
  bool scaled = false;  // Workers come and go.
  std::optional<std::chrono::nanoseconds> process_timeout;
  std::optional<std::chrono::nanoseconds> order_timeout;
  std::uint64_t key_count = 1;
};

enum class Ending { drain, stop, destroy };

// A plan and how it is driven, all of it chosen by `random`.
struct PoolSchedule : PoolPlan {
  explicit PoolSchedule(std::mt19937_64& random) {
    const auto up_to = [&](std::uint64_t limit) { return random() % limit; };
    mode = static_cast<PoolMode>(up_to(3));
    workers = 1 + up_to(8);
    window = up_to(4) == 0 ? 1 + up_to(3) : 1 + up_to(64);
    buffer = up_to(2) == 0 ? 0 : up_to(6);
    emit = up_to(3) == 0;
    fail_stop = up_to(8) == 0;
    key_count = 1 + up_to(6);
    scaled = up_to(3) == 0;
    if (!scaled && up_to(2) == 0)
      process_timeout = std::chrono::nanoseconds(20'000 + up_to(200'000));
    if (mode == PoolMode::ordered && up_to(2) == 0) {
      order_timeout = std::chrono::nanoseconds(20'000 + up_to(300'000));
    }
    workers_max = scaled ? workers + up_to(9 - workers) : workers;
    item_count = 4 + up_to(44);
    failures = up_to(3) == 0 ? 0 : up_to(50);
    ending = up_to(5) == 0 ? Ending::destroy : up_to(3) == 0 ? Ending::stop : Ending::drain;
    step_limit = ending == Ending::drain ? ~0u : 5 + up_to(4 * item_count);
  }

  std::size_t workers_max = 1;
  std::size_t item_count = 1;
  std::uint64_t failures = 0;  // In a hundred.
  Ending ending = Ending::drain;
  std::uint64_t step_limit = 0;
};

class PoolModel {
 public:
  using Output = std::pair<std::uint64_t, std::size_t>;  // Input and index.
  enum class Stage { queued, inside, returned };

  struct Item {
    std::uint64_t key = 0;
    Stage stage = Stage::queued;
    bool complete = false;  // Returned, timed out or skipped.
    bool failed = false;
    bool late = false;
    bool released = false;
    std::size_t outs = 0;
    std::size_t moved = 0;  // Outputs that have left the window.
    std::size_t taken = 0;
    TimePoint started;
    bool finished() const { return complete && taken == outs; }
  };

  explicit PoolModel(const PoolPlan& plan) : plan_(plan) {}

  const std::vector<Item>& items() const { return items_; }
  std::size_t inside() const { return inside_; }
  std::size_t late_count() const { return late_count_; }
  std::size_t taken_count() const { return taken_count_; }
  // In emit mode with total order: all that must have been emitted by now.
  const std::vector<Output>& emitted() const { return emitted_; }
  std::uint64_t head() const { return head_; }
  // Whether `index` may be called the head of the line: the first input that has not left the
  // window or, when it waits for pop, the first one with an output that nobody has taken.
  bool is_head(std::uint64_t index, bool waits_for_pop) const {
    return index == head_ || (waits_for_pop && next_ordered() == index);
  }
  // fail_stop has ended the pool, or (without total order) may have.
  bool ended() const { return ended_; }

  // fail_stop will end the pool: inputs behind the failed one need not be started any more.
  bool is_doomed() const { return plan_.fail_stop && failed_count().second > 0; }

  void admit(TimePoint now) {
    Item item;
    item.key = items_.size() % plan_.key_count;
    items_.push_back(item);
    if (items_.size() - 1 == head_) head_since_ = now;
  }

  // Returns why the item must not have started, or nothing.
  std::string start(std::uint64_t index, TimePoint now) {
    if (index >= items_.size()) return "started before it was admitted";
    Item& item = items_[index];
    if (item.stage != Stage::queued) return "started twice";
    // A worker that was just added may have taken it before it was skipped.
    if (item.late && !plan_.scaled) return "started although it was skipped";
    if (plan_.mode == PoolMode::keyed) {
      for (std::uint64_t other = 0; other < items_.size(); ++other) {
        if (other == index || items_[other].key != item.key) continue;
        if (items_[other].stage == Stage::inside) return "overlaps with another of its key";
        if (other < index && items_[other].stage == Stage::queued) return "overtook its key";
      }
    }
    item.stage = Stage::inside;
    item.started = now;
    ++inside_;
    return "";
  }

  void leave(std::uint64_t index, const Verdict& verdict, TimePoint now) {
    Item& item = items_[index];
    item.stage = Stage::returned;
    --inside_;
    if (item.complete) return;  // Timed out or skipped before.
    complete(item, verdict.thrown != 0, verdict.thrown != 0 ? 0 : verdict.outs);
    pump(now);
  }

  // The next moment at which a timeout acts, or nothing.
  std::optional<TimePoint> next_deadline() const {
    std::optional<TimePoint> next = order_deadline();
    for (const Item& item : items_) {
      const auto deadline = process_deadline(item);
      if (deadline && (!next || *deadline < *next)) next = deadline;
    }
    return next;
  }

  // Both timeouts of the head act at one moment: the pool may choose either.
  bool head_is_tied() const {
    const auto deadline = order_deadline();
    return deadline && process_deadline(items_[head_]) == deadline;
  }

  // A handler has returned, but the test cannot see that the pool knows: its time must not end yet.
  bool is_unsafe(TimePoint target) const {
    return plan_.process_timeout &&
           std::any_of(items_.begin(), items_.end(), [&](const Item& item) {
             return item.stage == Stage::returned && !item.released && !item.late &&
                    item.started + *plan_.process_timeout <= target;
           });
  }

  // Timeouts whose moment has come. Returns the inputs that were skipped.
  std::vector<std::uint64_t> expire(TimePoint now) {
    for (Item& item : items_) {
      const auto deadline = process_deadline(item);
      if (deadline && *deadline <= now) complete(item, true, 0);
    }
    pump(now);
    std::vector<std::uint64_t> skipped;
    while (const auto deadline = order_deadline()) {
      if (*deadline > now) break;
      Item& item = items_[head_];
      skipped.push_back(head_);
      item.late = true;
      item.complete = true;
      ++late_count_;
      pump(now);
    }
    return skipped;
  }

  // Some input has a result that nobody has taken yet.
  bool has_untaken() const {
    return std::any_of(items_.begin(), items_.end(),
                       [](const Item& item) { return item.complete && item.taken < item.outs; });
  }

  // Some output can be taken now.
  bool can_take() const {
    if (plan_.emit) return false;
    return plan_.mode == PoolMode::ordered ? next_ordered().has_value() : has_untaken();
  }

  // An output came out (by pop or, without total order, by emit). Returns why it must not, or
  // nothing.
  std::string take(std::uint64_t index, std::size_t position, TimePoint now) {
    if (index >= items_.size()) return "output of an input that was not admitted";
    Item& item = items_[index];
    if (!item.complete || item.failed || item.late) return "output of an input without result";
    if (position != item.taken || position >= item.outs) return "wrong output of its input";
    if (plan_.mode == PoolMode::ordered) {
      if (next_ordered() != index) return "output out of order";
      if (item.moved > item.taken) {
        --buffered_;
      } else {
        ++item.moved;
      }
    } else {
      if (open_ && *open_ != index) return "outputs of two inputs are mixed";
      for (std::uint64_t other = 0; plan_.mode == PoolMode::keyed && other < index; ++other) {
        if (items_[other].key == item.key && !items_[other].finished()) return "overtook its key";
      }
      open_ = position + 1 < item.outs ? std::optional(index) : std::nullopt;
    }
    ++item.taken;
    ++taken_count_;
    if (plan_.mode != PoolMode::ordered && item.finished()) {
      item.released = true;
    }
    pump(now);
    return "";
  }

  // The pool shows what the model says: what nothing can hold back any more has been released.
  void settled() {
    if (!has_untaken()) stuck_.clear();
  }

  // Window slots in use: at least, at most.
  std::pair<std::size_t, std::size_t> window_used() const {
    if (plan_.mode == PoolMode::ordered) return {items_.size() - head_, items_.size() - head_};
    std::size_t incomplete = 0;
    std::size_t waiting = 0;
    for (const Item& item : items_) {
      if (!item.complete) ++incomplete;
      if (item.complete && item.taken < item.outs) ++waiting;
    }
    return {incomplete + waiting - std::min(waiting, plan_.buffer),
            incomplete + waiting + (waiting > 0 ? stuck_.size() : 0)};
  }

  std::pair<std::size_t, std::size_t> failed_count() const {
    std::size_t all = 0;
    std::size_t released = 0;
    for (std::uint64_t index = 0; index < items_.size(); ++index) {
      if (!items_[index].failed) continue;
      ++all;
      if (plan_.mode == PoolMode::ordered ? items_[index].released : !is_stuck(index)) {
        ++released;
      }
    }
    return {released, all};
  }

  std::pair<std::size_t, std::size_t> delivered_count() const {
    std::size_t sure = 0;
    std::size_t possible = 0;
    for (std::uint64_t index = 0; index < items_.size(); ++index) {
      const Item& item = items_[index];
      if (item.failed || item.late || !item.finished()) continue;
      if (plan_.mode == PoolMode::ordered && !item.released) continue;
      ++possible;
      if (!is_stuck(index)) ++sure;
    }
    return {sure, possible};
  }

  // Inputs that wait for nothing but a worker.
  std::size_t runnable_count() const {
    std::set<std::uint64_t> busy;
    std::size_t count = 0;
    for (const Item& item : items_) {
      if (plan_.mode == PoolMode::keyed && item.stage == Stage::inside) busy.insert(item.key);
    }
    for (const Item& item : items_) {
      if (item.stage != Stage::queued || item.late) continue;
      if (plan_.mode != PoolMode::keyed || busy.insert(item.key).second) ++count;
    }
    return count;
  }

  // Without keys: nothing has started while an earlier input still waits.
  bool started_is_prefix() const {
    if (plan_.mode == PoolMode::keyed) return true;
    bool waiting = false;
    for (const Item& item : items_) {
      if (item.stage == Stage::queued && !item.late) waiting = true;
      if (item.stage == Stage::inside && waiting) return false;
    }
    return true;
  }

  bool all_finished() const {
    return inside_ == 0 && std::all_of(items_.begin(), items_.end(),
                                       [](const Item& item) { return item.finished(); });
  }

 private:
  void complete(Item& item, bool failed, std::size_t outs) {
    item.complete = true;
    item.failed = failed;
    item.outs = outs;
    if (plan_.mode == PoolMode::ordered) return;
    if (outs == 0) {
      item.released = true;
      if (!plan_.emit) stuck_.insert(static_cast<std::uint64_t>(&item - items_.data()));
    }
    if (failed && plan_.fail_stop) ended_ = true;
  }

  // Moves the ordered line as far as it goes.
  void pump(TimePoint now) {
    if (plan_.mode != PoolMode::ordered) return;
    while (head_ < items_.size() && items_[head_].complete && !ended_) {
      Item& item = items_[head_];
      for (; plan_.emit && item.taken < item.outs; ++item.taken, ++item.moved, ++taken_count_) {
        emitted_.emplace_back(head_, item.taken);
      }
      while (item.moved < item.outs && buffered_ < plan_.buffer)
        ++item.moved, ++buffered_;
      if (item.moved < item.outs) return;
      item.released = true;
      ended_ = item.failed && plan_.fail_stop;
      ++head_;
      head_since_ = now;
    }
  }

  // Without total order, an input without outputs may have to wait behind outputs of others.
  bool is_stuck(std::uint64_t index) const { return stuck_.contains(index) && has_untaken(); }

  std::optional<std::uint64_t> next_ordered() const {
    for (std::uint64_t index = 0; index <= head_ && index < items_.size(); ++index) {
      const Item& item = items_[index];
      if (item.complete && item.taken < item.outs) return index;
    }
    return std::nullopt;
  }

  std::optional<TimePoint> process_deadline(const Item& item) const {
    if (!plan_.process_timeout || item.stage != Stage::inside || item.complete) return std::nullopt;
    return item.started + *plan_.process_timeout;
  }
  std::optional<TimePoint> order_deadline() const {
    if (!plan_.order_timeout || head_ >= items_.size() || items_[head_].complete || ended_) {
      return std::nullopt;
    }
    return head_since_ + *plan_.order_timeout;
  }

  const PoolPlan plan_;
  std::vector<Item> items_;
  std::vector<Output> emitted_;
  std::size_t inside_ = 0;
  std::size_t late_count_ = 0;
  std::size_t taken_count_ = 0;
  // Total order only.
  std::uint64_t head_ = 0;
  TimePoint head_since_;
  std::size_t buffered_ = 0;
  // Without total order: the input whose outputs are being taken, and inputs without outputs that
  // may have to wait behind outputs nobody has taken.
  std::optional<std::uint64_t> open_;
  std::set<std::uint64_t> stuck_;
  bool ended_ = false;
};

}  // namespace ordo::testing_support

// Ledger: every item a pool has admitted and not yet accounted for, and what may happen to it next.
//
// The pure half of the engine for everything but plain total order: no order, order per key, total
// order with timeouts. It is a state machine: calls say what happened and when, and return what to
// do. An item goes
//
//   admit -> ready -> start -> running -> finish -> end -> passed -> outputs taken -> accounted
//                                 '-> expire_one: over for the line at once; its handler is waited
//                                     for, and what it returns is dropped
//
// What lets an item start, and when it is passed on to the output, depends on the order asked for:
//   none:    it starts when a worker is free, and is passed when it ends.
//   per_key: it starts when no other of its key runs, and is passed when it ends.
//   total:   it starts when a worker is free, and is passed when all before it were.
//
// Threads: none of its own, no clock, no I/O: call it under the lock of the engine that owns it.
// Bounds:  `window` items admitted and not released, plus buffer_size outputs that wait, plus one
//          item per handler that outlives its timeout.
// Cost:    O(1) per call; items are reused, so nothing is allocated once the peak was reached.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "ordo/core/check.h"
#include "ordo/core/clock.h"
#include "ordo/lane/keyed_queue.h"
#include "ordo/pool/input.h"
#include "ordo/pool/linked.h"
#include "ordo/pool/outputs.h"
#include "ordo/pool/settings.h"

namespace ordo::pool {

// One admitted input.
template <class In, class Out>
struct LedgerItem {
  enum class Phase : std::uint8_t { ready, running, ending, ended, emitting };
  enum class Expiry : std::uint8_t { none, process, order };

  std::uint64_t number = 0;
  Phase phase = Phase::ready;
  Expiry expiry = Expiry::none;
  bool over = false;       // What it comes to is known; a handler that still runs changes nothing.
  bool accounted = false;  // It has left the ledger's books.
  bool released = false;   // It has left the window; its outputs wait in the buffer.
  Produced produced{};
  std::size_t taken = 0;      // Outputs already taken.
  std::uint32_t holders = 0;  // Those who use it without the lock; 0 and accounted: free.
  TimePoint started{};
  LaneHandle lane{};
  std::optional<In> input;
  Outputs<Out> outputs;
  std::stop_source stop{std::nostopstate};
  Link<LedgerItem> in_all, in_ready, in_running, in_output;

  bool has_outputs() const { return produced == Produced::one || produced == Produced::many; }
};

template <class In, class Out>
class Ledger {
 public:
  using Item = LedgerItem<In, Out>;
  using Phase = typename Item::Phase;
  using Expiry = typename Item::Expiry;

  explicit Ledger(const Settings& settings)
      : settings_(settings),
        lanes_(settings.order == Order::per_key ? settings.window + settings.workers_max : 1) {}

  ~Ledger() {
    for (Item* item = all_.first(); item != nullptr; item = all_.after(*item)) {
      item->outputs.clear(item->produced);
    }
  }
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // ---- Admission ----

  bool has_room() const { return used_ < settings_.window; }

  // REQUIRES: has_room().
  void admit(const Input<In>& input, std::uint64_t key, TimePoint now) {
    ORDO_CHECK(has_room());
    In built = input.make();  // If that throws, nothing has happened.
    Item& item = fresh_item();
    item.input.emplace(std::move(built));
    item.number = admitted_++;
    all_.push_back(item);
    if (head_ == nullptr) set_head(&item, now);
    peak_ = std::max(peak_, ++used_);
    if (settings_.order == Order::per_key) {
      ORDO_CHECK(lanes_.push(key, &item) == Admission::admitted);
    } else {
      ready_.push_back(item);
    }
  }

  // ---- Work ----

  // How many items could start now.
  std::size_t ready_count() const {
    return settings_.order == Order::per_key ? lanes_.ready_count() : ready_.size();
  }

  // The next item to run, if there is one. When its handler has ended, finish() follows.
  Item* start(TimePoint now) {
    Item* item = nullptr;
    if (settings_.order == Order::per_key) {
      const auto turn = lanes_.take();
      if (!turn) return nullptr;
      item = turn->item;
      item->lane = turn->lane;
    } else {
      item = ready_.first();
      if (item == nullptr) return nullptr;
      ready_.remove(*item);
    }
    item->phase = Phase::running;
    item->started = now;
    ++item->holders;
    ++handlers_;
    running_.push_back(*item);
    return item;
  }

  // The handler of `item` has returned or thrown. True: end() is to follow, once a failure has been
  // reported. False: its time was over before; its outputs are gone, and the caller drop()s it.
  bool finish(Item& item, Produced produced) {
    ORDO_CHECK(item.phase == Phase::running);
    --handlers_;
    if (running_.contains(item)) running_.remove(item);
    if (settings_.order == Order::per_key) lanes_.finish(item.lane);
    item.phase = Phase::ending;
    if (item.over) {
      item.outputs.clear(produced);
      item.phase = Phase::ended;
      return false;
    }
    item.produced = produced;
    return true;
  }

  // Passes `item` on, now or when its turn has come. REQUIRES: finish() returned true for it.
  void end(Item& item, TimePoint now) {
    ORDO_CHECK(item.phase == Phase::ending);
    item.phase = Phase::ended;
    item.over = true;
    settle(item, now);
    drop(item);
  }

  // ---- Time ----

  // An item whose time is up: it is over with this call, and held for the caller, who is to drop()
  // it. Call until there is none.
  Item* expire_one(TimePoint now) {
    Item* item = nullptr;
    if (head_can_expire() && now - head_since_ >= *settings_.order_timeout) {
      item = head_;
      item->expiry = Expiry::order;
    } else if (settings_.process_timeout && !running_.empty() &&
               now - running_.first()->started >= *settings_.process_timeout) {
      item = running_.first();
      item->expiry = Expiry::process;
    } else {
      return nullptr;
    }
    hold(*item);
    item->over = true;
    item->produced = Produced::failed;
    if (ready_.contains(*item)) ready_.remove(*item);
    if (running_.contains(*item)) running_.remove(*item);
    settle(*item, now);
    return item;
  }

  // When expire_one() may find something next.
  TimePoint next_deadline() const {
    TimePoint next = TimePoint::max();
    if (head_can_expire()) {
      next = saturating_add(head_since_, *settings_.order_timeout);
    }
    if (settings_.process_timeout && !running_.empty()) {
      next = std::min(next, saturating_add(running_.first()->started, *settings_.process_timeout));
    }
    return next;
  }

  // Keeps `item` usable without the lock, until drop().
  void hold(Item& item) { ++item.holders; }
  void drop(Item& item) {
    ORDO_CHECK(item.holders > 0);
    if (--item.holders == 0 && item.accounted) recycle(item);
  }

  // ---- Release ----

  // The first that waits always has an output: what has none leaves when all before it is out.
  bool has_output() const { return !output_.empty(); }

  // The next output. REQUIRES: has_output().
  Out take_output(TimePoint now) {
    const bool waited = waits_for_release();
    Item& item = *output_.first();
    Out output = item.outputs.take(item.produced, item.taken);
    ++item.taken;
    ++outputs_taken_;
    if (item.released) --buffered_;
    if (remaining(item) == 0) leave(item);
    release_what_fits();
    if (waited && !waits_for_release()) head_since_ = now;
    return output;
  }

  // For emit: the item whose outputs come next, held for the caller; finish_emitting() follows.
  // REQUIRES: has_output().
  Item& begin_emitting() {
    Item& item = *output_.first();
    item.phase = Phase::emitting;
    if (item.released) buffered_ -= remaining(item);
    leave_output(item);
    hold(item);
    ++emitting_;
    return item;
  }
  void finish_emitting(Item& item, bool failed, TimePoint now) {
    --emitting_;
    outputs_taken_ += item.outputs.count(item.produced);
    clear_outputs(item);
    if (failed) {
      end_line_by_failure();
    } else {
      ++delivered_;
    }
    account(item);
    drop(item);
    if (line_ended_) forget_outputs();
    release_what_fits();
    if (!waits_for_release()) head_since_ = now;
  }

  // ---- The end ----

  // fail_stop: an item failed; nothing is started any more, and nothing comes out after what is
  // there.
  bool line_ended() const { return line_ended_; }
  // Every item is accounted for and every handler has ended.
  bool is_finished() const { return all_.empty() && handlers_ == 0; }

  // Takes away all that is not accounted for. What runs is copied if `may_copy`, or left out.
  Undone<In> collect(bool may_copy) {
    line_ended_ = true;
    Undone<In> undone;
    for (Item* item = all_.first(); item != nullptr; item = all_.after(*item)) {
      if (item->produced == Produced::failed || item->phase == Phase::emitting) continue;
      if (item->phase == Phase::running) {
        item->over = true;
        may_copy ? list_copy(*item, undone) : void(++undone.count);
        continue;
      }
      clear_outputs(*item);
      undone.list([&]() -> In&& { return std::move(*item->input); });
    }
    forget_outputs();
    return undone;
  }

  template <class Visit>
  void for_each_running(Visit visit) {
    for (Item* item = running_.first(); item != nullptr; item = running_.after(*item))
      visit(*item);
  }

  // ---- What it tells ----

  std::uint64_t admitted() const { return admitted_; }
  std::uint64_t delivered() const { return delivered_; }
  std::uint64_t outputs_taken() const { return outputs_taken_; }
  std::size_t handler_count() const { return handlers_; }  // That run, also if over.
  std::size_t window_used() const { return used_; }
  std::size_t window_peak() const { return peak_; }

  // The item everything waits for: the head of a total order, else the one that runs longest.
  const Item* head() const { return settings_.order == Order::total ? head_ : running_.first(); }
  TimePoint head_since() const {
    if (settings_.order == Order::total) return head_since_;
    return running_.empty() ? TimePoint{} : running_.first()->started;
  }
  // The oldest item that is kept in the window because nobody takes outputs.
  const Item* waiting_for_pop() const { return next_release_; }
  // Something is over and waits for the head of a total order.
  bool is_stalled() const {
    if (settings_.order != Order::total || head_ == nullptr || head_->over) return false;
    return ready_.empty();
  }

 private:
  static void list_copy(const Item& item, Undone<In>& undone) {
    if constexpr (std::copy_constructible<In>) {
      undone.list([&]() -> const In& { return *item.input; });
    } else {
      ++undone.count;
    }
  }

  static std::size_t remaining(Item& item) {
    return item.outputs.count(item.produced) - item.taken;
  }

  void clear_outputs(Item& item) {
    item.outputs.clear(item.produced);
    if (item.has_outputs()) item.produced = Produced::nothing;
  }

  // ---- The line ----

  // What comes before the head has not been taken: the head does not hold up anybody yet.
  bool waits_for_release() const { return next_release_ != nullptr || emitting_ > 0; }

  bool head_can_expire() const {
    return settings_.order_timeout && head_ != nullptr && !head_->over &&
           head_->phase != Phase::ending && !line_ended_ && !waits_for_release();
  }

  void set_head(Item* item, TimePoint now) {
    head_ = item;
    head_since_ = now;
  }

  void settle(Item& item, TimePoint now) {
    if (settings_.order == Order::total) {
      advance_head(now);
    } else {
      pass(item);
    }
  }

  // Passes all that is over, from the head on.
  void advance_head(TimePoint now) {
    while (head_ != nullptr && head_->over && !line_ended_) {
      Item& item = *head_;
      set_head(all_.after(item), now);
      pass(item);
    }
  }

  // `item` is over and it is its turn.
  void pass(Item& item) {
    if (line_ended_) return;
    output_.push_back(item);
    if (next_release_ == nullptr) next_release_ = &item;
    if (settings_.order != Order::total && !item.has_outputs()) {
      leave(item);  // It is nobody's turn that it waits for.
    }
    release_what_fits();
  }

  // All outputs of `item` were taken: it is struck off.
  void leave(Item& item) {
    if (item.produced != Produced::failed) {
      ++delivered_;
    } else if (item.expiry != Expiry::order) {
      end_line_by_failure();
    }
    leave_output(item);
    clear_outputs(item);
    hold(item);
    account(item);
    drop(item);
    if (line_ended_ && settings_.order == Order::total) forget_outputs();
  }

  bool ends_line(const Item& item) const {
    return settings_.fail_stop && item.produced == Produced::failed && item.expiry != Expiry::order;
  }

  void end_line_by_failure() { line_ended_ = line_ended_ || settings_.fail_stop; }

  // Lets items leave the window for the buffer, while their outputs fit; who has none is done.
  void release_what_fits() {
    while (next_release_ != nullptr) {
      Item& item = *next_release_;
      if (!item.has_outputs()) {
        if (ends_line(item) && output_.first() != &item) return;  // What is before comes out first.
        leave(item);
        continue;
      }
      if (buffered_ + remaining(item) > settings_.buffer_size) return;
      item.released = true;
      buffered_ += remaining(item);
      --used_;
      next_release_ = output_.after(item);
    }
  }

  // Nobody will take what is there.
  void forget_outputs() {
    while (!output_.empty())
      leave_output(*output_.first());
  }

  void leave_output(Item& item) {
    if (next_release_ == &item) next_release_ = output_.after(item);
    output_.remove(item);
  }

  // Strikes `item` off the books. REQUIRES: somebody holds it.
  void account(Item& item) {
    ORDO_CHECK(!item.accounted);
    if (!item.released) --used_;
    if (head_ == &item) set_head(all_.after(item), head_since_);
    all_.remove(item);
    item.accounted = true;
  }

  // ---- Items ----

  Item& fresh_item() {
    if (free_.empty()) {
      items_.push_back(std::make_unique<Item>());
      free_.reserve(items_.capacity());
      return *items_.back();
    }
    Item& item = *free_.back();
    free_.pop_back();
    return item;
  }

  void recycle(Item& item) {
    item.input.reset();
    item.stop = std::stop_source(std::nostopstate);
    item.phase = Phase::ready;
    item.expiry = Expiry::none;
    item.over = item.accounted = item.released = false;
    item.produced = Produced{};
    item.taken = 0;
    free_.push_back(&item);
  }

  const Settings settings_;
  std::vector<std::unique_ptr<Item>> items_;  // All there are; they keep their addresses.
  std::vector<Item*> free_;

  Linked<Item, &Item::in_all> all_;          // Not accounted for, by admission.
  Linked<Item, &Item::in_ready> ready_;      // May start; unless per_key.
  KeyedQueue<std::uint64_t, Item*> lanes_;   // May start, if per_key.
  Linked<Item, &Item::in_running> running_;  // By start; without those that are over.
  Linked<Item, &Item::in_output> output_;    // Passed, and waiting for outputs to be taken.
  Item* head_ = nullptr;                     // The first that was not passed.
  TimePoint head_since_{};                   // It is the head, and all before it is released.
  Item* next_release_ = nullptr;             // The first in output_ that is still in the window.
  std::size_t emitting_ = 0;                 // Items whose outputs are being emitted.
  std::size_t buffered_ = 0;                 // Outputs of items that have left the window.
  std::size_t used_ = 0;
  std::size_t peak_ = 0;
  std::size_t handlers_ = 0;  // That run, also if their item is over.
  std::uint64_t admitted_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t outputs_taken_ = 0;
  bool line_ended_ = false;
};

}  // namespace ordo::pool

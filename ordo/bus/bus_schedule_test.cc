// Goal: whatever the schedule, a bus shows what the sequential model says. Method: a driver chooses
// by a seeded generator what happens next (a publish, a pop, somebody comes or goes, time passes, a
// signal changes), tells the model, and compares every count and every frame. A publish that has to
// wait does so on a thread of its own, while the driver goes on. The seed names the failing run.
//
//   ORDO_SEEDS=200           how many schedules (1,000)
//   ORDO_FIRST_SEED=17       where to start (0): with ORDO_SEEDS=1 this repeats one run
//   ORDO_HISTORY_DIR=folder  write the history of every run there, for tools/check_history.py
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/bus.h"
#include "tests/support/bus_history.h"
#include "tests/support/bus_model.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::Background;
using testing_support::BusHistory;
using testing_support::BusModel;
using testing_support::eventually;
using testing_support::Watchdog;
using Fate = BusModel::Fate;
using Frame = std::uint64_t;

struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool condition, const std::string& what) {
  if (!condition) throw Mismatch(what);
}

struct Plan {
  explicit Plan(std::mt19937_64& random)
      : strict(random() % 2 == 0),
        steps(40 + random() % 120),
        critical_timeout(std::chrono::microseconds(1000 * (1 + random() % 3))) {
    if (random() % 3 == 0) watermarks = {.high = 0.95, .normal = 0.6, .best_effort = 0.3};
    hysteresis = std::vector<double>{0, 0.05, 0.1}[random() % 3];
    rushes = random() % 20 == 0;
  }

  bool strict;  // Critical frames are dropped after the timeout only: no deadlines, no early ends.
  std::uint64_t steps;
  std::chrono::nanoseconds critical_timeout;
  Watermarks watermarks{};
  double hysteresis = 0;
  bool rushes = false;  // Once, so many frames that the log comes round to those who do not pop.
};

// A publish() that waits, on its own thread.
struct Waiting {
  Frame frame = 0;
  std::uint64_t begin_tick = 0;
  TimePoint begin{};
  TimePoint patience{};
  TimePoint deadline{};
  std::map<std::string, Overflow> waiters{};
  std::size_t sent = 0;
  std::size_t dropped = 0;
  PublishResult result{};
  std::unique_ptr<Background> thread{};
};

class Driver {
 public:
  explicit Driver(std::uint64_t seed)
      : random_(seed),
        plan_(random_),
        model_({.watermarks = plan_.watermarks, .hysteresis = plan_.hysteresis}),
        history_(plan_.strict ? 1000 : 0),
        bus_({.watermarks = plan_.watermarks,
              .hysteresis = plan_.hysteresis,
              .critical_timeout = plan_.critical_timeout,
              .load = [this] { return load_; },
              .clock = &clock_}) {}

  void drive() {
    for (std::uint64_t count = 1 + pick(8); count > 0; --count)
      subscribe();
    for (std::uint64_t step = 0; step < plan_.steps && !closed_; ++step) {
      take_step();
      compare();
      if (plan_.rushes && !closed_ && step == plan_.steps / 2) rush();
    }
    finish();
  }
  bool write_history(const std::string& path) const { return history_.write(path); }

 private:
  std::uint64_t pick(std::uint64_t count) { return random_() % count; }
  bool chance(std::uint64_t percent) { return pick(100) < percent; }
  BusModel::Subscriber* any() {
    auto& all = model_.subscribers();
    return all.empty() ? nullptr : &all[pick(all.size())];
  }

  void take_step() {
    const std::uint64_t choice = pick(100);
    if (choice < 50) {
      publish();
    } else if (choice < 82) {
      if (BusModel::Subscriber* subscriber = any()) pop(*subscriber);
    } else if (choice < 88) {
      advance(std::chrono::microseconds(pick(3000)));
    } else if (choice < 92) {
      load_ = chance(60) ? 0 : static_cast<double>(pick(101)) / 100;
    } else if (choice < 96) {
      if (model_.subscribers().size() < 12) subscribe();
    } else if (BusModel::Subscriber* subscriber = any()) {
      unsubscribe(*subscriber);
    }
    if (waiting_ && !plan_.strict && chance(3)) close();
  }

  // One takes every frame, so every frame needs a place in the log; the others do not pop.
  void rush() {
    subscribe({.id = "rush", .priority = Priority::critical, .overflow = Overflow::latest});
    for (std::uint64_t left = 500 + pick(1500); left > 0 && !waiting_; --left) {
      publish();
      pop(model_.at("rush"));
    }
    compare();
    unsubscribe(model_.at("rush"));
  }

  void subscribe() {
    BusModel::Subscriber subscriber{.id = std::to_string(++ids_),
                                    .priority = static_cast<Priority>(pick(4)),
                                    .capacity = 1 + pick(12),
                                    .overflow = static_cast<Overflow>(pick(4))};
    const bool critical = subscriber.priority == Priority::critical;
    if (plan_.strict && critical && chance(80)) subscriber.overflow = Overflow::drop_newest;
    const bool evicts =
        subscriber.overflow == Overflow::drop_oldest || subscriber.overflow == Overflow::latest;
    if (plan_.strict && critical && evicts) subscriber.overflow = Overflow::block;
    subscribe(subscriber);
  }
  void subscribe(const BusModel::Subscriber& subscriber) {
    subscriptions_.emplace(subscriber.id, bus_.subscribe(subscriber.id, subscriber.priority,
                                                         {.capacity = subscriber.capacity,
                                                          .overflow = subscriber.overflow}));
    history_.subscribe(subscriber.id, subscriber.priority, subscriber.capacity);
    model_.subscribe(subscriber);
  }

  void unsubscribe(BusModel::Subscriber& subscriber) {
    const std::string id = subscriber.id;
    const bool awaited = waiting_ && waiting_->waiters.contains(id);
    if (plan_.strict && awaited) return;
    if (plan_.strict) {
      while (!subscriber.queue.empty())
        pop(subscriber);
    }
    departed_dropped_ += subscriber.dropped + (awaited ? 1 : 0);
    departed_sent_ += subscriber.sent;
    if (awaited) waiter_dropped(id);
    for (const Frame frame : model_.unsubscribe(id))
      history_.revoke(id, frame);
    chance(50) ? bus_.unsubscribe(id) : subscriptions_.at(id).unsubscribe();
    require(!subscriptions_.at(id).pop(), id + " got a frame after unsubscribe");
    subscriptions_.erase(id);
    history_.unsubscribe(id);
    settle();
  }

  void pop(BusModel::Subscriber& subscriber) {
    auto frame = subscriptions_.at(subscriber.id).try_pop();
    require(frame.has_value() == !subscriber.queue.empty(), subscriber.id + ": pop differs");
    if (!frame) return;
    require(**frame == subscriber.queue.front(), subscriber.id + " popped the wrong frame");
    history_.receive(subscriber.id, **frame);
    subscriber.queue.pop_front();
    ++subscriber.received;
    if (!waiting_ || !waiting_->waiters.erase(subscriber.id)) return;
    BusModel::send(subscriber, waiting_->frame);
    history_.sent(subscriber.id, waiting_->frame);
    ++waiting_->sent;
    settle();
  }

  void advance(std::chrono::nanoseconds span) {
    if (waiting_ && waiting_->patience > clock_.now()) clock_.wait_for_waiters(1);
    clock_.advance(span);
    if (!waiting_) return;
    const bool all = clock_.now() >= waiting_->deadline;
    if (!all && clock_.now() < waiting_->patience) return;
    const auto waiters = waiting_->waiters;
    for (const auto& [id, overflow] : waiters) {
      if (all || overflow != Overflow::block) drop_waiter(id);
    }
    settle();
  }

  void close() {
    const auto waiters = waiting_->waiters;
    for (const auto& [id, overflow] : waiters)
      drop_waiter(id);
    bus_.close();
    closed_ = true;
    settle();
  }

  void drop_waiter(const std::string& id) {
    ++model_.at(id).dropped;
    waiter_dropped(id);
  }
  void waiter_dropped(const std::string& id) {
    const auto waited =
        std::chrono::duration_cast<std::chrono::microseconds>(clock_.now() - waiting_->begin);
    history_.dropped(id, waiting_->frame, "timeout", static_cast<std::uint64_t>(waited.count()));
    ++waiting_->dropped;
    waiting_->waiters.erase(id);
  }

  // Lets the publish that waits come to where the model says it is.
  void settle() {
    if (waiting_ && waiting_->waiters.empty()) {
      require(waiting_->thread->finished(), "publish does not return");
      require(waiting_->result.sent == waiting_->sent, "sent differs after a wait");
      require(waiting_->result.dropped == waiting_->dropped, "dropped differs after a wait");
      history_.publish(waiting_->frame, waiting_->begin_tick);
      waiting_.reset();
      return;
    }
    std::string why;
    require(eventually([&] { return (why = difference()).empty(); }), why);
  }

  void publish() {
    std::optional<TimePoint> deadline;
    if (!plan_.strict && chance(30)) {
      deadline = clock_.now() + std::chrono::microseconds(pick(4000));
      if (chance(40)) deadline = clock_.now();
    }
    const BusModel::Terms terms{.load = load_, .late = deadline && *deadline <= clock_.now()};
    if (model_.would_wait(terms) && waiting_) return;  // One at a time.
    const Frame frame = ++frames_;
    const std::uint64_t begin = history_.tick();
    const bool waits = model_.would_wait(terms);
    const BusModel::Publish expected = model_.publish(frame, terms);
    note(frame, expected);
    if (waits) {
      begin_waiting(frame, begin, expected, deadline);
      return;
    }
    const PublishResult result = bus_.publish(frame, deadline);
    require(result.sent == expected.count(Fate::sent), "sent differs");
    require(result.sent + result.dropped == expected.fates.size(), "dropped differs");
    history_.publish(frame, begin);
  }

  void note(Frame frame, const BusModel::Publish& publish) {
    for (const auto& [id, fate] : publish.fates) {
      if (fate == Fate::sent) history_.sent(id, frame);
      if (fate == Fate::shed) history_.dropped(id, frame, "budget");
      if (fate == Fate::full) history_.dropped(id, frame, "full");
    }
    for (const auto& [id, evicted] : publish.evicted)
      history_.revoke(id, evicted);
  }

  void begin_waiting(Frame frame, std::uint64_t begin, const BusModel::Publish& expected,
                     std::optional<TimePoint> deadline) {
    waiting_ = std::make_unique<Waiting>();
    waiting_->frame = frame;
    waiting_->begin_tick = begin;
    waiting_->begin = clock_.now();
    waiting_->deadline = deadline.value_or(TimePoint::max());
    waiting_->patience = std::min(clock_.now() + plan_.critical_timeout, waiting_->deadline);
    waiting_->sent = expected.count(Fate::sent);
    waiting_->dropped = expected.fates.size() - waiting_->sent - expected.count(Fate::waits);
    for (const auto& [id, fate] : expected.fates) {
      if (fate == Fate::waits) waiting_->waiters[id] = model_.at(id).overflow;
    }
    waiting_->thread =
        std::make_unique<Background>([this, waiting = waiting_.get(), frame, deadline] {
          waiting->result = bus_.publish(frame, deadline);
        });
    require(
        eventually([&] { return clock_.waiter_count() > 0 || waiting_->thread->is_finished(); }) &&
            clock_.waiter_count() > 0,
        "publish does not wait");
  }

  // What the bus's counts have to be, in words of the first that is not so; empty: all are.
  std::string difference() {
    const BusStats stats = bus_.stats();
    if (stats.published != model_.published()) return "published differs";
    if (stats.subscribers.size() != model_.subscribers().size()) return "subscribers differ";
    if (stats.departed.sent != departed_sent_) return "sent to the departed differs";
    if (stats.departed.dropped != departed_dropped_) return "dropped for the departed differs";
    for (const BusModel::Subscriber& subscriber : model_.subscribers()) {
      const SubscriberStats& part = stats.subscribers.at(subscriber.id);
      if (part.sent != subscriber.sent) return subscriber.id + ": sent differs";
      if (part.dropped != subscriber.dropped) return subscriber.id + ": dropped differs";
      if (part.received != subscriber.received) return subscriber.id + ": received differs";
      if (part.queued != subscriber.queue.size()) return subscriber.id + ": queued differs";
    }
    return "";
  }
  void compare() {
    const std::string why = difference();
    require(why.empty(), why);
  }

  void finish() {
    while (waiting_ && !waiting_->waiters.empty())
      pop(model_.at(waiting_->waiters.begin()->first));
    bus_.close();
    require(bus_.publish(0).closed, "a closed bus takes a frame");
    for (BusModel::Subscriber& subscriber : model_.subscribers()) {
      while (!subscriber.queue.empty())
        pop(subscriber);
      require(!subscriptions_.at(subscriber.id).pop(), "a frame too many");
    }
    compare();
    history_.end();
  }

  std::mt19937_64 random_;
  const Plan plan_;
  BusModel model_;
  BusHistory history_;
  ManualClock clock_;
  double load_ = 0;
  Bus<Frame> bus_;
  std::map<std::string, Subscription<Frame>> subscriptions_;
  std::unique_ptr<Waiting> waiting_;
  Frame frames_ = 0;
  std::uint64_t ids_ = 0;
  std::uint64_t departed_sent_ = 0;
  std::uint64_t departed_dropped_ = 0;
  bool closed_ = false;
};

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(BusScheduleTest, EverySeededScheduleShowsWhatTheModelSays) {
  const std::uint64_t first = number_from_environment("ORDO_FIRST_SEED", 0);
  const std::uint64_t count = number_from_environment("ORDO_SEEDS", 1'000);
  const char* folder = std::getenv("ORDO_HISTORY_DIR");
  if (folder != nullptr) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  Watchdog watchdog("schedules");
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    watchdog.rename("schedule with ORDO_FIRST_SEED=" + std::to_string(seed));
    auto run = std::make_unique<Driver>(seed);
    try {
      run->drive();
    } catch (const Mismatch& mismatch) {
      // A publish may still wait: nothing of this run can be destroyed.
      static_cast<void>(run.release());
      FAIL() << mismatch.what() << "\n  repeat with ORDO_FIRST_SEED=" << seed << " ORDO_SEEDS=1";
    }
    if (folder != nullptr) {
      ASSERT_TRUE(
          run->write_history(std::string(folder) + "/seed_" + std::to_string(seed) + ".jsonl"));
    }
  }
}

}  // namespace
}  // namespace ordo

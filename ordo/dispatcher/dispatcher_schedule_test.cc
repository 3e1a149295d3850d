// Goal: whatever the schedule, a dispatcher shows what the sequential model says. Method: every
// handler waits at a gate, or hands out its token; a driver chooses by a seeded generator what
// happens next (an event, the end or failure of a handler, a pause, a resume, a step of virtual
// time), tells the model, and waits until the dispatcher shows the same. The seed names the run.
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
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/dispatcher.h"
#include "tests/support/dispatcher_model.h"
#include "tests/support/gates.h"
#include "tests/support/history.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using dispatcher::LastResort;
using testing_support::DispatcherModel;
using testing_support::DispatcherPlan;
using testing_support::eventually;
using testing_support::Gates;
using testing_support::History;
using testing_support::Watchdog;
using Number = std::uint64_t;

struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Verdict {
  bool fails = false;
};

struct Event {
  Number number = 0;
  std::string ballast = "a text that has to be destroyed exactly once";
};

struct Session {
  int count = 0;
};

struct Schedule : DispatcherPlan {
  explicit Schedule(std::mt19937_64& random) {
    threads = 1 + random() % 3;
    stripes = random() % 3 == 0 ? 1 : 0;
    is_async = random() % 2 == 0;
    key_count = 1 + random() % 5;
    limit = 1 + random() % 6;
    limit_of_all = 1 + random() % 12;
    overflow = random() % 4 == 0 ? Overflow::drop_oldest : Overflow::reject;
    retries = random() % 2 == 0 ? static_cast<std::int64_t>(random() % 3) : 0;
    base = std::chrono::microseconds(1 + random() % 50);
    last = static_cast<LastResort>(random() % 3);
    fails_in_100 = random() % 50;
    steps = 40 + random() % 60;
    drains = random() % 2 == 0;
  }

  FailurePolicy<Number, Event> policy() const {
    const auto letter = [](const Number&, Event&) {};
    const bool retries_first = retries > 0;
    const Retry first = retry(std::max<std::int64_t>(1, retries), base);
    switch (last) {
      case LastResort::skip:
        return retries_first ? first.then_skip() : skip();
      case LastResort::park:
        return retries_first ? first.then_park() : park();
      default:
        break;
    }
    if (retries_first) return first.then_dead_letter(letter);
    return dead_letter(letter);
  }

  std::size_t threads;
  std::size_t stripes;
  bool is_async;
  Number key_count;
  std::uint64_t fails_in_100;
  std::size_t steps;
  bool drains;
};

class Driver {
 public:
  explicit Driver(std::uint64_t seed)
      : random_(seed),
        plan_(random_),
        model_(plan_),
        history_(
            clock_,
            {.kind = "keyed", .max_workers = plan_.is_async ? 0 : plan_.threads, .retry = true}) {
    D::Options options{.threads = plan_.threads,
                       .stripes = plan_.stripes,
                       .max_queued_per_key = plan_.limit,
                       .max_queued = plan_.limit_of_all,
                       .idle_timeout = 100us,
                       .overflow = plan_.overflow,
                       .on_failure = plan_.policy()};
    options.on_error = [](const Number&, const Event&, std::exception_ptr) {};
    options.on_drop = [this](const Number&, const Event& event) { dropped_ = event.number; };
    options.make_state = [this](const Number&) { return ++states_, Session{}; };
    options.end_state = [this](const Number&, Session&) { --states_; };
    options.seed = seed;
    options.clock = &clock_;
    if (plan_.is_async) {
      d_ = std::make_unique<D>(
          [this](const Number& key, const Event& event, Session&, Completion done) {
            std::lock_guard guard(mutex_);
            history_.start(lane_of(key), event.number, 0);
            tokens_[event.number] = std::move(done);
            started_.emplace_back(key, event.number);
          },
          options);
    } else {
      d_ = std::make_unique<D>([this](const Number& key, const Event& event,
                                      Session& session) { work(key, event, session); },
                               options);
    }
  }

  // Throws Mismatch when the dispatcher does not do what the model says.
  void drive() {
    for (step_ = 0; step_ < plan_.steps; ++step_) {
      settle();
      one_step();
    }
    settle();
    finish();
  }

  void give_up() {
    gates_.open_all({.fails = false});
    std::lock_guard guard(mutex_);
    tokens_.clear();
  }

  // What drop_oldest dropped never starts, which the checker of histories does not know of.
  bool has_history() const { return plan_.overflow != Overflow::drop_oldest; }
  bool write_history(const std::string& path) { return d_.reset(), history_.write(path); }

  std::string describe() const {
    return "threads " + std::to_string(plan_.threads) + ", stripes " +
           std::to_string(plan_.stripes) + (plan_.is_async ? ", tokens" : ", gates") + ", keys " +
           std::to_string(plan_.key_count) + ", limits " + std::to_string(plan_.limit) + "/" +
           std::to_string(plan_.limit_of_all) + ", retries " + std::to_string(plan_.retries) +
           ", last resort " + std::to_string(static_cast<int>(plan_.last)) + ", overflow " +
           std::to_string(static_cast<int>(plan_.overflow)) + ", step " + std::to_string(step_) +
           log_;
  }

 private:
  using D = Dispatcher<Number, Event, Session>;

  // With one stripe all entities share a lane.
  Number lane_of(Number key) const { return plan_.stripes == 0 ? key : 0; }

  void work(Number key, const Event& event, Session& session) {
    {
      std::lock_guard guard(mutex_);
      history_.start(lane_of(key), event.number, 0);
      started_.emplace_back(key, event.number);
    }
    ++session.count;
    const Verdict verdict = gates_.enter(gate_of(event.number));
    if (verdict.fails) throw std::runtime_error("as told");
  }
  // Every attempt has a gate of its own.
  Number gate_of(Number n) {
    std::lock_guard guard(mutex_);
    return n * 1'000 + attempts_[n]++;
  }

  void require(bool condition, const std::string& what) const {
    if (!condition) throw Mismatch(what);
  }
  void log(const std::string& what) {
    if (log_.size() < 4'000)
      log_ += "\n  " + std::to_string(clock_.now().time_since_epoch().count()) + " " + what;
  }

  void one_step() {
    const std::uint64_t choice = random_() % 100;
    const Number key = random_() % plan_.key_count;
    if (choice < 40) return dispatch(key);
    if (choice < 75) return end_one();
    if (choice < 80) return pause(key);
    if (choice < 88) return resume(key);
    advance();
  }

  void dispatch(Number key) {
    const Number n = next_number_++;
    std::optional<Number> expected_drop;
    const Dispatched expected = model_.expect_dispatch(lane_of(key), expected_drop);
    dropped_.reset();
    log("dispatch " + std::to_string(n) + " to " + std::to_string(key));
    // The history must know of an event before it sees it start.
    if (expected == Dispatched::admitted) history_.enq(lane_of(key), n);
    const Dispatched result = d_->dispatch(key, Event{.number = n});
    require(result == expected, "dispatch() returned " + std::to_string(static_cast<int>(result)) +
                                    ", not " + std::to_string(static_cast<int>(expected)));
    require(dropped_ == expected_drop, "the wrong event was dropped");
    if (result == Dispatched::admitted) {
      keys_[n] = key;
      model_.admit(lane_of(key), n, expected_drop);
    }
  }

  void end_one() {
    std::vector<Number> lanes;
    for (const auto& [id, lane] : model_.lanes()) {
      if (lane.in_flight) lanes.push_back(id);
    }
    if (lanes.empty()) return;
    end(lanes[random_() % lanes.size()], random_() % 100 < plan_.fails_in_100);
  }

  void end(Number lane, bool fails) {
    const Number n = model_.lanes()[lane].events.front();
    log((fails ? "fail " : "end ") + std::to_string(n));
    const bool is_over = model_.end(lane, fails, clock_.now());
    // For the checker an event that is given up has ended well: the next may go.
    history_.finish(lane, n, 0, is_over ? "ok" : "err");
    if (!plan_.is_async) {
      Number attempt = 0;
      {
        std::lock_guard guard(mutex_);
        attempt = attempts_ended_[n]++;
      }
      return gates_.open(n * 1'000 + attempt, {.fails = fails});
    }
    Completion token;
    {
      std::lock_guard guard(mutex_);
      token = std::move(tokens_.at(n));
      tokens_.erase(n);
    }
    require(fails ? token.fail(nullptr) : token(), "a token did not count");
    require(!token(), "a token counted twice");
  }

  void pause(Number key) {
    log("pause " + std::to_string(key));
    const bool was_parked = model_.lanes()[lane_of(key)].is_parked;
    require(d_->pause(key) == !was_parked, "pause() says the wrong thing");
    if (!was_parked) model_.pause(lane_of(key));
  }

  void resume(Number key) {
    log("resume " + std::to_string(key));
    const bool was_parked = model_.lanes()[lane_of(key)].is_parked;
    require(d_->resume(key) == was_parked, "resume() says the wrong thing");
    model_.resume(lane_of(key));
  }

  void advance() {
    const auto step = std::chrono::nanoseconds(random_() % 60'000);
    log("advance " + std::to_string(step.count()));
    clock_.advance(step);
    model_.wake(clock_.now());
  }

  // ---- what the dispatcher must show

  void settle() {
    std::string why;
    if (!eventually([&] { return (why = difference()).empty(); })) throw Mismatch(why);
  }

  void absorb() {
    std::lock_guard guard(mutex_);
    for (; started_seen_ < started_.size(); ++started_seen_) {
      const auto [key, n] = started_[started_seen_];
      log("starts " + std::to_string(n));
      const std::string problem = model_.start(lane_of(key), n);
      require(problem.empty(), "event " + std::to_string(n) + ": " + problem);
    }
  }

  static std::string compare(const char* what, std::uint64_t seen, std::uint64_t expected) {
    if (seen == expected) return "";
    return std::string(what) + " is " + std::to_string(seen) + ", not " + std::to_string(expected) +
           "; ";
  }

  std::string difference() {
    absorb();
    const DispatcherStats stats = d_->stats();
    std::string result;
    result += compare("admitted", stats.admitted, model_.admitted());
    result += compare("processed", stats.processed, model_.processed());
    result += compare("failed", stats.failed, model_.failed());
    result += compare("dead_lettered", stats.dead_lettered, model_.dead_lettered());
    result += compare("dropped", stats.dropped, model_.dropped());
    result += compare("retried", stats.retried, model_.retried());
    result += compare("failed_attempts", stats.failed_attempts, model_.failed_attempts());
    result += compare("queued", stats.queued, model_.queued());
    result += compare("delayed_lanes", stats.delayed_lanes, model_.delayed());
    result += compare("parked_lanes", stats.parked_lanes, model_.parked());
    result += compare("in_flight", stats.in_flight, model_.in_flight());
    const std::size_t room = plan_.is_async ? ~std::size_t{0} : plan_.threads;
    const std::size_t idle = room - std::min(room, model_.in_flight());
    if (idle > 0 && model_.ready() > 0) result += "a ready lane does not start; ";
    if (!result.empty()) return result;
    for (const auto& lane : d_->lanes(100)) {
      if (lane.state != LaneState::delayed) continue;
      const std::string problem = model_.note_due(lane_of(lane.key), *lane.due);
      require(problem.empty(), problem);
    }
    return "";
  }

  // ---- the end

  void finish() {
    if (plan_.drains) {
      for (Number key = 0; key < plan_.key_count; ++key)
        resume(lane_of(key));
      settle();
      drain();
    }
    std::map<Number, std::vector<Number>> expected;
    for (auto& [id, lane] : model_.lanes()) {
      for (const Number n : lane.events)
        expected[keys_.at(n)].push_back(n);
    }
    std::map<Number, std::vector<Number>> undone;
    for (const auto& [key, events] : d_->shutdown(0ns)) {
      for (const Event& event : events)
        undone[key].push_back(event.number);
    }
    require(undone == expected, "shutdown() does not list what is undone");
    const DispatcherStats stats = d_->stats();
    require(stats.undone == model_.queued() && stats.queued == 0, "undone is counted wrongly");
    history_.end(false);
    gates_.open_all({.fails = false});
    {
      std::lock_guard guard(mutex_);
      for (const auto& [n, token] : tokens_)
        require(!token(), "a token counted after shutdown()");
      tokens_.clear();
    }
    d_.reset();
    require(states_ == 0, std::to_string(states_) + " states were not cleaned up");
  }

  // Lets everything end well.
  void drain() {
    for (int round = 0; model_.queued() > 0; ++round) {
      require(round < 10'000, "what is left does not drain");
      std::vector<Number> lanes;
      for (const auto& [id, lane] : model_.lanes()) {
        if (lane.in_flight) lanes.push_back(id);
      }
      for (const Number lane : lanes)
        end(lane, false);
      clock_.advance(10us);
      model_.wake(clock_.now());
      settle();
    }
  }

  std::mt19937_64 random_;
  const Schedule plan_;
  DispatcherModel model_;
  ManualClock clock_;
  History history_;
  Gates<Verdict> gates_;
  std::size_t step_ = 0;
  std::string log_;
  Number next_number_ = 0;
  std::map<Number, Number> keys_;  // Of the events.
  std::optional<Number> dropped_;
  std::atomic<int> states_ = 0;

  std::mutex mutex_;
  std::vector<std::pair<Number, Number>> started_;  // Guarded by mutex_, as those below.
  std::size_t started_seen_ = 0;
  std::map<Number, Completion> tokens_;
  std::map<Number, Number> attempts_;
  std::map<Number, Number> attempts_ended_;

  std::unique_ptr<D> d_;
};

// The number in the environment variable `name`, or `otherwise`.
std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

// Runs one schedule and writes its history, if there is a folder for it. Why it failed, if it did.
std::string run_schedule(std::uint64_t seed, const std::string& folder) {
  Driver run(seed);
  try {
    run.drive();
  } catch (const Mismatch& mismatch) {
    run.give_up();
    return std::string(mismatch.what()) + "\n  " + run.describe();
  }
  if (folder.empty() || !run.has_history()) return "";
  const std::string path = folder + "/seed_" + std::to_string(seed) + ".jsonl";
  return run.write_history(path) ? "" : "cannot write " + path;
}

TEST(DispatcherScheduleTest, EverySeededScheduleShowsWhatTheModelSays) {
  const char* given = std::getenv("ORDO_HISTORY_DIR");
  const std::string folder = given != nullptr ? given : "";
  if (!folder.empty()) std::filesystem::remove_all(folder);
  if (!folder.empty()) std::filesystem::create_directories(folder);
  Watchdog watchdog("schedules");
  std::uint64_t seed = setting("ORDO_FIRST_SEED", 0);
  for (std::uint64_t left = setting("ORDO_SEEDS", 1'000); left > 0; --left, ++seed) {
    const std::string repeat = "ORDO_SEEDS=1 ORDO_FIRST_SEED=" + std::to_string(seed);
    watchdog.rename(repeat);
    ASSERT_EQ(run_schedule(seed, folder), "") << "repeat with " << repeat;
  }
}

}  // namespace
}  // namespace ordo

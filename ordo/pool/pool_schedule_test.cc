// Goal: whatever the schedule, a pool shows what the sequential model says. Method: every handler
// waits at a gate; a driver chooses by a seeded generator what happens next (an input, a handler's
// return or failure, a step of virtual time, an output taken), tells the model, and waits until
// the pool shows the same. The seed names the failing run.
//
//   ORDO_SEEDS=200           how many schedules (1,000)
//   ORDO_FIRST_SEED=17       where to start (0): with ORDO_SEEDS=1 this repeats one run
//   ORDO_HISTORY_DIR=folder  write the history of every run there, for tools/check_history.py
#include <algorithm>
#include <atomic>
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
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/pool/pool.h"
#include "tests/support/gates.h"
#include "tests/support/history.h"
#include "tests/support/pool_model.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::Background;
using testing_support::Ending;
using testing_support::eventually;
using testing_support::Gates;
using testing_support::History;
using testing_support::PoolMode;
using testing_support::PoolModel;
using testing_support::PoolSchedule;
using testing_support::Verdict;
using testing_support::Watchdog;
using Number = std::uint64_t;
using Output = PoolModel::Output;

struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void throw_one_of(int type) {
  switch (type) {
    case 1:
      throw 42;
    case 2:
      throw "text";
    case 3:
      throw std::runtime_error("error");
    case 4:
      throw std::string("string");
    default:
      try {
        throw std::out_of_range("inner");
      } catch (...) {
        std::throw_with_nested(std::logic_error("outer"));
      }
  }
}

class Driver {
 public:
  explicit Driver(std::uint64_t seed)
      : random_(seed),
        plan_(random_),
        model_(plan_),
        history_(clock_, {.kind = plan_.mode == PoolMode::keyed ? "keyed" : "pool",
                          .window = plan_.window + plan_.buffer,
                          .max_workers = plan_.workers_max,
                          .ordered = plan_.mode == PoolMode::ordered}) {
    PoolOptions<Number> options{.workers = plan_.workers,
                                .buffer_size = plan_.buffer,
                                .preserve_order = plan_.mode == PoolMode::ordered,
                                .order_buffer_size = plan_.window,
                                .order_timeout = plan_.order_timeout,
                                .process_timeout = plan_.process_timeout,
                                .fail_stop = plan_.fail_stop,
                                .clock = &clock_};
    if (plan_.scaled) {
      options.autoscale = Autoscale{.min_workers = 1,
                                    .max_workers = plan_.workers_max,
                                    .scale_up_cooldown = 100us,
                                    .scale_down_cooldown = 100us,
                                    .scale_down_after = 200us,
                                    .check_interval = 50us,
                                    .step = 1 + random_() % 2};
    }
    if (plan_.mode == PoolMode::keyed) {
      options.partition_key = [keys = plan_.key_count](Number n) { return n % keys; };
    }
    options.on_error = [this](const Number& n, std::exception_ptr) { note(failed_, n, true); };
    options.on_late = [this](const Number& n) { note(late_, n, false); };
    options.on_cleanup = [this] { ++cleanups_; };
    const auto handle = [this](const Number& n, std::stop_token token) { return work(n, token); };
    if (plan_.emit) {
      pool_ = std::make_unique<Pool<Number, Output>>(
          handle, [this](Output output) { emit(output); }, options);
    } else {
      pool_ = std::make_unique<Pool<Number, Output>>(handle, options);
    }
  }

  // Throws Mismatch when the pool does not do what the model says.
  void drive() {
    settle();
    for (; step_ < plan_.step_limit && !model_.ended(); ++step_) {
      if (model_.items().size() == plan_.item_count) {
        if (plan_.ending == Ending::drain) close();
        if (model_.all_finished()) break;
      }
      one_step();
      if (random_() % 2 == 0) settle();  // Otherwise the next step comes while this one sinks in.
    }
    settle();
    if (model_.ended()) return finish_failed();
    if (plan_.ending == Ending::drain) return finish_drained();
    if (plan_.ending == Ending::stop) return finish_stopped();
    finish_destroyed();
  }

  // After a mismatch, so that the pool can end at all.
  void give_up() { gates_.open_all({.dropped = true}); }

  bool write_history(const std::string& path) { return pool_.reset(), history_.write(path); }

  std::string describe() const {
    return std::string("mode ") + std::to_string(static_cast<int>(plan_.mode)) + ", workers " +
           std::to_string(plan_.workers) + ".." + std::to_string(plan_.workers_max) + ", window " +
           std::to_string(plan_.window) + ", buffer " + std::to_string(plan_.buffer) +
           (plan_.emit ? ", emit" : "") + (plan_.fail_stop ? ", fail_stop" : "") +
           ", process_timeout " + std::to_string(plan_.process_timeout.value_or(0ns).count()) +
           ", order_timeout " + std::to_string(plan_.order_timeout.value_or(0ns).count()) +
           ", ending " + std::to_string(static_cast<int>(plan_.ending)) + ", step " +
           std::to_string(step_) +
           (steps_.size() < 3'000 ? steps_ : "\n  ..." + steps_.substr(steps_.size() - 3'000));
  }

 private:
  // ---- on the workers' threads

  std::vector<Output> work(Number n, std::stop_token token) {
    static std::atomic<std::uint64_t> threads = 0;
    thread_local const std::uint64_t self = ++threads;
    const bool keyed = plan_.mode == PoolMode::keyed;
    keyed ? history_.start(n % plan_.key_count, n, self) : history_.begin(n, self);
    const Verdict verdict = gates_.enter(n, std::move(token));
    const std::size_t outs = verdict.thrown != 0 ? 0 : verdict.outs;
    if (keyed) {
      history_.finish(n % plan_.key_count, n, self, verdict.thrown != 0 ? "err" : "ok");
    } else {
      history_.done(n, verdict.dropped ? 0 : outs, self);
    }
    if (verdict.thrown != 0) throw_one_of(verdict.thrown);
    std::vector<Output> outputs;
    for (std::size_t i = 0; i < outs; ++i)
      outputs.emplace_back(n, i);
    return outputs;
  }

  void emit(Output output) {
    std::lock_guard guard(mutex_);
    came_.push_back(output);
    if (plan_.mode != PoolMode::keyed) history_.out(output.first, output.second);
  }

  void note(std::multiset<Number>& where, Number n, bool is_error) {
    std::lock_guard guard(mutex_);
    where.insert(n);
    if (is_error && plan_.mode != PoolMode::keyed) history_.err(n);
  }

  // ---- steps

  void require(bool condition, const std::string& what) const {
    if (!condition) throw Mismatch(what);
  }

  void log(const std::string& what, Number n) {
    steps_ += "\n  " + std::to_string(clock_.now().time_since_epoch().count()) + " " + what + " " +
              std::to_string(n);
  }

  void one_step() {
    for (int attempt = 0; attempt < 200; ++attempt) {
      const std::uint64_t choice = random_() % 100;
      if (choice < 35 ? push() : choice < 65 ? let_go() : choice < 85 ? take() : advance()) return;
    }
    // Nothing random was possible: a handler returns, whichever can.
    require(let_go() || take(), "nothing can happen any more");
  }

  void close() {
    closed_ = true;
    pool_->close();
  }

  bool push() {
    if (model_.items().size() == plan_.item_count || model_.is_doomed()) return false;
    absorb();
    const bool emits = plan_.emit && plan_.mode != PoolMode::ordered && model_.has_untaken();
    if (emits) return false;  // The window is about to change.
    const auto [used_min, used_max] = model_.window_used();
    if (used_min >= plan_.window) {
      require(!pool_->try_push(9'999), "admitted into a full window");
      return false;
    }
    if (used_max >= plan_.window) return false;
    // The history must know of a failure before it sees the input that takes its place.
    require(eventually([&] { return reports().empty(); }), "a failure is not reported");
    const Number n = model_.items().size();
    plan_.mode == PoolMode::keyed ? history_.enq(n % plan_.key_count, n) : history_.in(n);
    require(eventually([&] { return pool_->try_push(n); }), "not admitted into a free window");
    log("push", n);
    model_.admit(clock_.now());
    return true;
  }

  Verdict random_verdict() {
    if (random_() % 100 < plan_.failures) return {.thrown = static_cast<int>(1 + random_() % 5)};
    return {.outs = random_() % 3 != 0 ? 1 : random_() % 4};
  }

  bool let_go() {
    std::vector<Number> inside;
    for (Number n = 0; n < model_.items().size(); ++n) {
      if (model_.items()[n].stage == PoolModel::Stage::inside) inside.push_back(n);
    }
    if (inside.empty()) return false;
    return_from(inside[random_() % inside.size()]);
    return true;
  }

  void return_from(Number n) {
    Verdict verdict = random_verdict();
    verdict.dropped = model_.items()[n].complete;
    gates_.open(n, verdict);
    require(gates_.await_left(n), "a handler cannot go on");
    log(verdict.thrown != 0 ? "throws" : "returns " + std::to_string(verdict.outs) + " from", n);
    model_.leave(n, verdict, clock_.now());
  }

  bool take() {
    if (!model_.can_take()) return false;
    std::optional<Output> output;
    require(eventually([&] { return (output = pool_->try_pop()).has_value(); }),
            "an output that is due does not come");
    took(*output);
    return true;
  }

  void took(const Output& output) {
    log("takes", output.first);
    if (plan_.mode != PoolMode::keyed && !plan_.emit) history_.out(output.first, output.second);
    const std::string problem = model_.take(output.first, output.second, clock_.now());
    require(problem.empty(), "input " + std::to_string(output.first) + ": " + problem);
  }

  bool advance() {
    settle();
    TimePoint target = clock_.now() + std::chrono::nanoseconds(1 + random_() % 100'000);
    const auto deadline = model_.next_deadline();
    if (deadline && *deadline < target) target = *deadline;
    if (model_.is_unsafe(target)) return false;
    if (deadline == target && model_.head_is_tied()) {
      return_from(model_.head());
      return true;
    }
    clock_.advance(target - clock_.now());
    for (const Number n : model_.expire(clock_.now())) {
      log("skips", n);
      const bool begun = model_.items()[n].stage != PoolModel::Stage::queued;
      begun ? history_.err(n) : history_.done(n, 0, 0);
    }
    settle();  // The pool must know of a timeout before the handler that missed it returns.
    return true;
  }

  // ---- what the pool must show

  void settle() {
    std::string why;
    if (model_.ended()) return;
    if (!eventually([&] { return (why = difference()).empty(); })) throw Mismatch(why);
    model_.settled();
    require(plan_.scaled || model_.started_is_prefix(), "an input started before an earlier one");
  }

  void absorb() {
    const std::vector<Number> started = gates_.started();
    for (; started_seen_ < started.size(); ++started_seen_) {
      const Number n = started[started_seen_];
      log("starts", n);
      if (n < model_.items().size() && model_.items()[n].late) history_.err(n);
      const std::string problem = model_.start(n, clock_.now());
      require(problem.empty(), "input " + std::to_string(n) + ": " + problem);
    }
    std::lock_guard guard(mutex_);
    for (; plan_.emit && came_seen_ < came_.size(); ++came_seen_) {
      if (plan_.mode != PoolMode::ordered) {
        took(came_[came_seen_]);
      } else {
        require(came_seen_ < model_.emitted().size() &&
                    came_[came_seen_] == model_.emitted()[came_seen_],
                "emitted input " + std::to_string(came_[came_seen_].first) + " out of turn");
      }
    }
  }

  static std::string compare(const char* what, std::uint64_t seen,
                             std::pair<std::size_t, std::size_t> expected) {
    if (expected.first <= seen && seen <= expected.second) return "";
    return std::string(what) + " is " + std::to_string(seen) + ", not " +
           std::to_string(expected.first) + ".." + std::to_string(expected.second) + "; ";
  }

  std::string difference() {
    absorb();
    const PoolStats stats = pool_->stats();
    const auto exactly = [](std::size_t n) { return std::pair(n, n); };
    const std::size_t workers = plan_.scaled ? stats.workers : plan_.workers;
    std::string result;
    result += compare("admitted", stats.admitted, exactly(model_.items().size()));
    result += compare("running", stats.running, exactly(model_.inside()));
    result += compare("window_used", stats.window_used, model_.window_used());
    result += compare("delivered", stats.delivered, model_.delivered_count());
    result += compare("failed", stats.failed, model_.failed_count());
    result += compare("late", stats.late, exactly(model_.late_count()));
    result += compare("outputs", stats.outputs, exactly(model_.taken_count()));
    const std::size_t workers_min = closed_ ? 0 : plan_.scaled ? 1 : plan_.workers;
    result += compare("workers", stats.workers, {workers_min, plan_.workers_max});
    result += compare("window_peak", stats.window_peak, {0, plan_.window});
    const std::size_t runnable = model_.is_doomed() ? 0 : model_.runnable_count();
    const std::size_t wanted = std::min(workers, model_.inside() + runnable);
    result += compare("handlers started", model_.inside(), {wanted, plan_.workers_max});
    const bool ordered = plan_.mode == PoolMode::ordered;
    if (plan_.emit && !ordered && model_.has_untaken()) result += "outputs are not emitted; ";
    if (plan_.emit && ordered && came_seen_ != model_.emitted().size()) {
      result += "outputs are not emitted in turn; ";
    }
    result += unfired_tokens();
    const auto& head = stats.head_of_line;
    if (head && ordered && !model_.is_head(head->sequence, head->waits_for_pop)) {
      result += "the head of the line is not " + std::to_string(head->sequence) + "; ";
    }
    return result + reports();
  }

  std::string unfired_tokens() const {
    std::string result;
    for (Number n = 0; n < model_.items().size(); ++n) {
      const PoolModel::Item& item = model_.items()[n];
      const bool dropped = item.complete && item.stage == PoolModel::Stage::inside;
      if (dropped && !gates_.stop_requested(n)) result += "a stop token has not fired; ";
    }
    return result;
  }

  std::size_t failed_so_far() {
    std::lock_guard guard(mutex_);
    return failed_.size();
  }

  // Failed inputs are reported by the time they are released, skipped ones at once.
  std::string reports() {
    std::lock_guard guard(mutex_);
    std::string result =
        compare("reported failures", failed_.size(), model_.failed_count()) +
        compare("reported late", late_.size(), {model_.late_count(), model_.late_count()});
    for (const Number n : failed_) {
      require(failed_.count(n) == 1, "input " + std::to_string(n) + " was reported twice");
      require(model_.items()[n].failed, "input " + std::to_string(n) + " did not fail");
    }
    for (const Number n : late_) {
      require(model_.items()[n].late, "input " + std::to_string(n) + " is not late");
    }
    return result;
  }

  // ---- endings

  void finish_drained() {
    Background waiter([&] { pool_->wait(); });
    require(!pool_->pop(), "an output after the last one");
    require(waiter.finished(), "wait() does not return");
    require(cleanups_ == 1, "on_cleanup ran " + std::to_string(cleanups_) + " times");
    require(!pool_->try_push(1), "admitted after the end");
    settle();
    account({}, true);
    history_.end(true);
  }

  // fail_stop: nothing is emitted after the first failed input, and the pool ends by itself.
  void finish_failed() {
    // The pool must know of a timeout before the handler that missed it returns.
    const std::size_t due = std::min<std::size_t>(1, model_.failed_count().first);
    require(eventually([&] { return failed_so_far() >= due && unfired_tokens().empty(); }),
            "the first failure is not reported");
    gates_.open_all({.dropped = true});
    while (auto output = pool_->pop()) {
      took_after_end(*output);
    }
    require(!pool_->push(1), "admitted after fail_stop");
    const std::vector<Number> undone = pool_->stop(0ns);
    require(cleanups_ == 1, "on_cleanup ran " + std::to_string(cleanups_) + " times");
    collect_emitted();
    if (plan_.mode == PoolMode::ordered) {
      for (const Output& output : finale_) {
        require(output.first < model_.head(), "an output after the first failed input");
      }
    }
    account(undone, false);
    history_.cancel();
    history_.end(false);
  }

  void finish_stopped() {
    const auto grace = std::chrono::nanoseconds(random_() % 3 * 10'000);
    std::vector<Number> undone;
    {
      Background stopper([&] { undone = pool_->stop(grace); });
      for (Number n = 0; n < model_.items().size(); ++n) {
        if (model_.items()[n].stage == PoolModel::Stage::inside && random_() % 2 == 0) {
          gates_.open(n, random_verdict());
        }
      }
      require(eventually([&] { return clock_.advance(1'000ns), stopper.is_finished(); }),
              "stop() does not return");
    }
    history_.cancel();
    require(cleanups_ == 1, "on_cleanup ran " + std::to_string(cleanups_) + " times");
    require(!pool_->pop() && !pool_->push(1), "the pool goes on after stop()");
    account_when_quiet(undone);
    for (Number n = 0; n < model_.items().size(); ++n) {
      require(!gates_.is_inside(n) || gates_.stop_requested(n), "stop() fired no stop token");
    }
    const std::size_t started = gates_.started_count();
    gates_.open_all({.dropped = true});
    pool_.reset();
    // A worker that took an input before stop() may enter its handler only now, with that one.
    require(gates_.started_count() - started <= plan_.workers_max,
            "more inputs started after stop() than there are workers");
    history_.end(false);
  }

  void finish_destroyed() {
    Background destroyer([&] { pool_.reset(); });
    gates_.open_all({.dropped = true});
    require(destroyer.finished(), "the destructor does not return");
    require(cleanups_ == 1, "on_cleanup ran " + std::to_string(cleanups_) + " times");
    collect_emitted();
    history_.cancel();
    history_.end(false);
  }

  void took_after_end(const Output& output) {
    if (plan_.mode != PoolMode::keyed) history_.out(output.first, output.second);
    finale_.push_back(output);
  }

  void collect_emitted() {
    std::lock_guard guard(mutex_);
    for (; came_seen_ < came_.size(); ++came_seen_)
      finale_.push_back(came_[came_seen_]);
    if (plan_.mode != PoolMode::ordered) return;
    require(std::is_sorted(came_.begin(), came_.end()), "emitted out of order");
  }

  // stop() does not wait for a callback that runs when its grace is over; what it was called for
  // is accounted for when it has returned.
  void account_when_quiet(const std::vector<Number>& undone) {
    std::string why;
    const auto adds_up = [&] {
      try {
        collect_emitted();
        account(undone, false);
      } catch (const Mismatch& mismatch) {
        why = mismatch.what();
        return false;
      }
      return true;
    };
    require(eventually(adds_up), why);
  }

  // Every admitted input has exactly one fate, and the counters say so.
  void account(const std::vector<Number>& undone, bool drained) {
    const PoolStats stats = pool_->stats();
    const std::set<Number> listed(undone.begin(), undone.end());
    std::map<Number, std::size_t> taken;
    std::lock_guard guard(mutex_);
    for (Number n = 0; n < model_.items().size(); ++n) {
      taken[n] = plan_.emit ? 0 : model_.items()[n].taken;
    }
    for (const Output& output : plan_.emit ? came_ : finale_)
      ++taken[output.first];
    require(listed.size() == undone.size(), "stop() lists an input twice");
    require(stats.undone == undone.size(), "undone is " + std::to_string(stats.undone) +
                                               ", stop() lists " + std::to_string(undone.size()));
    require(stats.failed == failed_.size(), "failed is not what was reported");
    require(stats.late == late_.size(), "late is not what was reported");
    require(stats.admitted == model_.items().size(), "admitted is wrong");
    require(stats.admitted == stats.delivered + stats.failed + stats.late + stats.undone,
            "the counters do not add up");
    require(!drained || undone.empty(), "something is undone although all was drained");
    for (Number n = 0; n < model_.items().size(); ++n) {
      const PoolModel::Item& item = model_.items()[n];
      const std::size_t fates = failed_.count(n) + late_.count(n) + listed.count(n);
      const std::string name = "input " + std::to_string(n);
      require(fates <= 1, name + " has more than one fate");
      const bool complete = item.complete && !item.failed && !item.late && item.outs > 0;
      require(!complete || (taken[n] == item.outs) == (fates == 0),
              name + " is accounted wrongly: " + std::to_string(taken[n]) + " of " +
                  std::to_string(item.outs) + " outputs taken, fates " + std::to_string(fates));
      const bool untouched = !gates_.has_started(n) && fates == 0;
      require(!untouched, name + " was never started and is not listed");
    }
  }

  std::mt19937_64 random_;
  const PoolSchedule plan_;
  PoolModel model_;
  ManualClock clock_;
  History history_;
  Gates<Verdict> gates_;
  std::uint64_t step_ = 0;
  std::string steps_;  // What has happened, for the message.
  bool closed_ = false;
  std::size_t started_seen_ = 0;
  std::size_t came_seen_ = 0;
  std::vector<Output> finale_;  // Outputs that came when the model had ended.
  std::atomic<int> cleanups_ = 0;

  std::mutex mutex_;
  std::vector<Output> came_;  // Guarded by mutex_, as the next two.
  std::multiset<Number> failed_;
  std::multiset<Number> late_;

  std::unique_ptr<Pool<Number, Output>> pool_;
};

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST(PoolScheduleTest, EverySeededScheduleShowsWhatTheModelSays) {
  const std::uint64_t first = number_from_environment("ORDO_FIRST_SEED", 0);
  const std::uint64_t count = number_from_environment("ORDO_SEEDS", 1'000);
  const char* folder = std::getenv("ORDO_HISTORY_DIR");
  if (folder != nullptr) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  Watchdog watchdog("schedules", 100s);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    watchdog.rename("schedule with ORDO_FIRST_SEED=" + std::to_string(seed));
    Driver run(seed);
    try {
      run.drive();
    } catch (const Mismatch& mismatch) {
      run.give_up();
      FAIL() << mismatch.what() << "\n  repeat with ORDO_FIRST_SEED=" << seed << " ORDO_SEEDS=1\n  "
             << run.describe();
    }
    if (folder != nullptr) {
      ASSERT_TRUE(
          run.write_history(std::string(folder) + "/seed_" + std::to_string(seed) + ".jsonl"));
    }
  }
}

}  // namespace
}  // namespace ordo

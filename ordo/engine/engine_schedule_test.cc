// Whatever the schedule, the laws hold: random bursts, ends, failures and drains of an engine with
// tokens, step by step beside a sequential model that says what must come of each submit.
//
//   ORDO_SEEDS=200           how many schedules (300)
//   ORDO_FIRST_SEED=17       where to start (0): with ORDO_SEEDS=1 this repeats one run
//   ORDO_HISTORY_DIR=folder  write the history of every run there, for tools/check_history.py
//
// After each step the test waits until the engine has come to rest, that is until as many tasks are
// in flight and have ended as the model says. So each refusal is predicted, not only allowed.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/engine.h"
#include "tests/support/history.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::eventually;
using testing_support::History;
using testing_support::Watchdog;

enum class Way { token, at_once, throws };

struct Task {
  int number;
  Way way;
};

// What the handlers of all partitions tell the test.
class Log {
 public:
  explicit Log(const Clock& clock) : history(clock, {.kind = "keyed"}) {}

  // Uncorrelated tasks have a lane each.
  static std::uint64_t lane_of(CorrelationId id, int number) {
    return id > 0 ? static_cast<std::uint64_t>(id) : 1'000 + static_cast<std::uint64_t>(number);
  }
  void begin(const Task& task, const TaskTurn& turn, TaskToken token) {
    const std::lock_guard lock(mutex);
    history.start(lane_of(turn.id, task.number), static_cast<std::uint64_t>(task.number),
                  turn.partition);
    ++begun;
    if (task.way == Way::token) tokens.emplace(task.number, std::move(token));
  }
  void end(const Task& task, const TaskTurn& turn, bool ok) {
    const std::lock_guard lock(mutex);
    history.finish(lane_of(turn.id, task.number), static_cast<std::uint64_t>(task.number),
                   turn.partition, ok ? "ok" : "err");
    ended[task.number] = ok;
  }

  std::mutex mutex;
  History history;
  std::size_t begun = 0;
  std::map<int, TaskToken> tokens;
  std::map<int, bool> ended;
};

struct Handler {
  Log* log;

  void handle(const Task& task, const TaskTurn& turn, const TaskToken& token) {
    log->begin(task, turn, token);
    if (task.way == Way::at_once) token.done();
    if (task.way == Way::throws) throw std::runtime_error("as told");
  }
  void finished(Task& task, const TaskTurn& turn) noexcept { log->end(task, turn, true); }
  void failed(Task& task, const TaskTurn& turn, std::exception_ptr) noexcept {
    log->end(task, turn, false);
  }
};

struct Plan {
  explicit Plan(std::uint64_t seed) : random(seed) {
    options.partitions = pick(1, 5);
    options.budget = pick(1, 40);
    options.per_id = pick(1, 8);
    options.batch_max = pick(1, 6);
    options.callers_run = pick(0, 1) == 1;
    options.round_first = std::uint64_t{0} - pick(0, 20);
  }
  std::size_t pick(std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>(low, high)(random);
  }

  std::mt19937_64 random;
  EngineOptions options;
};

class ScheduledRun {
 public:
  explicit ScheduledRun(std::uint64_t seed)
      : plan_(seed),
        log_(clock_),
        present_(plan_.options.partitions),
        next_round_(plan_.options.round_first) {
    plan_.options.clock = &clock_;
    engine_.emplace(plan_.options, [this](std::size_t) { return Handler{&log_}; });
  }

  // Why it failed; empty when it did not.
  std::string operator()() {
    const std::size_t steps = plan_.pick(5, 40);
    for (std::size_t step = 0; step < steps && failure_.empty(); ++step) {
      plan_.pick(0, 2) == 0 ? submit_burst() : end_one();
      clock_.advance(std::chrono::nanoseconds(plan_.pick(0, 1'000)));
      rest();
    }
    if (failure_.empty()) drain();
    return failure_;
  }
  bool write_history(const std::string& path) { return engine_.reset(), log_.history.write(path); }

 private:
  using Engine = PartitionEngine<Task, Handler>;

  void submit_burst() {
    const std::size_t count = plan_.pick(1, 12);
    for (std::size_t i = 0; i < count; ++i) {
      const auto id = static_cast<CorrelationId>(plan_.pick(0, 7)) - 1;
      const std::size_t way = plan_.pick(0, 9);
      submit(id, way < 6 ? Way::token : way < 9 ? Way::at_once : Way::throws);
    }
    engine_->flush();
  }

  void submit(CorrelationId id, Way way) {
    const int number = next_number_++;
    const Submitted expected = predict(id);
    if (expected.entry == Entry::admitted) {
      log_.history.enq(Log::lane_of(id, number), static_cast<std::uint64_t>(number));
    }
    const Submitted submitted = engine_->submit(id, Task{number, way});
    if (submitted.entry != expected.entry || submitted.partition != expected.partition) {
      failure_ = "task " + std::to_string(number) + " of id " + std::to_string(id) + ": entry " +
                 std::to_string(static_cast<int>(submitted.entry)) + ", expected " +
                 std::to_string(static_cast<int>(expected.entry));
    }
    if (submitted.entry != Entry::admitted) return;
    ++present_[submitted.partition];
    lanes_[Log::lane_of(id, number)].push_back({number, way, id, submitted.partition});
  }

  Submitted predict(CorrelationId id) {
    const std::size_t budget = plan_.options.budget;
    if (id > 0) {
      const std::uint32_t home = engine_->partition_of(id);
      if (present_[home] >= budget) return {Entry::busy, home};
      const auto lane = lanes_.find(Log::lane_of(id, 0));
      const bool full = lane != lanes_.end() && lane->second.size() >= plan_.options.per_id;
      return {full ? Entry::id_busy : Entry::admitted, home};
    }
    const std::size_t first = next_round_++ % present_.size();
    for (std::size_t step = 0; step < present_.size(); ++step) {
      const std::size_t partition = (first + step) % present_.size();
      if (present_[partition] < budget) {
        return {Entry::admitted, static_cast<std::uint32_t>(partition)};
      }
    }
    return {Entry::busy, static_cast<std::uint32_t>(first)};
  }

  // Uses, fails, drops or uses twice one of the tokens that are out.
  void end_one() {
    settle();
    std::optional<TaskToken> token;
    {
      const std::lock_guard lock(log_.mutex);
      if (log_.tokens.empty()) return;
      auto chosen = log_.tokens.begin();
      std::advance(chosen, plan_.pick(0, log_.tokens.size() - 1));
      heads_open_.erase(chosen->first);
      const bool ok = plan_.pick(0, 3) != 0;
      expected_[chosen->first] = ok;
      token = std::move(chosen->second);
      log_.tokens.erase(chosen);
      if (ok) {
        finish_ = Finish::done;
      } else {
        finish_ = plan_.pick(0, 1) == 0 ? Finish::fail : Finish::drop;
      }
    }
    if (finish_ == Finish::done && !token->done()) failure_ = "done() did not count";
    if (finish_ == Finish::fail && !token->fail("as told")) failure_ = "fail() did not count";
    if (finish_ != Finish::drop && token->done()) failure_ = "a second use counted";
    token.reset();
    settle();
  }

  // The model's view of what must have begun and ended: heads run until one waits for its token.
  void settle() {
    for (auto lane = lanes_.begin(); lane != lanes_.end();) {
      std::deque<Held>& tasks = lane->second;
      while (!tasks.empty()) {
        const Held& head = tasks.front();
        if (begun_.insert(head.number).second && head.way != Way::token) {
          expected_[head.number] = head.way == Way::at_once;
        } else if (head.way == Way::token && expected_.count(head.number) == 0) {
          heads_open_.insert(head.number);
        }
        if (expected_.count(head.number) == 0) break;
        --present_[head.partition];
        tasks.pop_front();
      }
      lane = tasks.empty() ? lanes_.erase(lane) : std::next(lane);
    }
  }

  // Waits until the engine is where the model is.
  void rest() {
    settle();
    std::size_t present = 0;
    for (const std::size_t count : present_)
      present += count;
    const bool rested = eventually([&] {
      const PartitionStats stats = engine_->stats().total();
      const std::lock_guard lock(log_.mutex);
      return log_.begun == begun_.size() && stats.depth == present &&
             stats.in_flight == heads_open_.size() &&
             stats.processed + stats.failed == expected_.size();
    });
    const std::lock_guard lock(log_.mutex);
    if (!rested) failure_ = "the engine does not come to rest where the model does";
    if (log_.ended != expected_) failure_ = "tasks ended that should not have, or otherwise";
    if (log_.begun != begun_.size()) failure_ = "tasks began that should not have";
  }

  // What drain() lists at once must be what is left.
  void drain() {
    std::set<int> left;
    for (const auto& [lane, tasks] : lanes_) {
      for (const Held& held : tasks)
        left.insert(held.number);
    }
    const EngineDrain<Task> drained = engine_->drain(0ns);
    std::set<int> listed;
    for (const auto& undone : drained.undone) {
      listed.insert(undone.task->number);
      if (undone.in_flight != (heads_open_.count(undone.task->number) > 0)) {
        failure_ = "drain() is wrong about what is in flight";
      }
    }
    if (listed != left || drained.undone.size() != left.size()) {
      failure_ = "drain() lists " + std::to_string(drained.undone.size()) + " tasks of " +
                 std::to_string(left.size());
    }
    for (auto& [number, token] : log_.tokens) {
      if (token.done()) failure_ = "a token counted after drain()";
    }
    const PartitionStats stats = engine_->stats().total();
    if (stats.admitted != stats.processed + stats.failed + stats.undone || stats.depth != 0) {
      failure_ = "the counters do not add up";
    }
    log_.history.end(left.empty());
  }

  enum class Finish { done, fail, drop };
  struct Held {
    int number;
    Way way;
    CorrelationId id;
    std::uint32_t partition;
  };

  ManualClock clock_;
  Plan plan_;
  Log log_;
  std::vector<std::size_t> present_;  // Of each partition.
  std::uint64_t next_round_;
  std::map<std::uint64_t, std::deque<Held>> lanes_;
  std::set<int> begun_;
  std::set<int> heads_open_;      // In flight, waiting for their tokens.
  std::map<int, bool> expected_;  // Ended, and whether well.
  Finish finish_ = Finish::done;
  int next_number_ = 0;
  std::string failure_;
  std::optional<Engine> engine_;
};

std::uint64_t setting(const char* name, std::uint64_t fallback) {
  const char* given = std::getenv(name);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : fallback;
}

TEST(EngineSchedule, EveryScheduleGoesAsTheModelSays) {
  const char* given = std::getenv("ORDO_HISTORY_DIR");
  const std::string folder = given != nullptr ? given : "";
  if (!folder.empty()) std::filesystem::create_directories(folder);
  Watchdog watchdog("EngineSchedule");
  std::uint64_t seed = setting("ORDO_FIRST_SEED", 0);
  for (std::uint64_t left = setting("ORDO_SEEDS", 300); left > 0; --left, ++seed) {
    const std::string repeat = "ORDO_SEEDS=1 ORDO_FIRST_SEED=" + std::to_string(seed);
    watchdog.rename(repeat);
    ScheduledRun run(seed);
    ASSERT_EQ(run(), "") << repeat;
    if (folder.empty()) continue;
    ASSERT_TRUE(run.write_history(folder + "/seed_" + std::to_string(seed) + ".jsonl"));
  }
}

}  // namespace
}  // namespace ordo

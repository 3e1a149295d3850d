#include "tests/support/schedule_explorer.h"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <unordered_map>
#include <utility>

#include "ordo/core/check.h"
#include "tests/support/fiber.h"

namespace ordo::test {
namespace explorer {
namespace {

constexpr std::size_t kThreadCountMax = 6;
constexpr std::size_t kStepCountMax = 2'000;  // Of one schedule; more is a livelock.

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a + 0x9e3779b97f4a7c15u + (b ^ (b >> 31)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t name_of(const Location& location) {
  return (std::uint64_t{location.creator} << 32) | location.number;
}

enum class Operation : std::uint8_t {
  start,
  load,
  store,
  store_sequential,
  modify,
  fence,
  futex_wait,
  futex_wake,
  rest,
  finished,
};

const char* text_of(Operation operation) {
  constexpr std::array<const char*, 10> kTexts = {
      "start",       "load",       "store",      "store seq_cst", "modify",
      "heavy fence", "futex wait", "futex wake", "rest",          "finished"};
  return kTexts[static_cast<std::size_t>(operation)];
}

struct BufferedStore {
  Location* location;
  std::uint64_t value;
};

// A thread of the case.
struct Actor {
  Fiber fiber;
  std::uint32_t index = 0;
  Operation pending = Operation::start;
  Location* asleep_on = nullptr;  // In futex_wait.
  bool may_time_out = false;
  FutexOutcome outcome = FutexOutcome::woken;
  bool memory_changed = true;  // By others, since it last rested.
  std::uint32_t choice = 0;    // Of the step now allowed: which sleeper to wake first.
  std::uint64_t history = 0;   // Of everything it did and read.
  std::uint32_t locations_made = 0;
  std::deque<BufferedStore> buffer;
};

// What the explorer can do next in a state.
struct Transition {
  enum class Kind : std::uint8_t { step, flush, time_out } kind;
  std::uint32_t actor;
  std::uint32_t choice;
};

struct Frame {
  std::uint64_t state;
  std::vector<Transition> transitions;
  std::size_t next;
  double schedules;
};

class Explorer {
 public:
  explicit Explorer(const ExploreOptions& options) : options_(options) {}

  Exploration run(const std::function<std::unique_ptr<Case>()>& make_case);

  // Called by the code under test.
  bool in_actor() const { return running_ != nullptr; }
  void stop_before(Operation operation, const Location* location);
  void note(Operation operation, const Location* location, std::uint64_t value);
  std::uint64_t read(const Location& location) const;
  void write(Location& location, std::uint64_t value);
  void store(Location& location, std::uint64_t value, bool sequential);
  std::uint64_t modify(Location& location, const Rmw& rmw);
  FutexOutcome futex_wait(Location& location, std::uint64_t expected, bool may_time_out);
  void futex_wake(Location& location, std::uint32_t count);
  void flush_all();
  void register_location(Location& location);
  void forget_location(Location& location);
  void fail(const char* message);
  void forget_history(std::uint64_t local_state);
  // Without store buffers a fence changes nothing, and is not a step.
  bool fences() const { return options_.store_buffers && options_.membarrier; }
  Actor& self() { return *running_; }

 private:
  enum class End : std::uint8_t { finished, known_state, failed };

  void start_actors(std::vector<std::function<void()>> bodies);
  End execute(Case& current);
  std::vector<Transition> enabled() const;
  bool can_step(const Actor& actor) const;
  bool take(const Transition& transition);
  void resume(Actor& actor);
  void flush_one(Actor& actor);
  std::uint64_t state() const;
  bool all_finished() const;
  void backtrack(double schedules);
  std::string describe(const Transition& transition) const;

  const ExploreOptions options_;
  Exploration result_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::size_t actor_count_ = 0;
  Actor* running_ = nullptr;
  std::uint64_t memory_hash_ = 0;
  std::uint32_t setup_locations_made_ = 0;
  std::vector<Frame> frames_;                                 // The decisions of this execution.
  std::unordered_map<std::uint64_t, double> schedules_from_;  // Every state entered.
  std::vector<std::string> trace_;
  bool tracing_ = false;
  std::string failure_;
};

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): fibers have no other way in.
Explorer* current_explorer = nullptr;

std::uint64_t location_hash(const Location& location) {
  return mix(name_of(location), location.value);
}

void Explorer::resume(Actor& actor) {
  running_ = &actor;
  actor.fiber.resume();
  running_ = nullptr;
  if (actor.fiber.finished()) actor.pending = Operation::finished;
}

void Explorer::start_actors(std::vector<std::function<void()>> bodies) {
  ORDO_CHECK(bodies.size() <= kThreadCountMax);
  actor_count_ = bodies.size();
  while (actors_.size() < actor_count_)
    actors_.push_back(std::make_unique<Actor>());
  for (std::size_t i = 0; i < actor_count_; ++i) {
    Actor& actor = *actors_[i];
    actor.index = static_cast<std::uint32_t>(i);
    actor.pending = Operation::start;
    actor.asleep_on = nullptr;
    actor.outcome = FutexOutcome::woken;
    actor.memory_changed = true;
    actor.history = mix(i + 1, 0);
    actor.locations_made = 0;
    actor.buffer.clear();
    actor.fiber.start(std::move(bodies[i]));
  }
  // What precedes the first operation touches nothing shared: run it before the first decision.
  for (std::size_t i = 0; i < actor_count_; ++i)
    resume(*actors_[i]);
}

void Explorer::stop_before(Operation operation, const Location* location) {
  self().pending = operation;
  self().fiber.suspend();
  note(operation, location, 0);
}

void Explorer::note(Operation operation, const Location* location, std::uint64_t value) {
  Actor& actor = self();
  const std::uint64_t what =
      (location == nullptr ? 0 : name_of(*location)) * 16 + static_cast<std::uint64_t>(operation);
  actor.history = mix(mix(actor.history, what), value);
}

std::uint64_t Explorer::read(const Location& location) const {
  if (running_ != nullptr) {
    for (auto entry = running_->buffer.rbegin(); entry != running_->buffer.rend(); ++entry) {
      if (entry->location == &location) return entry->value;
    }
  }
  return location.value;
}

void Explorer::write(Location& location, std::uint64_t value) {
  if (location.value == value) return;
  memory_hash_ ^= location_hash(location);
  location.value = value;
  memory_hash_ ^= location_hash(location);
  for (std::size_t i = 0; i < actor_count_; ++i) {
    if (actors_[i].get() != running_) actors_[i]->memory_changed = true;
  }
}

void Explorer::store(Location& location, std::uint64_t value, bool sequential) {
  if (options_.store_buffers && !sequential) {
    self().buffer.push_back({&location, value});
  } else {
    write(location, value);
  }
}

std::uint64_t Explorer::modify(Location& location, const Rmw& rmw) {
  const std::uint64_t old = location.value;
  switch (rmw.kind) {
    case RmwKind::exchange:
      write(location, rmw.operand);
      break;
    case RmwKind::add:
      write(location, (old + rmw.operand) & rmw.mask);
      break;
    case RmwKind::bit_or:
      write(location, old | rmw.operand);
      break;
    case RmwKind::compare_exchange:
      if (old == rmw.expected) write(location, rmw.operand);
      break;
  }
  return old;
}

FutexOutcome Explorer::futex_wait(Location& location, std::uint64_t expected, bool may_time_out) {
  if (location.value != expected) return FutexOutcome::changed;
  Actor& actor = self();
  actor.asleep_on = &location;
  actor.may_time_out = may_time_out;
  self().fiber.suspend();  // Comes back when woken or timed out.
  return actor.outcome;
}

void Explorer::futex_wake(Location& location, std::uint32_t count) {
  std::vector<Actor*> sleepers;
  for (std::size_t i = 0; i < actor_count_; ++i) {
    if (actors_[i]->asleep_on == &location) sleepers.push_back(actors_[i].get());
  }
  for (std::size_t i = 0; i < sleepers.size() && i < count; ++i) {
    Actor& woken = *sleepers[(self().choice + i) % sleepers.size()];
    woken.asleep_on = nullptr;
    woken.outcome = FutexOutcome::woken;
  }
}

void Explorer::flush_one(Actor& actor) {
  const BufferedStore oldest = actor.buffer.front();
  actor.buffer.pop_front();
  Actor* const before = std::exchange(running_, &actor);
  write(*oldest.location, oldest.value);
  running_ = before;
}

void Explorer::flush_all() {
  for (std::size_t i = 0; i < actor_count_; ++i) {
    while (!actors_[i]->buffer.empty())
      flush_one(*actors_[i]);
  }
}

void Explorer::register_location(Location& location) {
  if (running_ != nullptr) {
    location.creator = running_->index + 1;
    location.number = running_->locations_made++;
  } else {
    location.creator = 0;
    location.number = setup_locations_made_++;
  }
  memory_hash_ ^= location_hash(location);
}

void Explorer::forget_location(Location& location) {
  memory_hash_ ^= location_hash(location);
  for (std::size_t i = 0; i < actor_count_; ++i) {
    std::erase_if(actors_[i]->buffer,
                  [&](const BufferedStore& entry) { return entry.location == &location; });
  }
}

void Explorer::fail(const char* message) {
  if (failure_.empty()) failure_ = message;
  if (running_ != nullptr) self().fiber.suspend();  // And never back.
}

void Explorer::forget_history(std::uint64_t local_state) {
  Actor& actor = self();
  actor.history = mix(mix(actor.index + 1, local_state), mix(actor.locations_made, 7));
  actor.outcome = FutexOutcome::woken;
}

bool Explorer::can_step(const Actor& actor) const {
  if (actor.asleep_on != nullptr) return false;
  switch (actor.pending) {
    case Operation::finished:
      return false;
    case Operation::store_sequential:
    case Operation::modify:
    case Operation::fence:
    case Operation::futex_wait:
    case Operation::futex_wake:
      return actor.buffer.empty();
    case Operation::rest:
      return actor.memory_changed;
    default:
      return true;
  }
}

std::vector<Transition> Explorer::enabled() const {
  std::vector<Transition> all;
  for (std::uint32_t i = 0; i < actor_count_; ++i) {
    const Actor& actor = *actors_[i];
    if (can_step(actor)) {
      std::uint32_t choices = 1;
      if (actor.pending == Operation::futex_wake) {
        std::uint32_t sleepers = 0;
        for (std::size_t other = 0; other < actor_count_; ++other)
          sleepers += actors_[other]->asleep_on != nullptr ? 1 : 0;
        choices = std::max(1u, sleepers);
      }
      for (std::uint32_t choice = 0; choice < choices; ++choice)
        all.push_back({Transition::Kind::step, i, choice});
    }
    if (actor.asleep_on != nullptr && actor.may_time_out)
      all.push_back({Transition::Kind::time_out, i, 0});
    if (!actor.buffer.empty()) all.push_back({Transition::Kind::flush, i, 0});
  }
  return all;
}

std::uint64_t Explorer::state() const {
  std::uint64_t hash = mix(memory_hash_, 1);
  for (std::size_t i = 0; i < actor_count_; ++i) {
    const Actor& actor = *actors_[i];
    std::uint64_t status = static_cast<std::uint64_t>(actor.pending) * 8;
    if (actor.asleep_on != nullptr) status += 1;
    if (actor.pending == Operation::rest && actor.memory_changed) status += 2;
    if (actor.outcome == FutexOutcome::timed_out) status += 4;
    hash = mix(hash, mix(actor.history, status));
    for (const BufferedStore& entry : actor.buffer)
      hash = mix(hash, mix(name_of(*entry.location), entry.value));
    hash = mix(hash, actor.buffer.size());
  }
  return hash;
}

bool Explorer::all_finished() const {
  return std::all_of(actors_.begin(), actors_.begin() + static_cast<std::ptrdiff_t>(actor_count_),
                     [](const auto& actor) { return actor->pending == Operation::finished; });
}

std::string Explorer::describe(const Transition& transition) const {
  const Actor& actor = *actors_[transition.actor];
  std::string text = "thread " + std::to_string(transition.actor) + ": ";
  switch (transition.kind) {
    case Transition::Kind::flush:
      return text + "its oldest store (" + std::to_string(actor.buffer.front().value) +
             ") reaches memory";
    case Transition::Kind::time_out:
      return text + "times out";
    default:
      return text + text_of(actor.pending);
  }
}

bool Explorer::take(const Transition& transition) {
  if (tracing_) trace_.push_back(describe(transition));
  Actor& actor = *actors_[transition.actor];
  switch (transition.kind) {
    case Transition::Kind::flush:
      flush_one(actor);
      break;
    case Transition::Kind::time_out:
      actor.asleep_on = nullptr;
      actor.outcome = FutexOutcome::timed_out;
      actor.history = mix(actor.history, 99);
      break;
    case Transition::Kind::step:
      if (actor.pending == Operation::rest) actor.memory_changed = false;
      actor.choice = transition.choice;
      resume(actor);
      break;
  }
  return failure_.empty();
}

Explorer::End Explorer::execute(Case& current) {
  start_actors(current.threads());
  for (std::size_t depth = 0;; ++depth) {
    if (!failure_.empty()) return End::failed;
    if (depth == frames_.size()) {
      std::vector<Transition> transitions = enabled();
      if (transitions.empty()) {
        if (!all_finished()) failure_ = "deadlock: threads are left, none can go on";
        if (failure_.empty()) failure_ = current.check();
        return failure_.empty() ? End::finished : End::failed;
      }
      const std::uint64_t now = state();
      if (!schedules_from_.emplace(now, -1.0).second) {
        // Below zero: a state of this very schedule, reached again by a polling loop.
        frames_.back().schedules += std::max(0.0, schedules_from_.at(now));
        return End::known_state;
      }
      if (depth > kStepCountMax) failure_ = "livelock: a schedule does not end";
      frames_.push_back({now, std::move(transitions), 0, 0.0});
    }
    const Frame& frame = frames_[depth];
    if (!take(frame.transitions[frame.next])) return End::failed;
  }
}

// Gives up the last decision whose alternatives are all tried, and chooses the next one.
void Explorer::backtrack(double schedules) {
  if (!frames_.empty()) frames_.back().schedules += schedules;
  while (!frames_.empty()) {
    Frame& last = frames_.back();
    if (++last.next < last.transitions.size()) return;
    const double covered = last.schedules;
    schedules_from_[last.state] = covered;
    frames_.pop_back();
    if (frames_.empty()) {
      result_.schedules = covered;
    } else {
      frames_.back().schedules += covered;
    }
  }
  result_.complete = true;
}

Exploration Explorer::run(const std::function<std::unique_ptr<Case>()>& make_case) {
  while (!result_.complete && schedules_from_.size() < options_.state_limit) {
    memory_hash_ = 0;
    setup_locations_made_ = 0;
    actor_count_ = 0;
    failure_.clear();
    trace_.clear();
    std::unique_ptr<Case> current = make_case();
    const End end = execute(*current);
    ++result_.executions;
    actor_count_ = 0;  // Its fibers are dropped; its atomics die without the explorer.
    if (end == End::failed && tracing_) {
      result_.failure = failure_;
      result_.trace = trace_;
      break;
    }
    if (end == End::failed) {
      tracing_ = true;  // Once more, the same decisions, written down.
      continue;
    }
    backtrack(end == End::finished ? 1.0 : 0.0);
  }
  result_.states = schedules_from_.size();
  return result_;
}

}  // namespace

Location::Location(std::uint64_t initial) : value(initial), creator(0), number(0) {
  if (current_explorer != nullptr) current_explorer->register_location(*this);
}

Location::~Location() {
  if (current_explorer != nullptr) current_explorer->forget_location(*this);
}

std::uint64_t load(const Location& location) {
  if (current_explorer == nullptr || !current_explorer->in_actor()) return location.value;
  current_explorer->stop_before(Operation::load, &location);
  const std::uint64_t value = current_explorer->read(location);
  current_explorer->note(Operation::load, &location, value);
  return value;
}

void store(Location& location, std::uint64_t value, bool sequential) {
  if (!current_explorer->in_actor()) {
    current_explorer->write(location, value);
    return;
  }
  const Operation operation = sequential ? Operation::store_sequential : Operation::store;
  current_explorer->stop_before(operation, &location);
  current_explorer->store(location, value, sequential);
}

std::uint64_t modify(Location& location, const Rmw& rmw) {
  if (current_explorer->in_actor()) current_explorer->stop_before(Operation::modify, &location);
  const std::uint64_t old = current_explorer->modify(location, rmw);
  if (current_explorer->in_actor()) current_explorer->note(Operation::modify, &location, old);
  return old;
}

FutexOutcome futex_wait(Location& location, std::uint64_t expected, bool may_time_out) {
  ORDO_CHECK(current_explorer->in_actor());
  current_explorer->stop_before(Operation::futex_wait, &location);
  const FutexOutcome outcome = current_explorer->futex_wait(location, expected, may_time_out);
  current_explorer->note(Operation::futex_wait, &location, static_cast<std::uint64_t>(outcome));
  return outcome;
}

void futex_wake(Location& location, std::uint32_t count) {
  if (!current_explorer->in_actor()) return;
  current_explorer->stop_before(Operation::futex_wake, &location);
  current_explorer->futex_wake(location, count);
}

void heavy_fence() {
  if (!current_explorer->in_actor() || !current_explorer->fences()) return;
  current_explorer->stop_before(Operation::fence, nullptr);
  current_explorer->flush_all();
}

void rest() {
  ORDO_CHECK(current_explorer->in_actor());
  current_explorer->stop_before(Operation::rest, nullptr);
}

Exploration explore(const ExploreOptions& options,
                    const std::function<std::unique_ptr<Case>()>& make_case) {
  ORDO_CHECK(current_explorer == nullptr);
  Explorer explorer(options);
  current_explorer = &explorer;
  Exploration result = explorer.run(make_case);
  current_explorer = nullptr;
  return result;
}

}  // namespace explorer

void explored_checkpoint(std::uint64_t local_state) {
  if (!explorer::current_explorer->in_actor()) return;
  explorer::current_explorer->forget_history(local_state);
}

void explored_failure(const char* message) {
  explorer::current_explorer->fail(message);
}

}  // namespace ordo::test

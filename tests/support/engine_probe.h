// What the tests of the engine share: a task that can be told what to do, and a handler that notes
// in a book what it was given.
//
// Threads: Book: any.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ordo/engine.h"
#include "tests/support/gates.h"

namespace ordo::engine_probe {

// Longer than any test: a drain that must be complete does not fail because the machine is slow.
constexpr std::chrono::hours kLong{1};

struct Item {
  explicit Item(int number) noexcept : value(number) {}

  int value;
  std::function<void()> before = nullptr;  // Called by the handler; may block or throw.
  std::function<void(const TaskToken&)> with_token = nullptr;  // In place of the token board.
};

struct End {
  int value;
  TaskTurn turn;
  std::string error;  // Empty: finished.
};

inline std::string text_of(const std::exception_ptr& error) {
  if (error == nullptr) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown";
  }
}

class Book {
 public:
  void begin(CorrelationId id) {
    const std::lock_guard lock(mutex_);
    if (id > 0 && ++running_[id] > 1) ++overlaps_;
  }
  void leave(CorrelationId id) {
    const std::lock_guard lock(mutex_);
    if (id > 0) --running_[id];
  }
  void end(End end) {
    const std::lock_guard lock(mutex_);
    ends_.push_back(std::move(end));
  }
  void batch() { batches_.fetch_add(1); }

  std::vector<End> ends() const {
    const std::lock_guard lock(mutex_);
    return ends_;
  }
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return ends_.size();
  }
  std::size_t overlaps() const {
    const std::lock_guard lock(mutex_);
    return overlaps_;
  }
  std::size_t batches() const { return batches_.load(); }
  std::vector<int> values_of(CorrelationId id) const {
    std::vector<int> values;
    for (const End& end : ends()) {
      if (end.turn.id == id) values.push_back(end.value);
    }
    return values;
  }
  std::vector<std::string> errors_of(CorrelationId id) const {
    std::vector<std::string> errors;
    for (const End& end : ends()) {
      if (end.turn.id == id) errors.push_back(end.error);
    }
    return errors;
  }

 private:
  mutable std::mutex mutex_;
  std::map<CorrelationId, int> running_;
  std::size_t overlaps_ = 0;
  std::vector<End> ends_;
  std::atomic<std::size_t> batches_{0};
};

class RecordingHandler {
 public:
  explicit RecordingHandler(Book& book) : book_(book) {}

  void handle(Item& item, const TaskTurn& turn) {
    struct Leave {
      Book& book;
      CorrelationId id;
      ~Leave() { book.leave(id); }
    } leave{book_, turn.id};
    book_.begin(turn.id);
    if (item.before) item.before();
  }
  void finished(Item& item, const TaskTurn& turn) noexcept { book_.end({item.value, turn, ""}); }
  void failed(Item& item, const TaskTurn& turn, std::exception_ptr error) noexcept {
    book_.end({item.value, turn, text_of(error)});
  }
  void batch_end() noexcept { book_.batch(); }

 private:
  Book& book_;
};

// For the constructor of an engine: each partition records in `book`.
inline auto recording(Book& book) {
  return [&book](std::size_t) { return RecordingHandler(book); };
}

// A task that stops at the gate of its number.
inline Item gated(int number, testing_support::Gates<>& gates) {
  Item item{number};
  item.before = [number, &gates] { gates.enter(static_cast<std::uint64_t>(number)); };
  return item;
}

// Where tests find the tokens of the tasks in flight.
class TokenBoard {
 public:
  void put(int value, TaskToken token) {
    const std::lock_guard lock(mutex_);
    tokens_.insert_or_assign(value, std::move(token));
    arrived_.notify_all();
  }
  // Takes the token of the task, waiting for it.
  TaskToken await(int value) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return tokens_.count(value) > 0; });
    return std::move(tokens_.extract(value).mapped());
  }
  bool has(int value) const {
    const std::lock_guard lock(mutex_);
    return tokens_.count(value) > 0;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<int, TaskToken> tokens_;
};

// Puts the token of each task on the board.
class TokenHandler {
 public:
  TokenHandler(Book& book, TokenBoard& board) : book_(book), board_(board) {}

  void handle(Item& item, const TaskTurn& turn, TaskToken token) {
    book_.begin(turn.id);
    if (item.before) item.before();
    if (item.with_token) {
      item.with_token(token);
    } else {
      board_.put(item.value, std::move(token));
    }
  }
  void finished(Item& item, const TaskTurn& turn) noexcept {
    book_.leave(turn.id);
    book_.end({item.value, turn, ""});
  }
  void failed(Item& item, const TaskTurn& turn, std::exception_ptr error) noexcept {
    book_.leave(turn.id);
    book_.end({item.value, turn, text_of(error)});
  }

 private:
  Book& book_;
  TokenBoard& board_;
};

}  // namespace ordo::engine_probe

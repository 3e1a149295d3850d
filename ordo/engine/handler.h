// What a handler of a partition engine may have: the calls the engine looks for, by their form.
//
//   struct Handler {
//     void handle(Task&, const TaskTurn&);                  // synchronous, or
//     void handle(Task&, const TaskTurn&, TaskToken);       // asynchronous: ends with its token
//     void finished(Task&, const TaskTurn&) noexcept;       // the task was done: answer here
//     void failed(Task&, const TaskTurn&, std::exception_ptr) noexcept;   // or it was not
//     void batch_end() noexcept;                            // optional: flush the answers
//     std::optional<TimePoint> next_due() const;            // optional, both: timers
//     void run_due(TimePoint now);
//   };
//
// A partition has a handler of its own, and one thread at a time calls it: its state needs no lock.
// handle() may throw anything; that is failed(). For each admitted task exactly one of finished()
// and failed() is called, unless drain() lists it. Within an id they come in the order of
// admission, and nothing of that id runs meanwhile. They and batch_end() must not block.
// A handle() that takes `const Task&` promises not to change the task: drain() can copy it then,
// even while the handler is stuck.
//
// Threads: the partition's owner: its own thread, or, with callers_run, a thread inside flush().
#pragma once

#include <concepts>
#include <exception>
#include <optional>
#include <utility>

#include "ordo/engine/options.h"
#include "ordo/engine/token.h"

namespace ordo::engine {

template <class Handler, class Task>
concept HandlesWithToken = requires(Handler& handler, Task& task, const TaskTurn& turn,
                                    TaskToken token) {
  handler.handle(task, turn, std::move(token));
};

template <class Handler, class Task>
concept HandlesAtOnce = requires(Handler& handler, Task& task, const TaskTurn& turn) {
  handler.handle(task, turn);
};

// Reads its task only, so that others may read it too.
template <class Handler, class Task>
concept HandlesConst = std::copy_constructible<Task> &&
    (HandlesWithToken<Handler, const Task> || HandlesAtOnce<Handler, const Task>);

template <class Handler, class Task>
concept Answers = requires(Handler& handler, Task& task, const TaskTurn& turn,
                           std::exception_ptr error) {
  { handler.finished(task, turn) }
  noexcept;
  { handler.failed(task, turn, std::move(error)) }
  noexcept;
};

template <class Handler, class Task>
concept TaskHandler = (HandlesWithToken<Handler, Task> ||
                       HandlesAtOnce<Handler, Task>)&&Answers<Handler, Task>;

template <class Handler>
concept EndsBatches = requires(Handler& handler) {
  handler.batch_end();
};

template <class Handler>
concept HasTimers = requires(Handler& handler, const Handler& reader, TimePoint now) {
  { reader.next_due() } -> std::convertible_to<std::optional<TimePoint>>;
  handler.run_due(now);
};

}  // namespace ordo::engine

// MessageHands: threads that run a command for a message each, and say how it went.
//
//   MessageHands hands(script, subscription, 8, wake_fd, children_mask);
//   hands.start(lane, message);                 // the message stays where it is until it is done
//   ...wake_fd is readable...
//   for (MessageHands::Done& done : hands.take_done()) settle(done.lane, done.run);
//   hands.stop_signal().request();              // ends what runs
//
// Threads: one owner; a thread of its own for each of `jobs`.
// Bounds:  start() at most `jobs` at a time; the output of a command as ChildLimits.
// Cost:    a process for each message.
#pragma once

#include <chrono>
#include <csignal>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ordo/adapters/pubsub_client/resources.h"
#include "ordo/app/child_run.h"
#include "ordo/app/spawn.h"
#include "ordo/app/stop_signal.h"
#include "ordo/lane/lane.h"
#include "ordo/runtime/channel.h"
#include "ordo/runtime/threads.h"

namespace ordo::app {

class MessageHands {
 public:
  struct Done {
    LaneHandle lane;
    ChildRun run;
  };
  struct Options {
    std::string script = {};  // For sh.
    std::string subscription = {};
    std::size_t jobs = 1;
    std::optional<std::chrono::nanoseconds> timeout = {};
  };

  // `wake_fd` is an eventfd that is written when something is done; it outlives this.
  MessageHands(Options options, int wake_fd, const sigset_t& children_mask);
  MessageHands(const MessageHands&) = delete;
  MessageHands& operator=(const MessageHands&) = delete;
  ~MessageHands();

  // REQUIRES: running() < jobs; `message` stays until it is among take_done().
  void start(LaneHandle lane, const pubsub_client::IncomingMessage& message);
  std::vector<Done> take_done();

  std::size_t running() const { return running_; }
  bool has_room() const { return running_ < options_.jobs; }
  StopSignal& stop_signal() { return stop_; }

 private:
  struct Work {
    LaneHandle lane;
    const pubsub_client::IncomingMessage* message;
  };

  void work();
  ChildRun run(const pubsub_client::IncomingMessage& message) const;

  const Options options_;
  const int wake_fd_;
  const Spawner spawner_;
  StopSignal stop_;
  Channel<Work> work_;
  std::size_t running_ = 0;  // Of the owner.
  std::mutex mutex_;
  std::vector<Done> done_;  // Guarded by mutex_.
  WorkerSet workers_;       // Last: its threads use all the rest.
};

}  // namespace ordo::app

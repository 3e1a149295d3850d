// Thread, WorkerSet: the one place where threads are made. They have names and are always joined.
//
//   Thread reader("ordo-reader", [&](std::stop_token stop) { read_until(stop); });
//   reader.stop();                    // asks, then waits for the end; the destructor does the same
//
//   WorkerSet workers("ordo-relay", [&](std::size_t index, std::stop_token stop) { ... });
//   workers.grow(4);                  // four more
//   workers.shrink(1);                // one is asked to end; it counts until it has
//   workers.stop();                   // all are asked, all are joined
//
// The name is what `top -H`, `gdb` and `perf` show; it is cut to the 15 bytes the system keeps.
// A stop token does not wake a thread that sleeps on somebody else's condition: the body registers
// a std::stop_callback, or the caller wakes it after asking.
//
// Threads: all calls from any thread, but stop() and join() of a thread not from that thread.
// Bounds:  WorkerSet: as many workers as it was told to have.
// Cost:    a thread each.
// Errors:  a body that throws ends the process: bodies catch what foreign code throws. If the
//          system refuses a thread, the constructor or grow() throws std::system_error.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ordo {

class Thread {
 public:
  using Body = std::function<void(std::stop_token)>;

  Thread() = default;  // No thread; joined already.
  // Starts `body` at once.
  Thread(std::string name, Body body);
  Thread(Thread&& other) noexcept = default;
  Thread& operator=(Thread&& other) noexcept;  // Stops the one it was before.
  ~Thread() { stop(); }

  // Asks the body to end, without waiting. Idempotent.
  void request_stop() { stop_.request_stop(); }
  // Waits until the body has ended, without asking it to. Idempotent.
  void join();
  // request_stop(), then join().
  void stop();

  // A handle by which others may ask this thread to end.
  std::stop_source stop_source() const { return stop_; }

  bool joinable() const { return thread_.joinable(); }

 private:
  std::stop_source stop_{std::nostopstate};
  std::thread thread_;
};

class WorkerSet {
 public:
  // `worker_index` is unique among the living, and the smallest that is free.
  using Body = std::function<void(std::size_t worker_index, std::stop_token)>;

  // No worker yet. A worker's name is `name`-<index>.
  WorkerSet(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}
  WorkerSet(const WorkerSet&) = delete;
  WorkerSet& operator=(const WorkerSet&) = delete;
  ~WorkerSet() { stop(); }

  // Makes `count` more workers. Returns how many it made: 0 after stop().
  std::size_t grow(std::size_t count);

  // Asks `count` workers to end, those made last first. Returns how many it asked: those already
  // asked do not count. Does not wait.
  std::size_t shrink(std::size_t count);

  // Asks all to end and waits until they have. No worker is made afterwards. Idempotent.
  void stop();

  // Asks all to end, without waiting. No worker is made afterwards. Idempotent.
  void request_stop();

  // Waits until no worker lives. More may have been made meanwhile, unless stopping.
  void wait_until_empty();

  // Workers whose body has not returned yet, those asked to end included.
  std::size_t count() const;
  // count() without those asked to end.
  std::size_t staying_count() const;
  // The most that ever lived at one time.
  std::size_t count_peak() const;

 private:
  struct Worker {
    std::size_t index = 0;
    std::size_t age = 0;  // The greater, the younger.
    bool leaving = false;
    bool ended = false;
    Thread thread;
  };

  void run(Worker& worker, std::stop_token stop);
  std::vector<std::unique_ptr<Worker>> take_ended();  // REQUIRES: mutex_ is held.
  std::size_t free_index() const;                     // REQUIRES: mutex_ is held.

  const std::string name_;
  const Body body_;

  mutable std::mutex mutex_;  // Guards all below.
  std::condition_variable ended_;
  std::vector<std::unique_ptr<Worker>> workers_;  // The living, and the ended not yet joined.
  std::size_t living_ = 0;
  std::size_t peak_ = 0;
  std::size_t made_ = 0;
  bool stopping_ = false;
};

}  // namespace ordo

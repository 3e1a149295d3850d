// History: what happened in one run, as JSON lines that tools/check_history.py can judge.
//
//   History history(clock, {.kind = "pool", .window = 8, .max_workers = 4, .ordered = true});
//   history.in(0);  history.begin(0, worker);  history.done(0, 1, worker);  history.out(0, 0);
//   history.end(true);
//   history.write(folder + "/seed_17.jsonl");
//
// Stamped with the time of `clock` in nanoseconds; lines of one instant keep the order in which
// they were recorded, and the checker reads them in that order. Hence record `in` before the push
// and `out` after the pop: the checker then sees no item earlier than the pool did.
//
// Threads: any thread may record; write() after all of them have ended.
// Bounds:  keeps every line until write().
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/core/clock.h"

namespace ordo::testing_support {

struct HistoryMeta {
  std::string_view kind = "pool";  // Or "keyed".
  std::size_t window = 0;          // Pool only; 0: not checked.
  std::size_t max_workers = 0;     // 0: not checked.
  bool ordered = true;             // Pool only.
  bool retry = false;              // Keyed only: what failed may start again.
};

class History {
 public:
  History(const Clock& clock, const HistoryMeta& meta) : clock_(clock) {
    std::string line = "{\"e\":\"meta\",\"kind\":\"" + std::string(meta.kind) + "\"";
    if (meta.kind == "pool") {
      line += number("window", meta.window);
      line += meta.ordered ? ",\"ordered\":true" : ",\"ordered\":false";
    }
    if (meta.retry) line += ",\"retry\":true";
    lines_.push_back(line + number("max_workers", meta.max_workers) + "}");
  }
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // kind "pool": an input enters, its handler begins and is done, its outputs leave. An item that
  // failed, timed out or was skipped is an err; from then on it holds no place in the window.
  void in(std::uint64_t seq) { add("in", number("seq", seq)); }
  void begin(std::uint64_t seq, std::uint64_t worker) {
    add("begin", number("seq", seq) + number("w", worker));
  }
  void done(std::uint64_t seq, std::size_t outs, std::uint64_t worker) {
    add("done", number("seq", seq) + number("outs", outs) + number("w", worker));
  }
  void out(std::uint64_t seq, std::size_t index) {
    add("out", number("seq", seq) + number("i", index));
  }
  void err(std::uint64_t seq) { add("err", number("seq", seq)); }
  void cancel() { add("cancel", ""); }

  // kind "keyed".
  void enq(std::uint64_t key, std::uint64_t n) { add("enq", lane(key, n) + ",\"res\":\"ok\""); }
  void start(std::uint64_t key, std::uint64_t n, std::uint64_t worker) {
    add("start", lane(key, n) + number("w", worker));
  }
  void finish(std::uint64_t key, std::uint64_t n, std::uint64_t worker, std::string_view result) {
    add("finish", lane(key, n) + number("w", worker) + ",\"res\":\"" + std::string(result) + "\"");
  }

  // drained: consumers were left running until nothing came any more.
  void end(bool drained) { add("end", drained ? ",\"drained\":true" : ",\"drained\":false"); }

  // False when the file cannot be written.
  [[nodiscard]] bool write(const std::string& path) const {
    std::lock_guard guard(mutex_);
    std::ofstream file(path, std::ios::trunc);
    for (const std::string& line : lines_)
      file << line << '\n';
    file.flush();
    return file.good();
  }

 private:
  static std::string number(std::string_view name, std::uint64_t value) {
    return ",\"" + std::string(name) + "\":" + std::to_string(value);
  }
  static std::string lane(std::uint64_t key, std::uint64_t n) {
    return ",\"key\":\"k" + std::to_string(key) + "\"" + number("n", n);
  }

  void add(std::string_view event, const std::string& rest) {
    std::lock_guard guard(mutex_);
    const auto time = clock_.now().time_since_epoch().count();
    lines_.push_back("{\"e\":\"" + std::string(event) + "\"" + rest +
                     ",\"t\":" + std::to_string(time) + "}");
  }

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace ordo::testing_support

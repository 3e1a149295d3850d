// SubscriptionHistory: what the clients of one subscription saw, as JSON lines of kind `broker` for
// tools/check_history.py.
//
//   SubscriptionHistory history({.subscription = "s", .topic = "t", .is_ordered = true, ...});
//   auto line = history.ack("ack", ack_id, now);     // its place is kept
//   history.answered(line, now, "ok");               // its outcome filled in
//   history.write(folder + "/seed_17.jsonl");
//
// Threads: one owner.
// Bounds:  keeps every line until write().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/core/clock.h"

namespace ordo::simulation {

struct HistoryMeta {
  std::string subscription;
  std::string topic;
  bool is_ordered = true;
  bool is_exactly_once = false;
  std::uint64_t deadline_ms = 10'000;
  std::uint64_t attempts_max = 0;
  std::uint64_t outstanding_max = 0;
};

class SubscriptionHistory {
 public:
  explicit SubscriptionHistory(const HistoryMeta& meta) : subscription_(meta.subscription) {
    std::string line = R"({"e":"meta","kind":"broker","slack_ms":0,"release_on_disconnect":true)";
    line.append(R"(,"exactly_once":)").append(meta.is_exactly_once ? "true" : "false");
    line.append(R"(,"subs":{")").append(subscription_).append(R"(":{"topic":")");
    line.append(meta.topic).append(R"(","ordered":)").append(meta.is_ordered ? "true" : "false");
    line += number("deadline_ms", meta.deadline_ms) + number("max_attempts", meta.attempts_max) +
            number("max_outstanding", meta.outstanding_max) + "}}}";
    lines_.push_back(std::move(line));
  }

  struct Publish {
    std::string uid, key, topic, batch;
    std::size_t index = 0;
    std::uint64_t offset = 0;   // 0: not known.
    std::uint64_t message = 0;  // Its id; 0: not known.
    bool is_skipped = false;    // The subscription's filter rejects it.
  };
  // `end` is nothing but for res "ok" and "fail".
  void publish(const Publish& message, TimePoint begin, TimePoint end, std::string_view res) {
    std::string line = R"({"e":"pub","p":"p","uid":")" + message.uid + R"(","key":")" +
                       message.key + R"(","topic":")" + message.topic + R"(","batch":")" +
                       message.batch + "\"" + number("idx", message.index) +
                       number("t0", stamp(begin)) + R"(,"res":")" + std::string(res) + "\"";
    line += res == "unknown" ? R"(,"t1":null)" : number("t1", stamp(end));
    if (message.offset > 0) line += number("off", message.offset);
    if (message.message > 0) line += R"(,"msg_id":"m)" + std::to_string(message.message) + "\"";
    if (message.is_skipped) line += R"(,"skip":[")" + subscription_ + "\"]";
    lines_.push_back(line + "}");
  }
  void deliver(std::string_view consumer, const Publish& message, std::string_view ack_id,
               std::uint32_t attempt, std::chrono::nanoseconds lease, TimePoint now) {
    std::string line = begin("deliver", now) + R"(,"c":")" + std::string(consumer) +
                       R"(","uid":")" + message.uid + R"(","key":")" + message.key +
                       R"(","ack_id":")" + std::string(ack_id) + R"(","msg_id":"m)" +
                       std::to_string(message.message) + "\"";
    line += R"(,"lease_ms":)" + std::to_string(static_cast<double>(lease.count()) / 1e6);
    if (attempt > 0) line += number("attempt", attempt);
    lines_.push_back(line + "}");
  }
  // event: "ack", "nack" or "modack".
  std::size_t settle(std::string_view event, std::string_view ack_id,
                     std::chrono::nanoseconds deadline, TimePoint now) {
    std::string line = R"({"e":")" + std::string(event) + R"(","sub":")" + subscription_ +
                       R"(","ack_id":")" + std::string(ack_id) + "\"" + number("t0", stamp(now));
    if (event == "modack")
      line += R"(,"deadline_ms":)" + std::to_string(static_cast<double>(deadline.count()) / 1e6);
    lines_.push_back(line + R"(,"t1":null,"res":"unknown"})");
    return lines_.size() - 1;
  }
  void answered(std::size_t line, std::string_view res, TimePoint now) {
    std::string& text = lines_[line];
    text.erase(text.rfind(R"(,"t1":null)"));
    text += number("t1", stamp(now)) + R"(,"res":")" + std::string(res) + "\"}";
  }
  void dead(std::string_view uid, TimePoint now) {
    lines_.push_back(begin("dead", now) + R"(,"uid":")" + std::string(uid) + "\"}");
  }
  void disconnect(std::string_view consumer, TimePoint now) {
    lines_.push_back(R"({"e":"disconnect","c":")" + std::string(consumer) + "\"" +
                     number("t", stamp(now)) + "}");
  }
  void crash(TimePoint now) { plain("crash", now); }
  void start(TimePoint now) { plain("start", now); }
  void end(bool is_drained, TimePoint now) {
    lines_.push_back(R"({"e":"end","drained":)" + std::string(is_drained ? "true" : "false") +
                     number("t", stamp(now)) + "}");
  }

  // False when the file cannot be written.
  [[nodiscard]] bool write(const std::string& path) const {
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
  static std::uint64_t stamp(TimePoint time) {
    return static_cast<std::uint64_t>(time.time_since_epoch().count());
  }
  std::string begin(std::string_view event, TimePoint now) const {
    return R"({"e":")" + std::string(event) + R"(","sub":")" + subscription_ + "\"" +
           number("t", stamp(now));
  }
  void plain(std::string_view event, TimePoint now) {
    lines_.push_back(R"({"e":")" + std::string(event) + "\"" + number("t", stamp(now)) + "}");
  }

  std::string subscription_;
  std::vector<std::string> lines_;
};

}  // namespace ordo::simulation

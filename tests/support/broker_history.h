// BrokerHistory: what clients of a broker saw, as JSON lines of kind `broker` for
// tools/check_history.py.
//
//   BrokerHistory history({.subscriptions = {{"S", {.topic = "T"}}}});
//   const std::int64_t begin = history.now();
//   history.published({.publisher = "p1", .topic = "T", .uid = "k#5", .key = "k", .seq = 5}, begin,
//                     BrokerHistory::Outcome::ok, 17);
//   history.delivered("S", "c1", "k#5", "k", "a9", 0, 17);
//   history.settled("ack", "S", "a9", begin, BrokerHistory::Outcome::ok);
//   history.end();
//
// Times are those of the monotonic clock, which all processes of a host share.
//
// Threads: any thread may record; write() and lines() after all of them have ended.
// Bounds:  keeps every line until write().
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "ordo/core/clock.h"

namespace ordo::testing_support {

struct HistorySubscription {
  std::string topic = "T";
  bool ordered = true;
  std::int64_t deadline_ms = 10'000;
  std::uint32_t max_attempts = 0;
  std::int64_t max_outstanding = 0;
};

struct BrokerHistoryMeta {
  std::map<std::string, HistorySubscription> subscriptions;
  std::int64_t slack_ms = 200;
  bool exactly_once = false;
  bool publisher_order = false;
};

class BrokerHistory {
 public:
  enum class Outcome : std::uint8_t { ok, fail, unknown };

  struct Published {
    std::string publisher;
    std::string topic;
    std::string uid;
    std::string key;  // Empty: none.
    std::uint64_t seq = 0;
    std::string batch{};
    std::uint64_t index = 0;
  };

  explicit BrokerHistory(const BrokerHistoryMeta& meta) { lines_.push_back(meta_line(meta)); }

  static std::int64_t now() { return system_clock().now().time_since_epoch().count(); }
  static std::string_view name_of(Outcome outcome) {
    return outcome == Outcome::ok ? "ok" : outcome == Outcome::fail ? "fail" : "unknown";
  }

  static std::string meta_line(const BrokerHistoryMeta& meta) {
    std::string line = R"({"e":"meta","kind":"broker","slack_ms":)" + std::to_string(meta.slack_ms);
    line.append(R"(,"exactly_once":)").append(meta.exactly_once ? "true" : "false");
    line.append(R"(,"publisher_order":)").append(meta.publisher_order ? "true" : "false");
    line += R"(,"subs":{)";
    bool is_first = true;
    for (const auto& [name, subscription] : meta.subscriptions) {
      if (!is_first) line += ',';
      is_first = false;
      line.append("\"").append(name).append(R"(":{"topic":")").append(subscription.topic);
      line.append(R"(","ordered":)").append(subscription.ordered ? "true" : "false");
      line.append(R"(,"deadline_ms":)").append(std::to_string(subscription.deadline_ms));
      line.append(R"(,"max_attempts":)").append(std::to_string(subscription.max_attempts));
      line.append(R"(,"max_outstanding":)").append(std::to_string(subscription.max_outstanding));
      line += '}';
    }
    return line + "}}";
  }

  // `message_id` 0: not known.
  static std::string published_line(const Published& message, std::int64_t begin, std::int64_t end,
                                    Outcome outcome, std::uint64_t message_id) {
    std::string line = R"({"e":"pub","p":")" + message.publisher + R"(","t0":)" +
                       std::to_string(begin) + R"(,"t1":)";
    line.append(end == 0 ? "null" : std::to_string(end));
    line.append(R"(,"res":")").append(name_of(outcome));
    line.append(R"(","topic":")").append(message.topic);
    line.append(R"(","uid":")").append(message.uid).append(R"(","key":")").append(message.key);
    line.append(R"(","seq":)").append(std::to_string(message.seq));
    if (message_id != 0) line.append(R"(,"msg_id":")").append(std::to_string(message_id)) += '"';
    if (!message.batch.empty()) {
      line.append(R"(,"batch":")").append(message.batch);
      line.append(R"(","idx":)").append(std::to_string(message.index));
    }
    return line + "}";
  }

  void published(const Published& message, std::int64_t begin, Outcome outcome,
                 std::uint64_t message_id) {
    add(published_line(message, begin, outcome == Outcome::unknown ? 0 : now(), outcome,
                       message_id));
  }
  void delivered(const std::string& subscription, const std::string& client, const std::string& uid,
                 const std::string& key, const std::string& ack_id, std::uint32_t attempt,
                 std::uint64_t message_id) {
    std::string line = R"({"e":"deliver","sub":")" + subscription + R"(","c":")" + client +
                       R"(","uid":")" + uid + R"(","key":")" + key + R"(","ack_id":")" + ack_id +
                       '"';
    if (attempt != 0) line.append(R"(,"attempt":)").append(std::to_string(attempt));
    line.append(R"(,"msg_id":")").append(std::to_string(message_id));
    add(line + R"(","t":)" + std::to_string(now()) + "}");
  }
  // `event`: "ack" or "nack".
  void settled(const std::string& event, const std::string& subscription, const std::string& ack_id,
               std::int64_t begin, Outcome outcome) {
    add(settled_line(event, subscription, ack_id, begin, outcome));
  }
  static std::string settled_line(const std::string& event, const std::string& subscription,
                                  const std::string& ack_id, std::int64_t begin, Outcome outcome) {
    std::string line = R"({"e":")" + event + R"(","sub":")" + subscription + R"(","ack_id":")" +
                       ack_id + R"(","t0":)" + std::to_string(begin) + R"(,"t1":)";
    line.append(outcome == Outcome::unknown ? "null" : std::to_string(now()));
    return line.append(R"(,"res":")").append(name_of(outcome)) + "\"}";
  }
  void modified(const std::string& subscription, const std::string& ack_id, std::int64_t begin,
                std::int64_t deadline_ms) {
    add(R"({"e":"modack","sub":")" + subscription + R"(","ack_id":")" + ack_id + R"(","t0":)" +
        std::to_string(begin) + R"(,"t1":null,"res":"unknown","deadline_ms":)" +
        std::to_string(deadline_ms) + "}");
  }
  void dead_lettered(const std::string& subscription, const std::string& uid) {
    add(R"({"e":"dead","sub":")" + subscription + R"(","uid":")" + uid + R"(","t":)" +
        std::to_string(now()) + "}");
  }
  // "crash", "start".
  void happened(const std::string& event) {
    add(R"({"e":")" + event + R"(","t":)" + std::to_string(now()) + "}");
  }
  void end() { add(R"({"e":"end","drained":true,"t":)" + std::to_string(now()) + "}"); }
  void add(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }

  // Into the folder that ORDO_HISTORY_DIR names; without it, nothing is written. False: it
  // cannot be written.
  [[nodiscard]] bool write(const std::string& name) const {
    const char* const folder = std::getenv("ORDO_HISTORY_DIR");
    if (folder == nullptr) return true;
    std::filesystem::create_directories(folder);
    return write_to(std::filesystem::path(folder) / (name + ".jsonl"));
  }
  [[nodiscard]] bool write_to(const std::filesystem::path& path) const {
    const std::lock_guard lock(mutex_);
    std::ofstream file(path, std::ios::trunc);
    for (const std::string& line : lines_)
      file << line << '\n';
    file.flush();
    return file.good();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace ordo::testing_support

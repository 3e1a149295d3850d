// BusHistory: what happened on a bus, as JSON lines of kind `bus` for tools/check_history.py.
//
//   BusHistory history(1000);
//   history.subscribe("a", Priority::high, 3);
//   const auto begin = history.tick();
//   history.sent("a", 17);
//   history.publish(17, begin);
//   history.receive("a", 17);
//
// Times are steps, one per event, so that the order of events is never in doubt. A frame that was
// sent and later pushed out by a newer one has one fate, dropped: revoke() corrects its line.
//
// Threads: one owner.
// Bounds:  keeps every line until write().
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ordo/bus/options.h"

namespace ordo::testing_support {

class BusHistory {
 public:
  // A critical frame may be dropped after `retry_us` of waiting and not before.
  explicit BusHistory(std::uint64_t retry_us) {
    lines_.push_back(R"({"e":"meta","kind":"bus","retry_us":)" + std::to_string(retry_us) + "}");
  }

  std::uint64_t tick() { return ++now_; }

  void subscribe(const std::string& id, Priority priority, std::size_t capacity) {
    add(R"("e":"sub","sub":")" + id + R"(","prio":)" +
        std::to_string(static_cast<unsigned>(priority)) + R"(,"cap":)" + std::to_string(capacity));
  }
  void unsubscribe(const std::string& id) { add(R"("e":"unsub","sub":")" + id + '"'); }
  // Began at `begin` and ends now.
  void publish(std::uint64_t frame, std::uint64_t begin) {
    lines_.push_back(R"({"e":"pub","n":)" + std::to_string(frame) + R"(,"t0":)" +
                     std::to_string(begin) + R"(,"t1":)" + std::to_string(tick()) + "}");
  }
  void sent(const std::string& id, std::uint64_t frame) {
    sent_lines_[{id, frame}] = lines_.size();
    add(R"("e":"sent",)" + which(id, frame));
  }
  void dropped(const std::string& id, std::uint64_t frame, const std::string& why,
               std::uint64_t waited_us = 0) {
    add(drop_event(id, frame, why, waited_us));
  }
  void revoke(const std::string& id, std::uint64_t frame) {
    std::string& line = lines_[sent_lines_.at({id, frame})];
    const std::string time = line.substr(line.rfind(",\"t\":"));
    line = "{";
    line.append(drop_event(id, frame, "full", 0)).append(time);
  }
  void receive(const std::string& id, std::uint64_t frame) {
    add(R"("e":"recv",)" + which(id, frame));
  }
  void end() { add(R"("e":"end","drained":true)"); }

  // False when the file cannot be written.
  [[nodiscard]] bool write(const std::string& path) const {
    std::ofstream file(path, std::ios::trunc);
    for (const std::string& line : lines_)
      file << line << '\n';
    file.flush();
    return file.good();
  }

 private:
  static std::string which(const std::string& id, std::uint64_t frame) {
    return R"("sub":")" + id + R"(","n":)" + std::to_string(frame);
  }
  static std::string drop_event(const std::string& id, std::uint64_t frame, const std::string& why,
                                std::uint64_t waited_us) {
    return R"("e":"drop",)" + which(id, frame) + R"(,"why":")" + why + R"(","waited_us":)" +
           std::to_string(waited_us);
  }
  void add(const std::string& event) {
    std::string line = "{";
    line.append(event).append(",\"t\":").append(std::to_string(tick())).append("}");
    lines_.push_back(std::move(line));
  }

  std::uint64_t now_ = 0;
  std::vector<std::string> lines_;
  std::map<std::pair<std::string, std::uint64_t>, std::size_t> sent_lines_;
};

}  // namespace ordo::testing_support

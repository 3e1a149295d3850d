// kill -9 of a broker under load, again and again: nothing acknowledged to a publisher is lost, no
// key is reordered, no message is dead-lettered twice.
//
// ORDO_CRASH_CYCLES sets how often (40; 10 with sanitizers), ORDO_CRASH_SEED what is random.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <spawn.h>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "tests/crash/event_log.h"
#include "tests/support/broker_history.h"
#include "tests/support/waiting.h"

namespace ordo {
namespace {

using testing_support::BrokerHistory;
using testing_support::EventLog;
using testing_support::eventually;
using Outcome = BrokerHistory::Outcome;
using Words = std::vector<std::string>;

int from_environment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

class Child {
 public:
  Child(const std::string& directory, const std::string& log, int cycle, const std::string& mode) {
    std::string program = ORDO_BROKER_CHILD;
    std::string number = std::to_string(cycle);
    std::string arguments[] = {program, directory, log, number, mode};
    char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(),
                    arguments[3].data(), arguments[4].data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), nullptr, nullptr, argv, environ), 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (!has_ended_) kill();
  }

  bool has_ended() {
    if (!has_ended_) has_ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
    return has_ended_;
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
    has_ended_ = true;
  }
  bool succeeded() const { return WIFEXITED(status_) && WEXITSTATUS(status_) == 0; }

 private:
  pid_t pid_ = 0;
  int status_ = 0;
  bool has_ended_ = false;
};

constexpr int kAttemptsMax = 5;  // As the child sets it.

// What the events of all cycles say, as a history.
class Report {
 public:
  explicit Report(BrokerHistory& history) : history_(history) {}

  void read(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
      if (!line.ends_with(EventLog::kEnd)) continue;  // Cut off by the end of its process.
      Words words;
      std::istringstream in(line);
      for (std::string word; std::getline(in, word, '\t');)
        words.push_back(word);
      take(words);
    }
  }

  void write() {
    // The process may have been killed while it wrote down how a request ended.
    std::set<std::string> cut_off;
    for (const auto& [uid, words] : begun_) {
      if (!ended_.contains(uid)) cut_off.insert(words[6]);
    }
    for (const auto& [uid, words] : begun_) {
      const auto end = ended_.find(uid);
      const bool is_ok =
          end != ended_.end() && end->second[3] == "ok" && !cut_off.contains(words[6]);
      ok_count += is_ok ? 1 : 0;
      BrokerHistory::Published message{.publisher = words[4],
                                       .topic = "T",
                                       .uid = uid,
                                       .key = words[3],
                                       .seq = std::stoull(words[5]),
                                       .batch = words[6],
                                       .index = std::stoull(words[7])};
      history_.add(BrokerHistory::published_line(
          message, time_of(words), is_ok ? time_of(end->second) : 0,
          is_ok ? Outcome::ok : Outcome::unknown, is_ok ? std::stoull(end->second[4]) : 0));
      if (is_ok && !last_time_.contains(uid)) never_delivered.insert(uid);
      // Nobody ever acknowledges those.
      if (is_ok && uid.starts_with("bad-") && !dead_.contains(uid)) never_dead.insert(uid);
    }
    for (const auto& [ack, words] : acks_) {
      const auto done = acked_.find(ack);
      const std::string result = done == acked_.end() ? "unknown" : done->second[3];
      history_.add(R"({"e":"ack","sub":"S","ack_id":")" + ack + R"(","t0":)" + words[1] +
                   R"(,"t1":)" + (result == "unknown" ? "null" : done->second[1]) + R"(,"res":")" +
                   result + "\"}");
    }
    for (const auto& [uid, ids] : dead_) {
      history_.add(R"({"e":"dead","sub":"S","uid":")" + uid + R"(","t":)" +
                   std::to_string(time_of_death(uid)) + "}");
      if (ids.size() > 1) dead_twice.insert(uid);
    }
  }

  std::size_t ok_count = 0;
  std::size_t delivery_count = 0;
  std::size_t dead_count() const { return dead_.size(); }
  std::set<std::string> never_delivered;
  std::set<std::string> dead_twice;
  std::set<std::string> never_dead;  // Refused for ever, and no dead letter of it.

 private:
  static std::int64_t time_of(const Words& words) { return std::stoll(words[1]); }

  // Its key goes on as soon as it is dead-lettered: at its last failure, seen from outside. If the
  // process is killed between a delivery and its line, the next start counts what nobody wrote
  // down. The checker allows for that behind the first crash; before it, the death is at the next
  // start.
  std::int64_t time_of_death(const std::string& uid) {
    const std::int64_t last = last_time_[uid];
    const auto second = starts_.empty() ? starts_.end() : std::next(starts_.begin());
    const bool is_counted_later =
        attempts_[uid] < kAttemptsMax && second != starts_.end() && last < *second;
    return is_counted_later ? *second : last + 1;
  }

  void take(const Words& words) {
    const std::string& event = words[0];
    if (event == "begin") {
      begun_[words[2]] = words;
    } else if (event == "end") {
      ended_[words[2]] = words;
    } else if (event == "deliver") {
      ++delivery_count;
      ++attempts_[words[2]];
      uid_of_[words[4]] = words[2];
      last_time_[words[2]] = time_of(words);
      std::string line = R"({"e":"deliver","sub":"S","c":"c","uid":")" + words[2] + R"(","key":")" +
                         words[3] + R"(","ack_id":")" + words[4] + R"(","msg_id":")" + words[6] +
                         R"(","t":)" + words[1];
      if (words[5] != "0") line += R"(,"attempt":)" + words[5];
      history_.add(line + "}");
    } else if (event == "ack") {
      acks_[words[2]] = words;
    } else if (event == "acked") {
      acked_[words[2]] = words;
    } else if (event == "nack") {
      last_time_[uid_of_[words[2]]] = time_of(words);
      history_.add(R"({"e":"nack","sub":"S","ack_id":")" + words[2] + R"(","t0":)" + words[1] +
                   R"(,"t1":null,"res":"unknown"})");
    } else if (event == "dead") {
      dead_[words[2]].insert(words[3]);
    } else if (event == "start") {
      starts_.insert(time_of(words));
      history_.add(R"({"e":"start","t":)" + words[1] + "}");
    }
  }

  BrokerHistory& history_;
  std::map<std::string, Words> begun_, ended_;  // By uid.
  std::map<std::string, Words> acks_, acked_;   // By ack id.
  std::map<std::string, std::string> uid_of_;   // By ack id.
  std::map<std::string, std::int64_t> last_time_;
  std::map<std::string, int> attempts_;  // Deliveries written down.
  std::set<std::int64_t> starts_;
  std::map<std::string, std::set<std::string>> dead_;  // Message ids of the dead letters of a uid.
};

TEST(BrokerKillTest, NothingIsLostAndNoKeyIsReorderedHoweverOftenTheBrokerIsKilled) {
  const int cycles = from_environment("ORDO_CRASH_CYCLES", testing_support::kIsSanitized ? 10 : 40);
  std::mt19937 random(static_cast<unsigned>(from_environment("ORDO_CRASH_SEED", 1)));
  testing_support::Watchdog watchdog("BrokerKillTest",
                                     std::chrono::seconds(std::max(280, cycles * 7)));
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("ordo_kill_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string data = folder / "data";
  const std::string log = folder / "events.log";

  BrokerHistory history({.subscriptions = {{"S", {.max_attempts = kAttemptsMax}}}});
  for (int cycle = 0; cycle < cycles; ++cycle) {
    const std::uintmax_t size = std::filesystem::exists(log) ? std::filesystem::file_size(log) : 0;
    // From "as it opens" to "after hundreds of messages".
    const std::uintmax_t enough = size + random() % 40'000;
    Child child(data, log, cycle, "load");
    ASSERT_TRUE(eventually(
        [&] {
          if (child.has_ended()) return true;
          return std::filesystem::exists(log) && std::filesystem::file_size(log) >= enough;
        },
        std::chrono::seconds(120)))
        << "cycle " << cycle;
    ASSERT_FALSE(child.has_ended()) << "cycle " << cycle << ": it could not start";
    child.kill();
    history.happened("crash");
  }
  Child last(data, log, cycles, "drain");
  ASSERT_TRUE(eventually([&] { return last.has_ended(); }, std::chrono::seconds(120)));
  ASSERT_TRUE(last.succeeded());

  Report report(history);
  report.read(log);
  report.write();
  history.end();
  EXPECT_TRUE(report.never_delivered.empty()) << *report.never_delivered.begin();
  EXPECT_TRUE(report.never_dead.empty()) << *report.never_dead.begin();
  EXPECT_TRUE(report.dead_twice.empty()) << *report.dead_twice.begin();
  EXPECT_GT(report.ok_count, static_cast<std::size_t>(cycles));
  EXPECT_TRUE(history.write("broker_kill"));
  std::printf("%d kills, %zu publishes confirmed, %zu deliveries, %zu dead letters\n", cycles,
              report.ok_count, report.delivery_count, report.dead_count());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ordo

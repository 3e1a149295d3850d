// ordo sub: what it prints, what it runs and in which order, how it ends.
#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "broker_program.h"

namespace ordo::flow {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class SubProgramTest : public testing::Test {
 protected:
  void create(const Words& more = {}) {
    broker_->good({"topics", "create", "orders"});
    Words words = {"subscriptions", "create", "billing", "--topic", "orders", "--ordered"};
    words.insert(words.end(), more.begin(), more.end());
    broker_->good(words);
  }
  void restart() {
    const std::string at = broker_->host();
    EXPECT_EQ(broker_->stop().status, 0);
    broker_ = std::make_unique<BrokerProgram>(folder_, at);
  }

  const Folder folder_;
  std::unique_ptr<BrokerProgram> broker_ = std::make_unique<BrokerProgram>(folder_);
};

TEST_F(SubProgramTest, WithoutAckMessagesStay) {
  create();
  broker_->good({"pub", "orders", "hello", "--key", "k"});
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(broker_->good({"sub", "billing", "--data", "--count", "1"}), "hello\n");
  EXPECT_EQ(broker_->good({"sub", "billing", "--data", "--count", "1", "--ack"}), "hello\n");
  EXPECT_EQ(broker_->good({"sub", "billing", "--data", "--idle", "50ms"}), "");
}

TEST_F(SubProgramTest, ACommandGetsTheMessageAndItsVariables) {
  create();
  broker_->good({"pub", "orders", "hello", "--key", "user 1", "--attr", "content-type=a b"});
  EXPECT_THAT(broker_->good({"sub", "billing", "--count", "1", "--exec",
                             "cat; echo \" $ORDO_KEY|$ORDO_ATTR_content_type|$ORDO_SUBSCRIPTION\";"
                             "[ -n \"$ORDO_MESSAGE_ID\" ] && [ -n \"$ORDO_PUBLISH_TIME\" ]"}),
              testing::Eq("hello user 1|a b|projects/ordo/subscriptions/billing\n"));
}

// What the commands of a run did: lines "begin|end KEY NUMBER STATUS", in the order of time.
struct RunLine {
  bool is_begin = false;
  std::string key = {};
  int number = 0;
  int status = 0;
};

std::vector<RunLine> read_history(const std::string& text) {
  std::vector<RunLine> lines;
  for (const std::string& line : split_lines(text)) {
    std::istringstream words(line);
    std::string what;
    RunLine read;
    words >> what >> read.key >> read.number >> read.status;
    read.is_begin = what == "begin";
    lines.push_back(read);
  }
  return lines;
}

// Of a key one command at a time; each message runs until it succeeds, and then the next one.
// Returns the most commands that ran at a time.
std::size_t judge_history(const std::vector<RunLine>& lines, int messages_per_key) {
  std::set<std::string> running;
  std::map<std::string, int> next;
  std::size_t running_max = 0;
  for (const RunLine& line : lines) {
    EXPECT_EQ(line.number, next[line.key]) << line.key;
    if (line.is_begin) {
      EXPECT_TRUE(running.insert(line.key).second) << "two of " << line.key << " at once";
      running_max = std::max(running_max, running.size());
    } else {
      EXPECT_EQ(running.erase(line.key), 1u);
      if (line.status == 0) ++next[line.key];
    }
  }
  for (const auto& [key, count] : next)
    EXPECT_EQ(count, messages_per_key) << key;
  return running_max;
}

// A message has a key and a number; every third number fails the first time it is seen.
constexpr const char* kScript = R"(
read key number
echo "begin $key $number 0" >> history
status=0
if [ $((number % 3)) -eq 1 ] && mkdir "seen-$key-$number" 2>/dev/null; then status=1; fi
echo "end $key $number $status" >> history
exit $status
)";

TEST_F(SubProgramTest, AKeyRunsInOrderAlsoWhenCommandsFail) {
  constexpr int kKeys = 4;
  constexpr int kMessages = 6;
  constexpr int kRuns = kKeys * (kMessages + 2);  // Numbers 1 and 4 run twice.
  for (const char* window : {"1", "10"}) {
    SCOPED_TRACE(window);
    broker_->good({"topics", "create", std::string("orders") + window});
    const std::string name = std::string("billing") + window;
    broker_->good({"subscriptions", "create", name, "--topic", std::string("orders") + window,
                   "--ordered", "--window", window});
    std::string input;
    for (int number = 0; number < kMessages; ++number) {
      for (int key = 0; key < kKeys; ++key)
        input += "{\"k\":\"k" + std::to_string(key) + "\",\"n\":" + std::to_string(number) + "}\n";
    }
    broker_->good({"pub", std::string("orders") + window, "--key-field", "k"}, input);
    const std::string place = folder_.file(std::string("run") + window);
    const std::string script = "mkdir -p " + place + " && cd " + place +
                               " && tr -d '{}\"kn:' | tr ',' ' ' | { " + kScript + " }";
    const Finished end = broker_->run(
        {"sub", name, "--jobs", "3", "--count", std::to_string(kRuns), "--exec", script});
    EXPECT_EQ(end.status, 1) << end.err;  // Some failed, and were run again.
    EXPECT_THAT(end.err, HasSubstr("was not acknowledged: exit status 1"));
    const std::vector<RunLine> history =
        read_history(folder_.read(std::string("run") + window + "/history"));
    judge_history(history, kMessages);
    EXPECT_EQ(history.size(), 2u * kRuns);
  }
}

TEST_F(SubProgramTest, KeysRunSideBySide) {
  create();
  broker_->good({"pub", "orders", "a", "--key", "a"});
  broker_->good({"pub", "orders", "b", "--key", "b"});
  const std::string a = folder_.fifo("a");
  const std::string b = folder_.fifo("b");
  // Each waits for the other: neither could end alone.
  const std::string script = "if [ $ORDO_KEY = a ]; then echo x > " + a + "; cat " + b +
                             "; else cat " + a + "; echo y > " + b + "; fi";
  const std::string out =
      broker_->good({"sub", "billing", "--jobs", "2", "--count", "2", "--exec", script});
  EXPECT_THAT(out, AllOf(HasSubstr("x\n"), HasSubstr("y\n")));
}

TEST_F(SubProgramTest, ASignalLetsWhatRunsFinish) {
  create();
  broker_->good({"pub", "orders", "one", "--key", "k"});
  broker_->good({"pub", "orders", "two", "--key", "k"});
  FifoReader began(folder_.fifo("began"));
  const std::string go = folder_.fifo("go");
  Program sub(broker_->to_here(
      {"sub", "billing", "--exec", "echo begin > " + folder_.file("began") + "; cat " + go}));
  EXPECT_EQ(began.read_line(), "begin");
  sub.signal(SIGINT);
  ASSERT_EQ(std::system(("echo done > " + go).c_str()), 0);
  const Finished end = sub.finish();
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_THAT(end.out, StartsWith("done\n"));
  EXPECT_EQ(broker_->good({"sub", "billing", "--ack", "--data", "-n1"}), "two\n");
}

TEST_F(SubProgramTest, ALostBrokerIsFoundAgain) {
  create();
  Program sub(broker_->to_here({"sub", "billing", "--ack", "--data", "--count", "2"}));
  broker_->good({"pub", "orders", "one", "--key", "k"});
  EXPECT_EQ(sub.read_line(), "one");
  restart();
  broker_->good({"pub", "orders", "two", "--key", "k"});
  // The first one again, if its ack was not stored before the broker went.
  const std::string line = sub.read_line();
  EXPECT_TRUE(line == "one" || line == "two") << line;
  const Finished end = sub.finish();
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("looking for it again"));
}

TEST_F(SubProgramTest, EndsWhenNobodyReadsWhatItPrintsAlsoIfNothingMoreComes) {
  create();
  broker_->good({"pub", "orders", "one", "--key", "k"});
  Program sub(broker_->to_here({"sub", "billing", "--ack", "--data"}));
  EXPECT_EQ(sub.read_line(), "one");
  sub.close_output();
  const Finished end = sub.finish();
  EXPECT_EQ(end.status, 0) << end.err;
}

TEST_F(SubProgramTest, WhatCannotBeWrittenIsNotAcknowledgedAndSaid) {
  create();
  broker_->good({"pub", "orders", "one", "--key", "k"});
  const std::string command = std::string(ORDO_PROGRAM) + " sub billing --ack --data --count 1" +
                              " --host " + broker_->host() + " > /dev/full 2> " +
                              folder_.file("errors");
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_THAT(folder_.read("errors"), HasSubstr("No space left"));
  EXPECT_EQ(broker_->good({"sub", "billing", "--ack", "--data", "-n1"}), "one\n");
}

TEST_F(SubProgramTest, WhatIsWrongIsSaid) {
  EXPECT_THAT(broker_->run({"sub", "billing"}).err, HasSubstr("not found"));
  EXPECT_EQ(broker_->run({"sub", "billing"}).status, 1);
  EXPECT_THAT(run_ordo({"sub", "billing", "--exec", "cat", "--ack"}).err, HasSubstr("leave --ack"));
  EXPECT_THAT(run_ordo({"sub", "billing", "--jobs", "0"}).err, HasSubstr("--jobs: '0'"));
  EXPECT_THAT(run_ordo({"sub", "billing", "--timeout", "1s"}).err, HasSubstr("is for --exec"));
}

TEST_F(SubProgramTest, ACommandThatTakesTooLongIsEnded) {
  create();
  broker_->good({"pub", "orders", "one", "--key", "k"});
  const Finished end = broker_->run(
      {"sub", "billing", "--count", "1", "--timeout", "50ms", "--exec", "exec tail -f /dev/null"});
  EXPECT_EQ(end.status, 1);
  EXPECT_EQ(broker_->good({"sub", "billing", "--ack", "--data", "-n1"}), "one\n");
}

}  // namespace
}  // namespace ordo::flow

#include "ordo/app/child_run.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace ordo::app {
namespace {

using namespace std::chrono_literals;

sigset_t no_signals() {
  sigset_t mask;
  sigemptyset(&mask);
  return mask;
}

class ChildRunTest : public testing::Test {
 protected:
  // As the program does: who writes to a child that has gone is told by write().
  static void SetUpTestSuite() { ::signal(SIGPIPE, SIG_IGN); }

  ChildRun run(std::string script, std::optional<std::string_view> input = std::nullopt) {
    std::string shell = "sh", option = "-c";
    char* argv[] = {shell.data(), option.data(), script.data(), nullptr};
    return run_child(spawner_, {.file = "/bin/sh", .argv = argv, .input = input}, limits_, stop_,
                     system_clock());
  }

  // The same with a timeout, long enough for the script to say at least one line before.
  ChildRun run_into_timeout(const std::string& script) {
    for (limits_.timeout = 100ms;; *limits_.timeout *= 4) {
      ChildRun run = this->run(script);
      if (run.out.ends_with('\n') || limits_.timeout > 20s) return run;
    }
  }

  static std::ptrdiff_t open_files() {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  }

  // No process of the group is left. A killed orphan exists until whoever adopted it reaps it, so
  // this looks again, for a while.
  static bool group_is_gone(const std::string& leader) {
    const TimePoint deadline = system_clock().now() + 10s;
    while (::kill(-static_cast<pid_t>(std::stoi(leader)), 0) == 0) {
      if (system_clock().now() > deadline) return false;
      std::this_thread::yield();
    }
    return errno == ESRCH;
  }

  Spawner spawner_{no_signals()};
  StopSignal stop_;
  ChildLimits limits_;
};

TEST_F(ChildRunTest, OutputAndErrorsComeBackWholeAndApart) {
  const ChildRun run = this->run("echo out; echo err >&2; echo out2");
  EXPECT_EQ(run.ending, Ending::succeeded);
  EXPECT_EQ(run.out, "out\nout2\n");
  EXPECT_EQ(run.err, "err\n");
}

TEST_F(ChildRunTest, ExitStatusAndSignalAreTold) {
  const ChildRun exited = run("exit 7");
  EXPECT_EQ(exited.ending, Ending::exited);
  EXPECT_EQ(exited.code, 7);
  const ChildRun killed = run("kill -9 $$");
  EXPECT_EQ(killed.ending, Ending::signaled);
  EXPECT_EQ(killed.code, 9);
}

TEST_F(ChildRunTest, StandardInputIsEmptyUnlessGiven) {
  EXPECT_EQ(run("cat; echo end").out, "end\n");
  const std::string big(3'000'000, 'x');
  EXPECT_EQ(run("cat", big).out.size(), big.size());
  EXPECT_EQ(run("head -c 1", big).out, "x");
}

TEST_F(ChildRunTest, ATimeoutEndsTheWholeProcessGroup) {
  limits_.kill_grace = 50ms;
  const ChildRun run = run_into_timeout("trap '' TERM; echo $$; sleep 1000 & sleep 1000");
  ASSERT_EQ(run.ending, Ending::timed_out);
  EXPECT_TRUE(group_is_gone(run.out));
}

TEST_F(ChildRunTest, AGrandchildThatClosedItsOutputIsEndedToo) {
  const ChildRun run = run_into_timeout(
      "(trap '' TERM; echo $$; exec sleep 1000 >/dev/null 2>&1) & exec sleep 1000");
  ASSERT_EQ(run.ending, Ending::timed_out);
  EXPECT_TRUE(group_is_gone(run.out));
}

TEST_F(ChildRunTest, AStopEndsARunAndSoDoesAStopBeforeIt) {
  std::thread stopper([&] { stop_.request(); });
  const ChildRun run = this->run("exec sleep 1000");
  stopper.join();
  EXPECT_EQ(run.ending, Ending::cancelled);
}

TEST_F(ChildRunTest, ForceDoesNotWaitForTheGrace) {
  limits_.kill_grace = 1000s;
  stop_.force();
  EXPECT_EQ(run("trap '' TERM; sleep 1000").ending, Ending::cancelled);
}

TEST_F(ChildRunTest, AChildThatClosesItsOutputIsStillWaitedFor) {
  EXPECT_EQ(run("exec >&- 2>&-; exit 3").code, 3);
  limits_.timeout = 100ms;
  EXPECT_EQ(run("exec sleep 1000 >&- 2>&-").ending, Ending::timed_out);
}

TEST_F(ChildRunTest, TooMuchOutputEndsTheChildAndSaysWhichOptionToRaise) {
  limits_.output_bytes_max = 100'000;
  const ChildRun run = this->run("yes");
  EXPECT_EQ(run.ending, Ending::overflowed);
  EXPECT_EQ(run.out.size(), 100'000u);
  EXPECT_NE(run.message.find("--max-output"), std::string::npos);
}

TEST_F(ChildRunTest, TenMegabytesOfOutputComeWhole) {
  EXPECT_EQ(run("head -c 10000000 /dev/zero").out.size(), 10'000'000u);
}

TEST_F(ChildRunTest, AFileThatCannotBeStartedIsAnEnding) {
  std::string name = "x";
  char* argv[] = {name.data(), nullptr};
  const ChildRun run = run_child(spawner_, {.file = "/nowhere/x", .argv = argv, .input = {}},
                                 limits_, stop_, system_clock());
  EXPECT_EQ(run.ending, Ending::not_started);
  EXPECT_EQ(run.code, ENOENT);
}

TEST_F(ChildRunTest, AScriptWithoutInterpreterIsRunByTheShell) {
  // A name of its own: the tests of several builds may run at the same time.
  const std::string file =
      testing::TempDir() + "script-without-interpreter." + std::to_string(::getpid());
  std::ofstream(file) << "echo \"$1\"\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  std::string name = "x", argument = "a b";
  char* argv[] = {name.data(), argument.data(), nullptr};
  const ChildRun run = run_child(spawner_, {.file = file.c_str(), .argv = argv, .input = {}},
                                 limits_, stop_, system_clock());
  EXPECT_EQ(run.out, "a b\n");
  std::filesystem::remove(file);
}

TEST_F(ChildRunTest, NoDescriptorIsLeftOpenAndNoneIsInherited) {
  const std::ptrdiff_t before = open_files();
  limits_.timeout = 50ms;
  run("echo; exit 1");
  run("exec sleep 1000");
  run("cat", "x");
  EXPECT_EQ(open_files(), before);
  limits_.timeout.reset();
  EXPECT_EQ(run("ls -l /proc/self/fd | grep -cE 'eventfd|pidfd'").out, "0\n");
}

TEST_F(ChildRunTest, TheMaskOfSignalsIsTheOneGivenAndPipesSignal) {
  EXPECT_EQ(run("grep SigBlk /proc/self/status | cut -f2").out, "0000000000000000\n");
  ::signal(SIGPIPE, SIG_IGN);
  const std::string ignored = run("grep SigIgn /proc/self/status | cut -f2").out;
  EXPECT_EQ(std::stoull(ignored, nullptr, 16) >> (SIGPIPE - 1) & 1, 0u);
}

}  // namespace
}  // namespace ordo::app

// How `ordo map` ends when somebody wants it to: signals, a reader that goes away, a full disk.
#include <gtest/gtest.h>

#include "map_program.h"

namespace ordo::flow {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Jobs 1 and 2 print; the others tell their pid and stay.
std::vector<std::string> staying_jobs(const Folder& folder, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"map", "-j2", "--window", "6", "--shell"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.push_back("if [ {} -le 2 ]; then echo {}; else echo $$ > " + folder.file("pids") +
                      "; exec sleep 1000; fi");
  return arguments;
}

class MapSignalTest : public testing::TestWithParam<int> {};

TEST_P(MapSignalTest, EndsTheChildrenAndSaysWhatIsUndone) {
  const Folder folder;
  FifoReader pids(folder.fifo("pids"));
  Program program(staying_jobs(folder));
  program.write(numbers(10));
  EXPECT_EQ(program.read_line(), "1");
  EXPECT_EQ(program.read_line(), "2");
  const std::string first = pids.read_line();
  const std::string second = pids.read_line();
  program.signal(GetParam());
  const Finished end = program.finish();
  EXPECT_EQ(end.status, 128 + GetParam());
  EXPECT_EQ(end.out, "");
  EXPECT_TRUE(has(end.err, "2 jobs done")) << end.err;
  EXPECT_TRUE(has(end.err, "taken in and not done (the first is line 3)")) << end.err;
  EXPECT_TRUE(is_gone(first));
  EXPECT_TRUE(is_gone(second));
}
INSTANTIATE_TEST_SUITE_P(Signals, MapSignalTest, testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST(MapStopTest, ASecondSignalDoesNotWaitForChildrenThatIgnoreTheFirst) {
  const Folder folder;
  FifoReader pids(folder.fifo("pids"));
  Program program({"map", "-j1", "--kill-after", "1h", "--shell",
                   "trap 'echo term > " + folder.file("pids") + "' TERM; echo $$ > " +
                       folder.file("pids") + "; while :; do sleep 1000 & wait $!; done # {}"});
  program.write("1\n");
  const std::string pid = pids.read_line();
  program.signal(SIGINT);
  EXPECT_EQ(pids.read_line(), "term");
  program.signal(SIGINT);
  EXPECT_EQ(program.finish().status, 130);
  EXPECT_TRUE(is_gone(pid));
}

TEST(MapStopTest, ASignalEndsServersToo) {
  const Folder folder;
  FifoReader pids(folder.fifo("pids"));
  Program program({"map", "-j2", "--server", "--", "sh", "-c",
                   "echo $$ > " + folder.file("pids") + "; exec cat"});
  program.write("a\n");
  EXPECT_EQ(program.read_line(), "a");
  const std::string pid = pids.read_line();
  program.signal(SIGTERM);
  EXPECT_EQ(program.finish().status, 143);
  EXPECT_TRUE(is_gone(pid));
}

TEST(MapStopTest, WhatWasReportedDoneStaysDoneAndTheRestIsDoneByResuming) {
  const Folder folder;
  FifoReader pids(folder.fifo("pids"));
  const std::string command = "if [ {} -le 2 ] || [ -e " + folder.file("open") +
                              " ]; then echo {}; else echo $$ > " + folder.file("pids") +
                              "; exec sleep 1000; fi";
  const std::string journal = folder.file("jobs");
  Program program({"map", "-j2", "--joblog", journal, "--shell", command});
  program.write(numbers(10));
  EXPECT_EQ(program.read_line(), "1");
  EXPECT_EQ(program.read_line(), "2");
  pids.read_line();
  program.signal(SIGINT);
  const Finished end = program.finish();
  EXPECT_EQ(end.status, 130);
  EXPECT_TRUE(has(end.err, "--resume")) << end.err;
  folder.write("open", "");
  const Finished again =
      run_ordo({"map", "-j2", "--joblog", journal, "--resume", "--shell", command}, numbers(10));
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, numbers(8, 3));
}

TEST(MapStopTest, AReaderThatGoesAwayStopsTheRunQuietly) {
  const Folder folder;
  FifoReader pids(folder.fifo("pids"));
  Program program({"map", "-j2", "--joblog", folder.file("jobs"), "--shell",
                   "if [ {} = 2 ]; then echo $$ > " + folder.file("pids") +
                       "; exec sleep 1000; fi; echo {}; if [ {} = 3 ]; then echo 3 > " +
                       folder.file("pids") + "; fi"});
  program.write("1\n");
  EXPECT_EQ(program.read_line(), "1");
  program.close_output();
  program.write("x\n");  // Its output meets a closed pipe, behind it another job is running.
  program.write("2\n");
  const Finished end = program.finish();
  EXPECT_EQ(end.status, 141);
  EXPECT_EQ(end.err, "");
  EXPECT_FALSE(has(folder.read("jobs"), "\n2\t"));
}

TEST(MapStopTest, HeadEndsAnEndlessRun) {
  const std::string program = ORDO_PROGRAM;
  const Finished end = run_ordo(
      {"map", "--shell", "yes | " + program + " map -j2 echo 2>&1 | head -1; : {}"}, "x\n");
  EXPECT_EQ(end.out, "y\n");
  const Finished served = run_ordo(
      {"map", "--shell", "yes | " + program + " map -j2 --server cat 2>&1 | head -1; : {}"}, "x\n");
  EXPECT_EQ(served.out, "y\n");
}

TEST(MapStopTest, AnOutputThatCannotBeWrittenIsAnErrorAndNothingIsRecorded) {
  const Folder folder;
  const std::string program = ORDO_PROGRAM;
  const Finished end = run_ordo({"map", "--shell",
                                 "echo a | " + program + " map --joblog " + folder.file("jobs") +
                                     " echo > /dev/full; echo $?; : {}"},
                                "x\n");
  EXPECT_EQ(end.out, "255\n");
  EXPECT_TRUE(has(end.err, "No space left")) << end.err;
  EXPECT_EQ(split_lines(folder.read("jobs")).size(), 1u);
}

TEST(MapStopTest, NobodyReadingDoesNotKeepASignalFromEndingTheRun) {
  const Folder folder;
  FifoReader full(folder.fifo("full"));
  // Far more output than a pipe holds; nobody reads it.
  Program program(
      {"map", "-j2", "--window", "3", "--shell",
       "head -c 1000000 /dev/zero; if [ {} = 2 ]; then echo > " + folder.file("full") + "; fi"});
  program.write(numbers(3));
  full.read_line();
  program.signal(SIGINT);
  EXPECT_EQ(program.finish().status, 130);
}

}  // namespace
}  // namespace ordo::flow

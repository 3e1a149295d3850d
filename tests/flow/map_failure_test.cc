// What `ordo map` does when jobs fail: retries, timeouts, halting, dead letters, exit status.
#include <gtest/gtest.h>

#include "map_program.h"

namespace ordo::flow {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(MapFailureTest, TheExitStatusIsTheNumberOfFailures) {
  EXPECT_EQ(run_ordo({"map", "-j4", "true"}, numbers(5)).status, 0);
  EXPECT_EQ(run_ordo({"map", "-j4", "false"}, numbers(7)).status, 7);
  EXPECT_EQ(run_ordo({"map", "-j4", "false"}, numbers(100)).status, 100);
}

TEST(MapFailureTest, MoreThanAHundredFailuresAreAHundredAndOne) {
  EXPECT_EQ(run_ordo({"map", "-j4", "false"}, numbers(101)).status, 101);
  EXPECT_EQ(run_ordo({"map", "-j4", "false"}, numbers(150)).status, 101);
}

TEST(MapFailureTest, OutputAndErrorsOfAFailedJobAreShownInOrder) {
  const Finished end =
      run_ordo({"map", "-j2", "--shell", "echo o{}; echo e{} >&2; [ {} != 2 ]"}, numbers(3));
  EXPECT_EQ(end.status, 1);
  EXPECT_EQ(end.out, "o1\no2\no3\n");
  EXPECT_EQ(end.err, "e1\ne2\ne3\n");
}

TEST(MapFailureTest, AFailedJobIsRetriedAndOnlyTheLastAttemptIsShown) {
  const Folder folder;
  const std::string script = "echo x >> " + folder.file("tries-") + "{}; echo try {}; " +
                             "[ $(wc -l < " + folder.file("tries-") + "{}) -ge 3 ]";
  const Finished enough = run_ordo({"map", "--retries", "2", "--shell", script}, "a\n");
  EXPECT_EQ(enough.status, 0) << enough.err;
  EXPECT_EQ(enough.out, "try a\n");
  const Finished too_few = run_ordo({"map", "--retries", "1", "--shell", script}, "b\n");
  EXPECT_EQ(too_few.status, 1);
  EXPECT_EQ(folder.read("tries-b"), "x\nx\n");
}

TEST(MapFailureTest, ABackoffDelaysARetryAndIsCutShortByAStop) {
  const Folder folder;
  FifoReader tried(folder.fifo("tried"));
  Program program({"map", "--retries", "1", "--backoff", "1h", "--shell",
                   "echo {} > " + folder.file("tried") + "; false"});
  program.write("a\n");
  EXPECT_EQ(tried.read_line(), "a");
  program.signal(SIGINT);
  EXPECT_EQ(program.finish().status, 130);
}

TEST(MapFailureTest, ATimeoutEndsTheJobWithAllItsProcesses) {
  const Folder folder;
  const Finished end =
      run_ordo({"map", "-j3", "--timeout", "2s", "--kill-after", "100ms", "--shell",
                "if [ {} = 2 ]; then trap '' TERM; sleep 1000 & echo $! >> " + folder.file("pids") +
                    "; echo $$ >> " + folder.file("pids") + "; wait; fi; echo {}"},
               numbers(3));
  EXPECT_EQ(end.status, 1);
  EXPECT_EQ(end.out, "1\n3\n");
  EXPECT_TRUE(has(end.err, "job 2: took longer than 2s")) << end.err;
  const std::vector<std::string> pids = split_lines(folder.read("pids"));
  ASSERT_EQ(pids.size(), 2u);
  for (const std::string& pid : pids)
    EXPECT_TRUE(is_gone(pid));
}

TEST(MapFailureTest, ASignalThatEndsAJobIsTold) {
  const Finished end = run_ordo({"map", "--shell", "kill -9 $$ {}"}, "1\n");
  EXPECT_EQ(end.status, 1);
  EXPECT_TRUE(has(end.err, "job 1: killed by signal 9")) << end.err;
}

TEST(MapFailureTest, HaltOnErrorStopsAtTheFirstFailure) {
  const Folder folder;
  const Finished end = run_ordo({"map", "-j2", "--halt", "on-error", "--shell",
                                 "echo {} >> " + folder.file("begun") + "; echo {}; [ {} != 3 ]"},
                                numbers(500));
  EXPECT_EQ(end.status, 1);
  EXPECT_EQ(end.out, "1\n2\n3\n");
  EXPECT_TRUE(has(end.err, "job 3 failed")) << end.err;
  EXPECT_LT(split_lines(folder.read("begun")).size(), 100u);
}

TEST(MapFailureTest, HaltOnErrorEndsTheJobsThatRun) {
  const Folder folder;
  const std::string fifo = folder.fifo("go");
  const Finished end =
      run_ordo({"map", "-j2", "--halt", "on-error", "--shell",
                "if [ {} = 1 ]; then read x < " + fifo + "; exit 1; else echo $$ > " +
                    folder.file("pid") + "; echo > " + fifo + "; exec sleep 1000; fi"},
               "1\n2\n");
  EXPECT_EQ(end.status, 1);
  EXPECT_TRUE(is_gone(folder.read("pid")));
}

TEST(MapFailureTest, DeadLettersHoldInputAttemptsReasonAndErrors) {
  const Folder folder;
  const Finished end =
      run_ordo({"map", "-j2", "--retries", "1", "--dlq", folder.file("dlq"), "--shell",
                "echo oops {} >&2; case {} in b) exit 3;; c) kill -9 $$;; esac"},
               "a\nb\nc\n\xff\n");
  EXPECT_EQ(end.status, 2);
  const std::vector<std::string> letters = split_lines(folder.read("dlq"));
  ASSERT_EQ(letters.size(), 2u);
  EXPECT_TRUE(has(letters[0], R"({"job":2,"input":"b","attempts":2,"reason":"exit:3","exit":3,)"))
      << letters[0];
  EXPECT_TRUE(has(letters[0], R"("stderr":"oops b\n"})")) << letters[0];
  EXPECT_TRUE(has(letters[1], R"("input":"c","attempts":2,"reason":"signal:9","signal":9)"));
}

TEST(MapFailureTest, ADeadLetterThatIsNotTextIsBase64) {
  const Folder folder;
  run_ordo({"map", "--dlq", folder.file("dlq"), "false"}, "\xff\xfe\n");
  EXPECT_TRUE(has(folder.read("dlq"), R"("input_base64":"//4=")"));
}

TEST(MapFailureTest, ADeadLetterFileThatCannotBeOpenedStopsEverythingFirst) {
  const Folder folder;
  const Finished end =
      run_ordo({"map", "--dlq", "/nowhere/x", "--shell", "echo > " + folder.file("ran")}, "1\n");
  EXPECT_EQ(end.status, 255);
  EXPECT_TRUE(has(end.err, "--dlq"));
  EXPECT_EQ(folder.read("ran"), "");
}

TEST(MapFailureTest, TooMuchOutputFailsTheJobAndSaysSo) {
  const Finished end = run_ordo({"map", "--max-output", "1MB", "--shell", "yes {}"}, "1\n");
  EXPECT_EQ(end.status, 1);
  EXPECT_TRUE(has(end.err, "--max-output")) << end.err;
}

}  // namespace
}  // namespace ordo::flow

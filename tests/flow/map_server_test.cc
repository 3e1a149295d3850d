// Persistent workers: `ordo map --server`.
#include <gtest/gtest.h>

#include "map_program.h"

namespace ordo::flow {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(MapServerTest, AnswersComeInInputOrder) {
  const Finished end =
      run_ordo({"map", "--server", "-j4", "--", "sed", "-u", "s/^/a/"}, numbers(20'000));
  EXPECT_EQ(end.status, 0) << end.err;
  const std::vector<std::string> lines = split_lines(end.out);
  ASSERT_EQ(lines.size(), 20'000u);
  for (std::size_t i = 0; i < lines.size(); ++i)
    ASSERT_EQ(lines[i], "a" + std::to_string(i + 1));
}

TEST(MapServerTest, AWorkerIsStartedOncePerSlotAndNotPerLine) {
  const Folder folder;
  const Finished end = run_ordo({"map", "--server", "-j2", "--", "sh", "-c",
                                 "echo $1 >> " + folder.file("starts") + "; exec cat", "sh", "{%}"},
                                numbers(5000));
  EXPECT_EQ(end.out, numbers(5000));
  const std::vector<std::string> starts = split_lines(folder.read("starts"));
  EXPECT_LE(starts.size(), 2u);
  for (const std::string& slot : starts)
    EXPECT_TRUE(slot == "1" || slot == "2") << slot;
}

TEST(MapServerTest, ALineIsAnsweredWhileTheInputIsStillOpen) {
  Program program({"map", "--server", "-j2", "cat"});
  for (const char* line : {"a", "b", "c"}) {
    program.write(std::string(line) + "\n");
    EXPECT_EQ(program.read_line(), line);
  }
  EXPECT_EQ(program.finish().status, 0);
}

// Dies at the lines that say so; answers the others.
const std::string kMortal =
    "while read -r line; do case $line in die*) exit 7;; kill*) kill -9 $$;; esac; "
    "echo \"$line\"; done";

TEST(MapServerTest, AWorkerThatDiesFailsItsLineOnlyAndIsReplaced) {
  const Finished end =
      run_ordo({"map", "--server", "-j2", "--", "sh", "-c", kMortal}, "a\ndie\nb\nkill\nc\nd\n");
  EXPECT_EQ(end.status, 2);
  EXPECT_EQ(end.out, "a\nb\nc\nd\n");
  EXPECT_TRUE(has(end.err, "job 2: COMMAND ended with exit status 7")) << end.err;
  EXPECT_TRUE(has(end.err, "job 4: killed by signal 9")) << end.err;
}

TEST(MapServerTest, TheLineAWorkerDiedOfIsRetried) {
  const Folder folder;
  const std::string script = "while read -r line; do if [ $line = 500 ]; then echo >> " +
                             folder.file("tries") + "; [ $(wc -l < " + folder.file("tries") +
                             ") -ge 3 ] || exit 1; fi; echo $line; done";
  const Finished end = run_ordo(
      {"map", "--server", "-j2", "--retries", "2", "--", "sh", "-c", script}, numbers(1000));
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_EQ(end.out, numbers(1000));
  EXPECT_EQ(split_lines(folder.read("tries")).size(), 3u);
}

TEST(MapServerTest, EveryLineIsAccountedForWhenWorkersKeepDying) {
  std::string input, expected;
  for (int i = 0; i < 300; ++i) {
    const bool dies = i % 17 == 3;
    input += (dies ? "die" : "") + std::to_string(i) + "\n";
    if (!dies) expected += std::to_string(i) + "\n";
  }
  const Finished end = run_ordo({"map", "--server", "-j3", "--", "sh", "-c", kMortal}, input);
  EXPECT_EQ(end.status, 18);
  EXPECT_EQ(end.out, expected);
}

TEST(MapServerTest, ALineWithoutAnswerInTimeFailsAndTheNextIsAnswered) {
  const Finished end = run_ordo(
      {"map", "--server", "-j1", "--timeout", "2s", "--kill-after", "100ms", "--", "sh", "-c",
       "while read -r line; do if [ $line = 2 ]; then sleep 1000; fi; echo $line; done"},
      numbers(4));
  EXPECT_EQ(end.status, 1);
  EXPECT_EQ(end.out, "1\n3\n4\n");
  EXPECT_TRUE(has(end.err, "job 2: no answer within 2s")) << end.err;
}

TEST(MapServerTest, AWorkerThatDoesNotFlushIsNoticedAndExplained) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"sed", "s/a/b/"}, std::vector<std::string>{"tr", "a", "b"}}) {
    std::vector<std::string> arguments{"map", "--server", "-j2", "--flush-wait", "200ms", "--"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    Program program(arguments);
    program.write("a\n");  // And the input stays open.
    program.write("a\n");
    const Finished end = [&] {
      std::string line = program.read_line();
      return program.finish();
    }();
    EXPECT_EQ(end.status, 255) << end.err;
    EXPECT_TRUE(has(end.err, "does not flush its output after each line")) << end.err;
    EXPECT_TRUE(has(end.err, "stdbuf -oL " + command[0])) << end.err;
  }
}

TEST(MapServerTest, ASlowWorkerIsNotTakenForOneThatDoesNotFlush) {
  const Finished end = run_ordo({"map", "--server", "--flush-wait", "50ms", "--", "sh", "-c",
                                 "while read -r line; do sleep 0.5; echo $line; done"},
                                "a\nb\n");
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_EQ(end.out, "a\nb\n");
}

TEST(MapServerTest, AWorkerThatAnswersTooMuchIsNoticed) {
  const Finished end = run_ordo(
      {"map", "--server", "-j1", "--", "sh", "-c", "while read -r x; do echo $x; echo $x; done"},
      numbers(100));
  EXPECT_EQ(end.status, 255);
  EXPECT_TRUE(has(end.err, "more than one line")) << end.err;
}

TEST(MapServerTest, ErrorsOfAWorkerAppearWithTheirLine) {
  const Folder folder;
  const Finished end =
      run_ordo({"map", "--server", "-j1", "--dlq", folder.file("dlq"), "--", "sh", "-c",
                "while read -r x; do echo e$x >&2; [ $x != 2 ] || exit 1; echo $x; done"},
               numbers(3));
  EXPECT_EQ(end.out, "1\n3\n");
  EXPECT_TRUE(has(end.err, "e1\n") && has(end.err, "e2\n") && has(end.err, "e3\n")) << end.err;
  EXPECT_TRUE(has(folder.read("dlq"), R"("input":"2","attempts":1,"reason":"no-answer")"));
  EXPECT_TRUE(has(folder.read("dlq"), R"("stderr":"e2\n")")) << folder.read("dlq");
}

TEST(MapServerTest, NullEndsLinesInBothDirections) {
  const std::string input("a\nb\0c\0", 6);
  EXPECT_EQ(run_ordo({"map", "--server", "--null", "cat"}, input).out, input);
}

TEST(MapServerTest, AWorkerThatIgnoresTheEndOfItsInputIsEnded) {
  const Folder folder;
  const Finished end = run_ordo(
      {"map", "--server", "--kill-after", "100ms", "--", "sh", "-c",
       "echo $$ > " + folder.file("pid") + "; trap '' TERM; cat; exec sleep 1000 > /dev/null"},
      "a\n");
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_EQ(end.out, "a\n");
  EXPECT_TRUE(is_gone(folder.read("pid")));
}

TEST(MapServerTest, MemoryStaysFlatOverAMillionLines) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kLines = 150'000;  // Their own memory says nothing about ours.
#else
  constexpr int kLines = 1'000'000;
#endif
  const Finished small = run_ordo({"map", "--server", "-j2", "cat"}, numbers(50'000));
  std::string input = numbers(kLines);
  const Finished large = run_ordo({"map", "--server", "-j2", "cat"}, input);
  EXPECT_EQ(large.status, 0) << large.err;
  EXPECT_TRUE(large.out == input);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(large.peak_kilobytes, small.peak_kilobytes + 16 * 1024);
#endif
}

}  // namespace
}  // namespace ordo::flow

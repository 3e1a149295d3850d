// What may come in, and the ways a line is given to a command.
#include <gtest/gtest.h>

#include "map_program.h"

namespace ordo::flow {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(MapInputTest, NoInputMeansNoJobAndSuccess) {
  for (const bool server : {false, true}) {
    const Finished end =
        server ? run_ordo({"map", "--server", "false"}) : run_ordo({"map", "false"});
    EXPECT_EQ(end.status, 0);
    EXPECT_EQ(end.out + end.err, "");
  }
}

TEST(MapInputTest, EmptyLinesAndALastLineWithoutNewlineAreLines) {
  EXPECT_EQ(run_ordo({"map", "echo", "<{}>"}, "\na\n\nb").out, "<>\n<a>\n<>\n<b>\n");
}

TEST(MapInputTest, ALineIsOneArgumentAndIsNeverParsed) {
  const std::string hostile = "$(touch x); `id` 'a' \"b\" \\ {} {#} * ~ -n\n";
  EXPECT_EQ(run_ordo({"map", "printf", "%s\\n", "{}"}, hostile).out, hostile);
}

TEST(MapInputTest, AShellScriptGetsTheLineAsAParameter) {
  const std::string hostile = "'; echo pwned; \" $(echo x) `id` #\n";
  EXPECT_EQ(run_ordo({"map", "--shell", "printf '%s\\n' {}"}, hostile).out, hostile);
  EXPECT_EQ(run_ordo({"map", "--shell", "printf '%s\\n' \"{}\""}, hostile).out, hostile);
  EXPECT_EQ(run_ordo({"map", "--shell", "printf '%s\\n' '{}'"}, hostile).out, hostile);
  EXPECT_EQ(run_ordo({"map", "--shell", "printf '%s\\n' \"$1\""}, hostile).out, hostile);
  EXPECT_EQ(run_ordo({"map", "--shell", "echo {} | tr a b"}, "aa\n").out, "bb\n");
}

TEST(MapInputTest, NullSeparatesLinesThatContainNewlines) {
  const std::string input("a\nb\0c\0", 6);
  EXPECT_EQ(run_ordo({"map", "--null", "printf", "<%s>"}, input).out, "<a\nb><c>");
}

TEST(MapInputTest, ANulInALineFailsThatLineAndTellsWhatToDo) {
  const Finished end = run_ordo({"map", "echo"}, std::string("a\nb\0c\nd\n", 8));
  EXPECT_EQ(end.status, 1);
  EXPECT_EQ(end.out, "a\nd\n");
  EXPECT_TRUE(has(end.err, "job 2")) << end.err;
  EXPECT_TRUE(has(end.err, "NUL")) << end.err;
  EXPECT_TRUE(has(end.err, "--stdin")) << end.err;
}

TEST(MapInputTest, BinaryDataPassesUnharmed) {
  std::string input;
  for (int i = 0; i < 20'000; ++i) {
    const int byte = (i * 7919 + i / 256) % 256;
    input += byte == '\n' ? '\n' : static_cast<char>(byte);
  }
  input += '\n';
  EXPECT_TRUE(run_ordo({"map", "--stdin", "-j4", "cat"}, input).out == input);
  EXPECT_TRUE(run_ordo({"map", "--server", "-j4", "cat"}, input).out == input);
}

TEST(MapInputTest, StandardInputOfAJobIsEmptyUnlessItIsTheLine) {
  EXPECT_EQ(run_ordo({"map", "--shell", "cat; echo {}"}, "a\nb\n").out, "a\nb\n");
  EXPECT_EQ(run_ordo({"map", "--stdin", "wc", "-c"}, "abc\n").out, "4\n");
}

TEST(MapInputTest, ALineOfAHundredMegabytesPassesThroughAServerAndStandardInput) {
  const std::string line(100'000'000, 'x');
  const std::string input = "a\n" + line + "\nb\n";
  const Finished piped = run_ordo({"map", "--stdin", "--max-output", "200MB", "wc", "-c"}, input);
  EXPECT_EQ(piped.status, 0) << piped.err;
  EXPECT_EQ(piped.out, "2\n100000001\n2\n");
  const Finished served = run_ordo({"map", "--server", "--max-output", "200MB", "cat"}, input);
  EXPECT_EQ(served.status, 0) << served.err;
  EXPECT_TRUE(served.out == input);
}

TEST(MapInputTest, ALineOfAHundredMegabytesIsNoArgumentAndTheMessageSaysSo) {
  const Finished end = run_ordo({"map", "echo"}, "a\n" + std::string(100'000'000, 'x') + "\nb\n");
  EXPECT_EQ(end.status, 1);
  EXPECT_EQ(end.out, "a\nb\n");
  EXPECT_TRUE(has(end.err, "job 2")) << end.err;
  EXPECT_TRUE(has(end.err, "100000000 bytes")) << end.err;
  EXPECT_TRUE(has(end.err, "--stdin")) << end.err;
}

TEST(MapInputTest, ALineOverTheLimitFailsAndTheNextOnesDoNot) {
  for (const char* way : {"--stdin", "--server"}) {
    const Finished end = run_ordo({"map", "--max-line", "10", way, "cat"},
                                  "a\n" + std::string(1'000'000, 'x') + "\nb\n");
    EXPECT_EQ(end.status, 1);
    EXPECT_EQ(end.out, "a\nb\n");
    EXPECT_TRUE(has(end.err, "--max-line")) << end.err;
  }
}

TEST(MapInputTest, ACommandThatDoesNotExistIsNoticedBeforeAnyInputIsRead) {
  Program program({"map", "no-such-command-here", "{}"});
  const Finished end = program.finish();  // Never wrote a line.
  EXPECT_EQ(end.status, 127);
  EXPECT_TRUE(has(end.err, "'no-such-command-here'")) << end.err;
  EXPECT_TRUE(has(end.err, "PATH")) << end.err;
}

TEST(MapInputTest, ALineOfShellWithoutShellIsExplained) {
  const Finished end = run_ordo({"map", "echo {} | wc"});
  EXPECT_EQ(end.status, 127);
  EXPECT_TRUE(has(end.err, "--shell")) << end.err;
}

TEST(MapInputTest, AFileThatMayNotBeExecutedIsExplained) {
  const Folder folder;
  folder.write("script", "echo hi\n");
  const Finished end = run_ordo({"map", folder.file("script")});
  EXPECT_EQ(end.status, 126);
  EXPECT_TRUE(has(end.err, "chmod +x")) << end.err;
  EXPECT_EQ(run_ordo({"map", "/tmp"}).status, 126);
}

TEST(MapInputTest, DryRunPrintsTheCommandsAndRunsNothing) {
  const Folder folder;
  const Finished end =
      run_ordo({"map", "--dry-run", "touch", folder.file("made"), "{}", "{#}"}, "it's\nb\n");
  EXPECT_EQ(end.status, 0);
  EXPECT_EQ(end.out, "touch " + folder.file("made") + " 'it'\\''s' 1\ntouch " +
                         folder.file("made") + " b 2\n");
  EXPECT_EQ(folder.read("made"), "");
  EXPECT_EQ(run_ordo({"map", "--dry-run", "--server", "cat"}, "a b\n").out,
            "printf '%s\\n' 'a b' | cat\n");
}

TEST(MapInputTest, TenMegabytesOfOutputOfOneJobComeWhole) {
  const Finished end =
      run_ordo({"map", "-j2", "head", "-c", "{}", "/dev/zero"}, "3\n10000000\n5\n");
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_EQ(end.out.size(), 10'000'008u);
}

TEST(MapInputTest, AClosedInputIsAnErrorAndAClosedOutputToo) {
  const std::string program = ORDO_PROGRAM;
  const Finished in =
      run_ordo({"map", "--shell", program + " map echo <&- 2>&1; echo $?; : {}"}, "x\n");
  EXPECT_TRUE(has(in.out, "255")) << in.out;
  const Finished out =
      run_ordo({"map", "--shell", "echo a | " + program + " map echo >&- ; echo $?; : {}"}, "x\n");
  EXPECT_TRUE(has(out.out, "255")) << out.out;
  EXPECT_TRUE(has(out.err, "cannot write to the output")) << out.err;
}

}  // namespace
}  // namespace ordo::flow

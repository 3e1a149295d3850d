// What `ordo` shows: help, version, suggestions, completion, progress, summary.
#include <array>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>

#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include "map_program.h"

namespace ordo::flow {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(MapShownTest, HelpVersionAndSuggestions) {
  const Finished help = run_ordo({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_TRUE(has(help.out, "map") && has(help.out, "completion")) << help.out;
  EXPECT_TRUE(has(run_ordo({"map", "--help"}).out, "Exit status:"));
  const Finished version = run_ordo({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_TRUE(version.out.starts_with("ordo ")) << version.out;
  const Finished typo = run_ordo({"mpa"});
  EXPECT_EQ(typo.status, 255);
  EXPECT_TRUE(has(typo.err, "did you mean 'map'?")) << typo.err;
  EXPECT_EQ(run_ordo({}).status, 255);
  EXPECT_EQ(run_ordo({"map"}).status, 255);
}

// Calls the completion function of bash as readline would.
std::string complete_in_bash(const std::string& words, int index) {
  const std::string program = ORDO_PROGRAM;
  const Finished end = run_ordo({"map", "--", "bash", "-c",
                                 "source <(" + program + " completion bash); COMP_WORDS=(" + words +
                                     "); COMP_CWORD=" + std::to_string(index) +
                                     "; _ordo; printf '%s\\n' \"${COMPREPLY[@]}\" # {}"},
                                "x\n");
  EXPECT_EQ(end.err, "");
  return end.out;
}

TEST(MapShownTest, BashCompletesCommandsOptionsValuesAndTheCommandToRun) {
  EXPECT_EQ(complete_in_bash("ordo ma", 1), "map\n");
  EXPECT_EQ(complete_in_bash("ordo completion ''", 2), "-h\n--help\nbash\nzsh\n");
  EXPECT_EQ(complete_in_bash("ordo map --work", 2), "--workers\n");
  EXPECT_TRUE(has(complete_in_bash("ordo map --r", 2), "--retries\n"));
  EXPECT_EQ(complete_in_bash("ordo map --halt on", 3), "on-error\n");
  EXPECT_EQ(complete_in_bash("ordo map --halt = ne", 4), "never\n");
  EXPECT_TRUE(has(complete_in_bash("ordo map -j 4 ech", 4), "echo\n"));
  EXPECT_TRUE(has(complete_in_bash("ordo map -- ech", 3), "echo\n"));
  const Folder folder;
  folder.write("journal", "");
  EXPECT_EQ(complete_in_bash("ordo map --joblog " + folder.file("jour"), 3),
            folder.file("journal") + "\n");
  EXPECT_EQ(complete_in_bash("ordo map cat " + folder.file("jour"), 3),
            folder.file("journal") + "\n");
}

TEST(MapShownTest, CompletionScriptsAreValid) {
  for (const char* shell : {"bash", "zsh"}) {
    const Finished found =
        run_ordo({"map", "--shell", std::string("command -v ") + shell + " # {}"}, "x\n");
    if (found.status != 0) continue;  // That shell is not here.
    const Finished script = run_ordo({"completion", shell});
    EXPECT_EQ(script.status, 0);
    const Finished check = run_ordo({"map", "--null", "--stdin", shell, "-n"}, script.out);
    EXPECT_EQ(check.status, 0) << shell << ": " << check.err;
  }
  EXPECT_EQ(run_ordo({"completion", "fish"}).status, 255);
}

TEST(MapShownTest, ProgressIsSilentWhenPiped) {
  const Finished end = run_ordo({"map", "--progress", "echo"}, numbers(20));
  EXPECT_EQ(end.out, numbers(20));
  EXPECT_EQ(end.err, "");
}

TEST(MapShownTest, ProgressIsDrawnOnATerminalAndTakenAway) {
  const app::UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal);
  ASSERT_EQ(::grantpt(terminal.get()), 0);
  ASSERT_EQ(::unlockpt(terminal.get()), 0);
  const winsize size{.ws_row = 24, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
  app::UniqueFd line(::open(::ptsname(terminal.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_EQ(::ioctl(line.get(), TIOCSWINSZ, &size), 0);

  const Folder folder;
  const std::string fifo = folder.fifo("go");
  Program program({"map", "-j1", "--progress", "--shell",
                   "if [ {} = 2 ]; then read x < " + fifo + "; fi; echo {}"},
                  line.get());
  program.write("1\n2\n");
  program.close_input();
  std::string shown;
  while (!has(shown, "50%")) {  // One of two is done, and the total is known.
    pollfd wait{terminal.get(), POLLIN, 0};
    ASSERT_GT(::poll(&wait, 1, 60'000), 0) << shown;
    std::array<char, 4096> buffer;
    const ssize_t got = ::read(terminal.get(), buffer.data(), buffer.size());
    ASSERT_GT(got, 0);
    shown.append(buffer.data(), static_cast<std::size_t>(got));
  }
  EXPECT_TRUE(has(shown, "1 done")) << shown;
  EXPECT_TRUE(has(shown, "ETA")) << shown;
  EXPECT_TRUE(has(shown, "/s")) << shown;
  folder.write("go", "\n");
  const Finished end = program.finish();
  EXPECT_EQ(end.out, "1\n2\n");
  line.reset();  // Now that nobody has the other end, the terminal can be read to its end.
  std::string rest;
  std::array<char, 4096> buffer;
  for (ssize_t got = 0; (got = ::read(terminal.get(), buffer.data(), buffer.size())) > 0;)
    rest.append(buffer.data(), static_cast<std::size_t>(got));
  EXPECT_TRUE(rest.ends_with("\r\033[K")) << rest;
}

TEST(MapShownTest, StatsTellRatePercentilesRetriesAndHeadOfLine) {
  const Finished end =
      run_ordo({"map", "-j2", "--stats", "--retries", "1", "--shell", "[ {} != 3 ]"}, numbers(5));
  EXPECT_EQ(end.status, 1);
  for (const char* part :
       {"4 jobs done, 1 failed", "1 retry", "jobs/s", "p50", "p99", "head of line"}) {
    EXPECT_TRUE(has(end.err, part)) << part << " is missing in:\n" << end.err;
  }
}

TEST(MapShownTest, AMessageAboutALineCannotDriveTheTerminal) {
  const Finished end = run_ordo({"map", std::string("no\033[31m-such\n-command")});
  EXPECT_FALSE(has(end.err, "\033")) << end.err;
}

}  // namespace
}  // namespace ordo::flow

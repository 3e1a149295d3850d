// Journal and resume: nothing recorded is run again, nothing else is lost.
#include <filesystem>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "map_program.h"

namespace ordo::flow {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::set<int> recorded(const Folder& folder) {
  std::set<int> numbers;
  const std::string text = folder.read("jobs");
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (text[begin] != '#') numbers.insert(std::atoi(text.c_str() + begin));
  }
  return numbers;
}

TEST(MapResumeTest, ASecondRunDoesOnlyWhatIsNotRecorded) {
  const Folder folder;
  const std::vector<std::string> arguments{"map",      "-j2", "--joblog", folder.file("jobs"),
                                           "--resume", "echo"};
  EXPECT_EQ(run_ordo(arguments, numbers(5)).out, numbers(5));
  EXPECT_EQ(run_ordo(arguments, numbers(8)).out, numbers(3, 6));
  const Finished nothing = run_ordo(arguments, numbers(8));
  EXPECT_EQ(nothing.out, "");
  EXPECT_EQ(nothing.status, 0);
}

TEST(MapResumeTest, ChangedInputIsRefusedBeforeAnythingRuns) {
  const Folder folder;
  const std::vector<std::string> arguments{"map", "--joblog", folder.file("jobs"), "--resume",
                                           "echo"};
  run_ordo(arguments, numbers(5));
  const Finished changed = run_ordo(arguments, "1\n2\nX\n4\n5\n6\n");
  EXPECT_EQ(changed.status, 255);
  EXPECT_EQ(changed.out, "");
  EXPECT_TRUE(has(changed.err, "line 3 has changed")) << changed.err;
  const Finished shorter = run_ordo(arguments, "1\n2\n");
  EXPECT_EQ(shorter.status, 255);
  EXPECT_TRUE(has(shorter.err, "it has 2 lines")) << shorter.err;
}

TEST(MapResumeTest, AnotherCommandIsRefused) {
  const Folder folder;
  run_ordo({"map", "--joblog", folder.file("jobs"), "echo"}, numbers(3));
  const Finished end =
      run_ordo({"map", "--joblog", folder.file("jobs"), "--resume", "echo", "x"}, numbers(3));
  EXPECT_EQ(end.status, 255);
  EXPECT_TRUE(has(end.err, "another command")) << end.err;
}

TEST(MapResumeTest, AJournalWithRecordsIsNotOverwritten) {
  const Folder folder;
  run_ordo({"map", "--joblog", folder.file("jobs"), "echo"}, numbers(3));
  const Finished end = run_ordo({"map", "--joblog", folder.file("jobs"), "echo"}, numbers(3));
  EXPECT_EQ(end.status, 255);
  EXPECT_TRUE(has(end.err, "--resume")) << end.err;
}

TEST(MapResumeTest, FailedJobsAreRunAgainOnlyWhenAsked) {
  const Folder folder;
  const std::string script = "echo {}; [ {} != 2 ] || [ -e " + folder.file("fixed") + " ]";
  const std::string journal = folder.file("jobs");
  EXPECT_EQ(run_ordo({"map", "--joblog", journal, "--shell", script}, numbers(3)).status, 1);
  folder.write("fixed", "");
  EXPECT_EQ(run_ordo({"map", "--joblog", journal, "--resume", "--shell", script}, numbers(3)).out,
            "");
  const Finished again =
      run_ordo({"map", "--joblog", journal, "--resume-failed", "--shell", script}, numbers(3));
  EXPECT_EQ(again.out, "2\n");
  EXPECT_EQ(again.status, 0);
  EXPECT_EQ(
      run_ordo({"map", "--joblog", journal, "--resume-failed", "--shell", script}, numbers(3)).out,
      "");
}

TEST(MapResumeTest, ADirectoryOrAnUnwritablePathAsJournalStopsEverythingFirst) {
  const Folder folder;
  for (const std::string& path : {folder.file(""), std::string("/nowhere/jobs")}) {
    const Finished end =
        run_ordo({"map", "--joblog", path, "--shell", "echo > " + folder.file("ran")}, "1\n");
    EXPECT_EQ(end.status, 255);
    EXPECT_TRUE(has(end.err, "--joblog")) << end.err;
    EXPECT_FALSE(std::filesystem::exists(folder.file("ran")));
  }
}

TEST(MapResumeTest, ASecondRunOnAJournalInUseIsRefused) {
  const Folder folder;
  const std::vector<std::string> arguments{"map", "--joblog", folder.file("jobs"), "--resume",
                                           "echo"};
  Program first(arguments);
  first.write("1\n");
  EXPECT_EQ(first.read_line(), "1");
  const Finished second = run_ordo(arguments, "1\n");
  EXPECT_EQ(second.status, 255);
  EXPECT_TRUE(has(second.err, "in use")) << second.err;
  EXPECT_EQ(first.finish().status, 0);
}

TEST(MapResumeTest, DryRunShowsWhatIsLeftAndWritesNothing) {
  const Folder folder;
  run_ordo({"map", "--joblog", folder.file("jobs"), "echo"}, numbers(2));
  const std::string before = folder.read("jobs");
  const Finished end = run_ordo(
      {"map", "--joblog", folder.file("jobs"), "--resume", "--dry-run", "echo"}, numbers(4));
  EXPECT_EQ(end.out, "echo 3\necho 4\n");
  EXPECT_EQ(folder.read("jobs"), before);
}

class MapKillTest : public testing::TestWithParam<unsigned> {
 protected:
  // Runs, kills with SIGKILL after a random number of lines has come out, and resumes, until a run
  // reaches its end. Returns all output.
  std::vector<std::string> run_through_kills(const std::vector<std::string>& way, int count) {
    std::mt19937 random(GetParam());
    std::vector<std::string> all;
    std::set<int> before;
    for (int round = 0; round < 50; ++round) {
      std::vector<std::string> arguments{"map", "-j3", "--joblog", folder_.file("jobs"),
                                         "--resume"};
      arguments.insert(arguments.end(), way.begin(), way.end());
      Program program(arguments);
      program.write(numbers(count));
      std::vector<std::string> lines;
      if (round < 3) {
        // Not more than are left: a fast run may have printed everything before it was killed.
        const int left = count - static_cast<int>(before.size());
        const int limit =
            left == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(left)) / 3;
        for (int i = 0; i < limit; ++i)
          lines.push_back(program.read_line());
        program.signal(SIGKILL);
      }
      const Finished end = program.finish();
      for (const std::string& line : split_lines(end.out))
        lines.push_back(line);
      for (const std::string& line : lines) {
        EXPECT_EQ(before.count(std::atoi(line.c_str())), 0u)
            << "seed " << GetParam() << ": line " << line << " was recorded and ran again";
      }
      all.insert(all.end(), lines.begin(), lines.end());
      before = recorded(folder_);
      if (end.status == 0) return all;
      EXPECT_EQ(end.status, 1000 + SIGKILL) << end.err;
    }
    ADD_FAILURE() << "no run reached its end";
    return all;
  }

  Folder folder_;
};

TEST_P(MapKillTest, NoLineIsLostAndNoRecordedLineRunsAgain) {
  const std::vector<std::string> all = run_through_kills({"echo"}, 120);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 120u) << "seed " << GetParam();
  EXPECT_EQ(recorded(folder_).size(), 120u);
}

TEST_P(MapKillTest, ServersAreResumedExactlyToo) {
  const std::vector<std::string> all = run_through_kills({"--server", "cat"}, 6000);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 6000u) << "seed " << GetParam();
  EXPECT_EQ(recorded(folder_).size(), 6000u);
}

// With a file of its own for the output not even the lines that were written and not recorded
// appear twice.
TEST_P(MapKillTest, AnOutputFileIsExactAfterKills) {
  std::mt19937 random(GetParam());
  const std::vector<std::string> arguments{
      "map",      "-j2", "--joblog", folder_.file("jobs"), "--resume", "-o", folder_.file("out"),
      "--server", "cat"};
  for (int round = 0; round < 3; ++round) {
    Program program(arguments);
    // Fed in pieces, killed after one of them: somewhere between two of its own steps.
    const int pieces = 1 + static_cast<int>(random() % 20);
    for (int piece = 0; piece < pieces; ++piece)
      program.write(numbers(100, 1 + piece * 100));
    program.signal(SIGKILL);
    program.finish();
  }
  const Finished end = run_ordo(arguments, numbers(2000));
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_TRUE(folder_.read("out") == numbers(2000)) << "seed " << GetParam();
}
INSTANTIATE_TEST_SUITE_P(Seeds, MapKillTest, testing::Range(0u, 20u));

}  // namespace
}  // namespace ordo::flow

#include "ordo/app/journal.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace ordo::app {
namespace {

class JournalTest : public testing::Test {
 protected:
  JournalTest() {
    std::string pattern = testing::TempDir() + "journal.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/jobs.log";
  }
  ~JournalTest() override { std::filesystem::remove_all(folder_); }

  static Result<Journal> open(const std::string& path, JournalMode mode,
                              const std::string& command = "cmd") {
    return Journal::open(path, {.mode = mode, .command = command});
  }

  static JobResult result(std::uint64_t number, std::uint64_t hash, Ending ending, int code = 0) {
    JobResult result;
    result.number = number;
    result.hash = hash;
    result.ending = ending;
    result.code = code;
    result.attempts = 1;
    result.out = "abc";
    return result;
  }

  void write_three() {
    Result<Journal> journal = open(path_, JournalMode::fresh);
    ASSERT_TRUE(journal) << journal.error().message;
    const std::vector<JobResult> results{result(1, 11, Ending::succeeded),
                                         result(2, 22, Ending::exited, 3),
                                         result(3, 33, Ending::cancelled)};
    ASSERT_EQ(journal->append(results, 0), 0);
  }

  std::string text() const {
    std::ifstream file(path_);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }
  void write_text(const std::string& text) const { std::ofstream(path_) << text; }

  std::string folder_;
  std::string path_;
};

using Past = Journal::Past;

TEST_F(JournalTest, WhatWasRecordedIsDoneAndWhatWasCancelledIsNot) {
  write_three();
  Result<Journal> again = open(path_, JournalMode::resume);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->past(1, 11), Past::done);
  EXPECT_EQ(again->past(2, 22), Past::done);
  EXPECT_EQ(again->past(3, 33), Past::unknown);
  EXPECT_EQ(again->past(4, 44), Past::unknown);
  EXPECT_EQ(again->last_number(), 2u);
  EXPECT_EQ(again->done_count(), 2u);
  EXPECT_EQ(again->output_end(), 6u);
}

TEST_F(JournalTest, ALineThatIsNotTheRecordedOneIsChanged) {
  write_three();
  EXPECT_EQ(open(path_, JournalMode::resume)->past(1, 12345), Past::changed);
}

TEST_F(JournalTest, ResumingTheFailedRunsThemAgain) {
  write_three();
  Result<Journal> again = open(path_, JournalMode::resume_failed);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->past(1, 11), Past::done);
  EXPECT_EQ(again->past(2, 22), Past::unknown);
  EXPECT_EQ(again->past(2, 23456), Past::changed);
  EXPECT_EQ(again->done_count(), 1u);
}

TEST_F(JournalTest, ATornLastRecordIsCutAwayWhereverItWasTorn) {
  write_three();
  const std::string whole = text();
  const std::size_t second = whole.find("\n2\t") + 1;
  for (std::size_t size = second + 1; size < whole.size(); ++size) {
    write_text(whole.substr(0, size));
    Result<Journal> again = open(path_, JournalMode::resume);
    ASSERT_TRUE(again) << "cut at " << size << ": " << again.error().message;
    EXPECT_EQ(again->past(1, 11), Past::done);
    EXPECT_EQ(again->past(2, 22), Past::unknown);
    EXPECT_EQ(text(), whole.substr(0, second));
  }
}

TEST_F(JournalTest, ATornHeaderIsWrittenAgain) {
  write_three();
  const std::string header = text().substr(0, text().find('\n') + 1);
  write_text(header.substr(0, 10));
  ASSERT_TRUE(open(path_, JournalMode::resume));
  EXPECT_EQ(text(), header);
}

TEST_F(JournalTest, DamageBeforeTheEndIsAnErrorAndChangesNothing) {
  write_three();
  std::string damaged = text();
  damaged[damaged.find("\n1\t") + 5] ^= 1;
  write_text(damaged);
  Result<Journal> again = open(path_, JournalMode::resume);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::data_loss);
  EXPECT_EQ(text(), damaged);
}

TEST_F(JournalTest, AFreshRunDoesNotOverwriteRecords) {
  write_three();
  Result<Journal> again = open(path_, JournalMode::fresh);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("--resume"), std::string::npos);
}

TEST_F(JournalTest, AnotherCommandIsRefused) {
  write_three();
  Result<Journal> again = open(path_, JournalMode::resume, "other");
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("another command"), std::string::npos);
}

TEST_F(JournalTest, AForeignFileIsLeftAsItIs) {
  write_text("my thesis\n");
  ASSERT_FALSE(open(path_, JournalMode::resume));
  EXPECT_EQ(text(), "my thesis\n");
}

TEST_F(JournalTest, ADirectoryIsRefusedByName) {
  Result<Journal> journal = open(folder_, JournalMode::fresh);
  ASSERT_FALSE(journal);
  EXPECT_NE(journal.error().message.find("is a directory"), std::string::npos);
}

TEST_F(JournalTest, ReadingOnlyNeedsNoFileAndMakesNone) {
  Result<Journal> none =
      Journal::open(path_, {.mode = JournalMode::resume, .command = "cmd", .read_only = true});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->past(1, 11), Past::unknown);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace ordo::app

#include "ordo/app/find_program.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace ordo::app {
namespace {

class FindProgramTest : public testing::Test {
 protected:
  FindProgramTest() {
    std::string pattern = testing::TempDir() + "programs.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    make("good", 0755);
    make("plain", 0644);
  }
  ~FindProgramTest() override { std::filesystem::remove_all(folder_); }

  void make(const std::string& name, mode_t mode) const {
    std::ofstream(folder_ + "/" + name) << "echo\n";
    ::chmod((folder_ + "/" + name).c_str(), mode);
  }
  Result<std::string> find(const std::string& name) const {
    return find_program(name, ("/nowhere:" + folder_).c_str());
  }

  std::string folder_;
};

TEST_F(FindProgramTest, ANameIsLookedUpInThePathInOrder) {
  Result<std::string> file = find("good");
  ASSERT_TRUE(file);
  EXPECT_EQ(*file, folder_ + "/good");
}

TEST_F(FindProgramTest, ANameWithASlashIsAFile) {
  EXPECT_TRUE(find(folder_ + "/good"));
  EXPECT_EQ(find(folder_ + "/absent").error().code, ErrorCode::not_found);
  EXPECT_EQ(find(folder_ + "/").error().code, ErrorCode::failed_precondition);
}

TEST_F(FindProgramTest, WhatMayNotBeExecutedIsExplained) {
  Result<std::string> file = find("plain");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::failed_precondition);
  EXPECT_NE(file.error().message.find("chmod +x"), std::string::npos);
}

TEST_F(FindProgramTest, ALineOfShellSuggestsTheOption) {
  EXPECT_NE(find("echo a | wc").error().message.find("--shell"), std::string::npos);
  EXPECT_EQ(find("absent").error().message.find("--shell"), std::string::npos);
  EXPECT_EQ(find("").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace ordo::app

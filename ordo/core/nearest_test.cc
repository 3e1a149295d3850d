#include "ordo/core/nearest.h"

#include <gtest/gtest.h>

namespace ordo {
namespace {

TEST(NearestTest, ASlipOfTheFingersFindsTheWordMeant) {
  const std::vector<std::string> words{"map", "completion", "--workers", "--window"};
  EXPECT_EQ(nearest("mpa", words), "map");
  EXPECT_EQ(nearest("completoin", words), "completion");
  EXPECT_EQ(nearest("--wrokers", words), "--workers");
  EXPECT_EQ(nearest("comp", words), "completion");
}

TEST(NearestTest, NothingIsSuggestedForSomethingElse) {
  EXPECT_EQ(nearest("frobnicate", {"map", "completion"}), "");
  EXPECT_EQ(nearest("", {"map"}), "");
}

}  // namespace
}  // namespace ordo

#include "ordo/app/suggest.h"

#include <gtest/gtest.h>

namespace ordo::app {
namespace {

TEST(SuggestTest, ASlipOfTheFingersFindsTheWordMeant) {
  const std::vector<std::string> words{"map", "completion", "--workers", "--window"};
  EXPECT_EQ(nearest("mpa", words), "map");
  EXPECT_EQ(nearest("completoin", words), "completion");
  EXPECT_EQ(nearest("--wrokers", words), "--workers");
  EXPECT_EQ(nearest("comp", words), "completion");
}

TEST(SuggestTest, NothingIsSuggestedForSomethingElse) {
  EXPECT_EQ(nearest("frobnicate", {"map", "completion"}), "");
  EXPECT_EQ(nearest("", {"map"}), "");
}

}  // namespace
}  // namespace ordo::app

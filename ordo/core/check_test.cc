#include "ordo/core/check.h"

#include <gtest/gtest.h>

namespace ordo {
namespace {

TEST(CheckTest, AKeptPromiseIsEvaluatedOnceAndDoesNothing) {
  int evaluated = 0;
  ORDO_CHECK(++evaluated == 1);
  EXPECT_EQ(evaluated, 1);
}

TEST(CheckDeathTest, ABrokenPromiseEndsTheProcessAndNamesPlaceAndCondition) {
  const int answer = 41;
  EXPECT_DEATH(ORDO_CHECK(answer == 42), "check_test.cc:[0-9]+: check failed: answer == 42");
}

}  // namespace
}  // namespace ordo

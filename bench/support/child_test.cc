#include "bench/support/child.h"

#include <gtest/gtest.h>

namespace ordo::bench {
namespace {

constexpr std::chrono::seconds kLong(30);

TEST(ChildTest, TheOutputOfAChildThatSucceedsIsKept) {
  const ChildResult child = run_child({"/bin/sh", "-c", "echo one; echo two"}, kLong);
  EXPECT_EQ(child.failure, "");
  EXPECT_EQ(child.output, "one\ntwo\n");
}

TEST(ChildTest, AnExitStatusOtherThanZeroIsAFailure) {
  EXPECT_EQ(run_child({"/bin/sh", "-c", "exit 3"}, kLong).failure, "ended with status 3");
}

TEST(ChildTest, AChildThatIsKilledIsAFailure) {
  EXPECT_EQ(run_child({"/bin/sh", "-c", "kill -9 $$"}, kLong).failure, "ended by signal Killed");
}

TEST(ChildTest, AProgramThatDoesNotExistIsAFailure) {
  EXPECT_EQ(run_child({"/no/such/program"}, kLong).failure, "ended with status 127");
}

TEST(ChildTest, AChildThatHangsIsKilledAtItsTimeout) {
  const ChildResult child =
      run_child({"/usr/bin/tail", "-f", "/dev/null"}, std::chrono::milliseconds(50));
  EXPECT_EQ(child.failure, "not finished after 50 ms, killed");
}

}  // namespace
}  // namespace ordo::bench

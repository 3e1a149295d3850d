#include "ordo/app/verdict.h"

#include <csignal>

#include <gtest/gtest.h>

#include "ordo/app/map_options.h"

namespace ordo::app {
namespace {

using Reason = Verdict::Reason;

TEST(VerdictTest, WithoutAReasonTheFailuresAreTheStatus) {
  StopSignal stop;
  const Verdict verdict(stop);
  EXPECT_EQ(verdict.exit_status(0), 0);
  EXPECT_EQ(verdict.exit_status(100), 100);
  EXPECT_EQ(verdict.exit_status(101), kExitManyFailures);
  EXPECT_EQ(verdict.exit_status(100'000), kExitManyFailures);
}

TEST(VerdictTest, TheFirstReasonWins) {
  StopSignal stop;
  Verdict verdict(stop);
  verdict.stop(Reason::error, "first");
  verdict.stop(Reason::closed_output, "second");
  verdict.interrupt(SIGINT);
  EXPECT_EQ(verdict.message(), "first");
  EXPECT_EQ(verdict.exit_status(3), kExitError);
}

TEST(VerdictTest, TheSecondSignalForces) {
  StopSignal stop;
  Verdict verdict(stop);
  verdict.interrupt(SIGTERM);
  EXPECT_TRUE(stop.requested());
  EXPECT_FALSE(stop.forced());
  verdict.interrupt(SIGINT);
  EXPECT_TRUE(stop.forced());
  EXPECT_EQ(verdict.exit_status(0), 143);
}

TEST(VerdictTest, AHaltedRunHasTheStatusOfItsFailures) {
  StopSignal stop;
  Verdict verdict(stop);
  verdict.stop(Reason::halted, "job 3 failed");
  EXPECT_EQ(verdict.exit_status(1), 1);
}

}  // namespace
}  // namespace ordo::app

#include "ordo/app/progress.h"

#include <fcntl.h>

#include <gtest/gtest.h>

#include "ordo/app/spawn.h"

namespace ordo::app {
namespace {

using namespace std::chrono_literals;

TEST(ProgressTest, AKnownShareGivesABarAndAnEstimate) {
  const ProgressState state{.done = 500, .failed = 2, .elapsed = 10s, .share = 0.25};
  EXPECT_EQ(progress_line(state, 100),
            "[#######---------------------]  25%  500 done  2 failed  50/s  ETA 30s");
}

TEST(ProgressTest, WithoutAShareTheTimeIsShown) {
  const ProgressState state{.done = 5, .failed = 0, .elapsed = 90s, .share = std::nullopt};
  EXPECT_EQ(progress_line(state, 100), "5 done  0.1/s  1m30s");
}

TEST(ProgressTest, ANarrowTerminalCutsTheLine) {
  const ProgressState state{.done = 5, .failed = 0, .elapsed = 90s, .share = 0.5};
  EXPECT_EQ(progress_line(state, 10).size(), 10u);
}

TEST(ProgressTest, APipeIsNeverWrittenTo) {
  Pipe pipe = make_pipe();
  ASSERT_EQ(::fcntl(pipe.read_end.get(), F_SETFL, O_NONBLOCK), 0);
  {
    Progress progress(true, pipe.write_end.get(), system_clock());
    EXPECT_FALSE(progress.active());
    progress.draw({});
    const auto paused = progress.pause();
  }
  char byte = 0;
  EXPECT_EQ(::read(pipe.read_end.get(), &byte, 1), -1);
}

}  // namespace
}  // namespace ordo::app

#include "ordo/app/delivery.h"

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "ordo/app/spawn.h"

namespace ordo::app {
namespace {

JobResult result(std::uint64_t number, const std::string& out, Ending ending = Ending::succeeded) {
  JobResult result;
  result.number = number;
  result.out = out;
  result.ending = ending;
  result.code = ending == Ending::exited ? 1 : 0;
  result.attempts = 1;
  result.line_bytes = 10;
  return result;
}

BatchResult batch(std::vector<JobResult> results) {
  return {std::move(results)};
}

class DeliveryTest : public testing::Test {
 protected:
  DeliveryParts parts(bool ordered, bool halt) {
    DeliveryParts parts;
    parts.out = &out_;
    parts.err = &err_;
    parts.progress = &progress_;
    parts.ordered = ordered;
    parts.halt_on_error = halt;
    return parts;
  }
  std::string written() const {
    std::string text(4096, '\0');
    const ssize_t got = ::pread(file_.get(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return text;
  }

  StopSignal stop_;
  Verdict verdict_{stop_};
  UniqueFd file_{::memfd_create("out", MFD_CLOEXEC)};
  UniqueFd null_{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
  OutputWriter out_{file_.get(), stop_};
  OutputWriter err_{null_.get(), stop_};
  Progress progress_{false, 2, system_clock()};
};

TEST_F(DeliveryTest, DoneFailedAndUndoneAddUpToWhatWasReleased) {
  Delivery delivery(parts(true, false), verdict_);
  delivery.take(batch({result(1, "a"), result(2, "b", Ending::exited)}));
  delivery.take(batch({result(3, "c"), result(4, "d", Ending::cancelled), result(5, "e")}));
  delivery.take(batch({result(6, "f")}));
  const DeliveryCounts& counts = delivery.counts();
  EXPECT_EQ(written(), "abc");
  EXPECT_EQ(counts.done, 2u);
  EXPECT_EQ(counts.failed, 1u);
  EXPECT_EQ(counts.undone, 3u);
  EXPECT_EQ(counts.first_undone, 4u);
  EXPECT_EQ(delivery.released_lines(), 6u);
  EXPECT_EQ(delivery.released_bytes(), 60u);
}

TEST_F(DeliveryTest, WithoutOrderACancelledJobHoldsNobodyBack) {
  Delivery delivery(parts(false, false), verdict_);
  delivery.take(batch({result(1, "a", Ending::cancelled), result(2, "b")}));
  EXPECT_EQ(written(), "b");
}

TEST_F(DeliveryTest, HaltShowsTheFailedJobAndNothingBehindIt) {
  Delivery delivery(parts(true, true), verdict_);
  delivery.take(batch({result(1, "a"), result(2, "b", Ending::exited), result(3, "c")}));
  delivery.take(batch({result(4, "d")}));
  EXPECT_EQ(written(), "ab");
  EXPECT_EQ(verdict_.reason(), Verdict::Reason::halted);
  EXPECT_EQ(delivery.counts().undone, 2u);
}

TEST_F(DeliveryTest, AClosedOutputStopsTheRunAndCountsAsUndone) {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe pipe = make_pipe();
  pipe.read_end.reset();
  OutputWriter broken(pipe.write_end.get(), stop_);
  DeliveryParts parts = this->parts(true, false);
  parts.out = &broken;
  Delivery delivery(parts, verdict_);
  delivery.take(batch({result(1, "a")}));
  EXPECT_EQ(verdict_.reason(), Verdict::Reason::closed_output);
  EXPECT_EQ(delivery.counts().undone, 1u);
  EXPECT_EQ(delivery.counts().done, 0u);
}

}  // namespace
}  // namespace ordo::app

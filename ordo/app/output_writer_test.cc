#include "ordo/app/output_writer.h"

#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "ordo/app/spawn.h"

namespace ordo::app {
namespace {

TEST(OutputWriterTest, MoreThanAPipeHoldsArrivesWhole) {
  StopSignal stop;
  Pipe pipe = make_pipe();
  std::string text;
  for (int i = 0; i < 200'000; ++i)
    text += std::to_string(i) + '\n';
  std::string got;
  std::thread reader([&] {
    std::array<char, 65536> buffer;
    ssize_t count = 0;
    while ((count = ::read(pipe.read_end.get(), buffer.data(), buffer.size())) > 0) {
      got.append(buffer.data(), static_cast<std::size_t>(count));
    }
  });
  OutputWriter out(pipe.write_end.get(), stop);
  EXPECT_EQ(out.write(text), WriteEnd::written);
  pipe.write_end.reset();
  reader.join();
  EXPECT_TRUE(got == text);
}

TEST(OutputWriterTest, AReaderThatWentAwayIsClosed) {
  ::signal(SIGPIPE, SIG_IGN);
  StopSignal stop;
  Pipe pipe = make_pipe();
  pipe.read_end.reset();
  OutputWriter out(pipe.write_end.get(), stop);
  EXPECT_EQ(out.write("x"), WriteEnd::closed);
}

TEST(OutputWriterTest, AStopEndsTheWaitForAReaderThatDoesNotRead) {
  StopSignal stop;
  Pipe pipe = make_pipe();
  OutputWriter out(pipe.write_end.get(), stop);
  std::thread stopper([&] {
    while (true) {  // Until the pipe is full.
      pollfd end{pipe.write_end.get(), POLLOUT, 0};
      if (::poll(&end, 1, 0) == 0) break;
    }
    stop.request();
  });
  EXPECT_EQ(out.write(std::string(1 << 20, 'x')), WriteEnd::stopped);
  stopper.join();
}

TEST(OutputWriterTest, AFullDiskIsAFailureWithItsError) {
  StopSignal stop;
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  OutputWriter out(full.get(), stop);
  EXPECT_EQ(out.write("x"), WriteEnd::failed);
  EXPECT_EQ(out.error(), ENOSPC);
}

}  // namespace
}  // namespace ordo::app

// The client of any gRPC server, against one of ours on real sockets.

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include "ordo/adapters/grpc_client/channel.h"
#include "ordo/adapters/http2/server.h"
#include "ordo/adapters/sockets/descriptor.h"

namespace ordo::grpc_client {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

// Says everything back, message by message; "count N" is answered by N messages.
class Chat final : public http2::CallHandler {
 public:
  explicit Chat(http2::CallPtr call) : call_(std::move(call)) {}

  void on_message(std::string_view bytes) override {
    if (bytes.starts_with("count ")) {
      left_ = std::stoi(std::string(bytes.substr(6)));
      on_writable();
    } else {
      call_->send(http2::Slice::of(std::string(bytes)));
    }
  }
  void on_half_close() override { call_->finish(0); }
  void on_writable() override {
    for (; left_ > 0 && call_->wants_more(); --left_)
      call_->send(http2::Slice::of(std::to_string(left_) + std::string(1'000, '.')));
  }

 private:
  const http2::CallPtr call_;
  int left_ = 0;
};

class ChannelTest : public testing::Test {
 protected:
  ChannelTest() {
    http2::Routes routes;
    routes.unary("/test.Echo/Say", [](const http2::CallPtr& call, std::string_view request) {
      call->reply(http2::Slice::of(std::string(request)));
    });
    routes.unary("/test.Echo/Fail", [](const http2::CallPtr& call, std::string_view) {
      call->finish(5, "caf\xC3\xA9 is not here");
    });
    // Never answered: the client's patience ends it.
    routes.unary("/test.Echo/Wait", [](const http2::CallPtr&, std::string_view) {});
    routes.streaming("/test.Echo/Chat",
                     [](const http2::CallPtr& call) { return std::make_unique<Chat>(call); });
    http2::ServerOptions options;
    options.address = "127.0.0.1";
    options.port = 0;
    server_ = std::make_unique<http2::Server>(options, std::move(routes));
    EXPECT_TRUE(server_->start());
    auto channel = Channel::connect({"127.0.0.1", server_->port()});
    EXPECT_TRUE(channel) << channel.error().message;
    channel_ = std::move(*channel);
  }
  ~ChannelTest() override { server_->stop(); }

  static TimePoint soon() { return system_clock().now() + seconds(60); }

  std::unique_ptr<http2::Server> server_;
  std::unique_ptr<Channel> channel_;
};

TEST_F(ChannelTest, AnAnswerIsTheMessageOfTheServer) {
  const auto answer = channel_->call("/test.Echo/Say", "hello", seconds(60));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*answer, "hello");
  EXPECT_EQ(*channel_->call("/test.Echo/Say", "", seconds(60)), "");
}

TEST_F(ChannelTest, AMessageMayBeLongerThanTheWindow) {
  const std::string large(3 * Channel::kWindowBytes + 1, 'x');
  const auto answer = channel_->call("/test.Echo/Say", large, seconds(60));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*answer, large);
}

TEST_F(ChannelTest, TheStatusOfTheServerBecomesAnError) {
  const auto answer = channel_->call("/test.Echo/Fail", "x", seconds(60));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(), (Error{ErrorCode::not_found, "caf\xC3\xA9 is not here"}));
  const auto unknown = channel_->call("/test.Echo/Nothing", "x", seconds(60));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::unimplemented);
}

TEST_F(ChannelTest, ACallWithoutAnAnswerEndsInTime) {
  const auto answer = channel_->call("/test.Echo/Wait", "x", std::chrono::milliseconds(50));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::deadline_exceeded);
  EXPECT_TRUE(channel_->call("/test.Echo/Say", "x", seconds(60)));
}

TEST_F(ChannelTest, BothSidesOfAStreamMayGoOnTalking) {
  Stream stream = channel_->open("/test.Echo/Chat");
  for (const char* word : {"one", "two", "three"}) {
    ASSERT_TRUE(stream.write(word));
    ASSERT_TRUE(stream.flush(soon()));
    const auto event = stream.read(soon());
    ASSERT_TRUE(event) << event.error().message;
    EXPECT_EQ(event->message, word);
  }
  stream.half_close();
  const auto end = stream.read(soon());
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_TRUE(end->is_end);
}

TEST_F(ChannelTest, AStreamNobodyReadsDoesNotStopTheOthers) {
  Stream stream = channel_->open("/test.Echo/Chat");
  ASSERT_TRUE(stream.write("count 20000"));  // Far more than the window.
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(channel_->call("/test.Echo/Say", "x", seconds(60)));
  for (int left = 20'000; left > 0; --left) {
    const auto event = stream.read(soon());
    ASSERT_TRUE(event && event->message) << left;
    ASSERT_EQ(std::stoi(*event->message), left);
  }
}

TEST_F(ChannelTest, SeveralCallsMayBeUnderWay) {
  std::vector<Stream> calls;
  for (int i = 0; i < 300; ++i) {
    calls.push_back(channel_->open("/test.Echo/Say"));
    ASSERT_TRUE(calls.back().write(std::to_string(i)));
    calls.back().half_close();
  }
  for (int i = 299; i >= 0; --i) {
    const auto answer =
        channel_->answer_of(calls[static_cast<std::size_t>(i)], "/test.Echo/Say", soon());
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(*answer, std::to_string(i));
  }
}

TEST_F(ChannelTest, AReadIsWokenByADescriptor) {
  const sockets::Descriptor wake(::eventfd(1, EFD_CLOEXEC));
  Stream stream = channel_->open("/test.Echo/Chat");
  const auto event = stream.read(TimePoint::max(), wake.get());
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_FALSE(event->message || event->is_end);
}

TEST_F(ChannelTest, ALostConnectionEndsEverythingUnderWay) {
  Stream stream = channel_->open("/test.Echo/Chat");
  ASSERT_TRUE(stream.write("one"));
  ASSERT_TRUE(stream.read(soon()));
  ASSERT_TRUE(channel_->ping(seconds(60)));
  server_->stop();
  const auto event = stream.read(soon());
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code, ErrorCode::unavailable);
  EXPECT_FALSE(channel_->call("/test.Echo/Say", "x", seconds(60)));
  EXPECT_FALSE(channel_->ping(seconds(60)));
}

TEST_F(ChannelTest, NobodyListeningIsSaid) {
  const std::uint16_t port = server_->port();
  server_->stop();
  const auto channel = Channel::connect({"127.0.0.1", port});
  ASSERT_FALSE(channel);
  EXPECT_EQ(channel.error().code, ErrorCode::unavailable);
  EXPECT_THAT(channel.error().message, HasSubstr("nobody listens at 127.0.0.1:"));
  EXPECT_FALSE(Channel::connect({"no-such-host.invalid", 1}));
}

}  // namespace
}  // namespace ordo::grpc_client

#include "ordo/adapters/admin_http/admin_server.h"

#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace ordo::admin_http {
namespace {

using namespace std::chrono_literals;

// A plain client: what it sends are bytes, and so is what it gets.
class Wire {
 public:
  explicit Wire(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire() { ::close(fd_); }

  void send(std::string_view text) const {
    EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Until the other side closes, or `end` has been seen.
  std::string read(std::string_view end = {}) const {
    std::string text;
    std::array<char, 4096> part;
    while (end.empty() || text.find(end) == std::string::npos) {
      const ssize_t got = ::recv(fd_, part.data(), part.size(), 0);
      if (got <= 0) break;
      text.append(part.data(), static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  int fd_;
};

AdminReply greet(std::string_view path) {
  if (path == "/hello") return {.body = "hello\n"};
  if (path == "/throw") throw std::runtime_error("it broke");
  return {.status = 404, .body = "nothing at " + std::string(path) + "\n"};
}

class AdminServerTest : public testing::Test {
 protected:
  void start(AdminOptions options = {}) {
    server_ = std::make_unique<AdminServer>(std::move(options), greet);
    const Status started = server_->start();
    ASSERT_TRUE(started) << started.error().message;
  }
  std::string ask(const std::string& head) const {
    const Wire wire(server_->port());
    wire.send(head + "Connection: close\r\n\r\n");
    return wire.read();
  }
  std::string get(const std::string& path) const {
    return ask("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n");
  }

  std::unique_ptr<AdminServer> server_;
};

TEST_F(AdminServerTest, AnswersAGet) {
  start();
  const std::string reply = get("/hello");
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 OK\r\n")) << reply;
  EXPECT_TRUE(reply.ends_with("\r\n\r\nhello\n")) << reply;
}

TEST_F(AdminServerTest, TheHandlerSeesThePathWithoutItsQuery) {
  start();
  EXPECT_TRUE(get("/no/such?a=b").ends_with("nothing at /no/such\n"));
  EXPECT_TRUE(get("/hello?x").ends_with("hello\n"));
}

TEST_F(AdminServerTest, HeadHasTheHeadersOfGetAndNoBody) {
  start();
  const std::string reply = ask("HEAD /hello HTTP/1.1\r\nHost: localhost\r\n");
  EXPECT_NE(reply.find("Content-Length: 6\r\n"), std::string::npos) << reply;
  EXPECT_TRUE(reply.ends_with("\r\n\r\n")) << reply;
}

TEST_F(AdminServerTest, OneConnectionServesManyRequests) {
  start();
  const Wire wire(server_->port());
  for (int i = 0; i < 3; ++i) {
    wire.send("GET /hello HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
    EXPECT_TRUE(wire.read("hello\n").ends_with("hello\n"));
  }
}

TEST_F(AdminServerTest, OtherMethodsAndBodiesAreRefused) {
  start();
  EXPECT_TRUE(ask("DELETE /hello HTTP/1.1\r\nHost: localhost\r\n").starts_with("HTTP/1.1 405 "));
  EXPECT_TRUE(ask("POST /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n")
                  .starts_with("HTTP/1.1 413 "));
}

TEST_F(AdminServerTest, AnotherNameThanOursIsRefused) {
  start();
  EXPECT_TRUE(ask("GET /hello HTTP/1.1\r\nHost: evil.example:80\r\n").starts_with("HTTP/1.1 421 "));
}

TEST_F(AdminServerTest, AHandlerThatThrowsIsA500WithWhatItSaid) {
  start();
  const std::string reply = get("/throw");
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 500 ")) << reply;
  EXPECT_TRUE(reply.ends_with("it broke\n")) << reply;
  EXPECT_TRUE(get("/hello").ends_with("hello\n"));
}

TEST_F(AdminServerTest, GarbageIsA400AndOverlongHeadersAreA431) {
  start();
  const Wire wire(server_->port());
  wire.send("this is no request\r\n\r\n");
  EXPECT_TRUE(wire.read().starts_with("HTTP/1.1 400 "));
  EXPECT_TRUE(
      ask("GET /hello HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(20'000, 'x') + "\r\n")
          .starts_with("HTTP/1.1 431 "));
}

TEST_F(AdminServerTest, AClientThatSendsNothingIsClosedInTime) {
  start({.idle_timeout = 20ms});
  const Wire wire(server_->port());
  EXPECT_EQ(wire.read(), "");
  EXPECT_TRUE(get("/hello").ends_with("hello\n"));
}

TEST_F(AdminServerTest, MoreConnectionsThanAllowedAreClosed) {
  start({.connections_max = 2});
  const Wire first(server_->port());
  const Wire second(server_->port());
  for (const Wire* wire : {&first, &second}) {
    wire->send("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_TRUE(wire->read("hello\n").ends_with("hello\n"));
  }
  const Wire third(server_->port());
  EXPECT_EQ(third.read(), "");
}

TEST_F(AdminServerTest, StoppingClosesConnectionsAndMayBeRepeated) {
  start();
  const Wire wire(server_->port());
  wire.send("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  wire.read("hello\n");
  server_->stop();
  server_->stop();
  server_.reset();
  EXPECT_EQ(wire.read(), "");
}

TEST_F(AdminServerTest, APortThatIsTakenIsAnErrorThatNamesIt) {
  start();
  AdminServer other({.port = server_->port()}, greet);
  const Status started = other.start();
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find(std::to_string(server_->port())), std::string::npos);
}

TEST_F(AdminServerTest, AnAddressThatIsNoneIsAnError) {
  AdminServer server({.address = "nowhere"}, greet);
  const Status started = server.start();
  ASSERT_FALSE(started);
  EXPECT_NE(started.error().message.find("nowhere"), std::string::npos);
}

}  // namespace
}  // namespace ordo::admin_http

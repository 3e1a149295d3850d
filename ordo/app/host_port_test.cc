#include "ordo/app/host_port.h"

#include <unistd.h>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "ordo/app/unique_fd.h"

namespace ordo::app {
namespace {

TEST(HostPortTest, ReadsAddressesWithPorts) {
  const struct {
    const char* text;
    const char* shown;
  } cases[] = {{"127.0.0.1:7070", "127.0.0.1:7070"},
               {":80", "127.0.0.1:80"},
               {"80", "127.0.0.1:80"},
               {"localhost:0", "127.0.0.1:0"},
               {"[::1]:65535", "[::1]:65535"},
               {"0.0.0.0:1", "0.0.0.0:1"}};
  for (const auto& [text, shown] : cases) {
    const Result<HostPort> parsed = parse_host_port("--listen", text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->text(), shown);
  }
}

TEST(HostPortTest, RefusesWhatIsNoneAndNamesTheSetting) {
  for (const char* text : {"", ":", "x:1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "1.2.3:4",
                           "::1:80", "[::1]", "[127.0.0.1]:1", "127.0.0.1:-1", "127.0.0.1:1x"}) {
    const Result<HostPort> parsed = parse_host_port("--listen", text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_TRUE(parsed.error().message.starts_with("--listen: '")) << parsed.error().message;
  }
}

TEST(HostPortTest, KnowsLoopbackAddresses) {
  EXPECT_TRUE(parse_host_port("", "127.1.2.3:1")->is_loopback());
  EXPECT_TRUE(parse_host_port("", "[::1]:1")->is_loopback());
  EXPECT_FALSE(parse_host_port("", "0.0.0.0:1")->is_loopback());
  EXPECT_FALSE(parse_host_port("", "[::]:1")->is_loopback());
}

TEST(HostPortTest, SaysWhoListensOnAPort) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(socket.get(), generic, size), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  ASSERT_EQ(::getsockname(socket.get(), generic, &size), 0);
  EXPECT_NE(listener_of(ntohs(address.sin_port)).find("(pid " + std::to_string(::getpid()) + ")"),
            std::string::npos);
}

}  // namespace
}  // namespace ordo::app

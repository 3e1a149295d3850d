// The real `ordo gateway` and `ordo gateway-client`: started, spoken to, told to reload and stop.
#include <algorithm>
#include <array>
#include <csignal>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "map_program.h"
#include "ordo/adapters/order_tcp/client.h"
#include "ordo/app/unique_fd.h"

namespace ordo::flow {
namespace {

using order_tcp::Client;
using order_tcp::ClientReply;
using order_tcp::Encoding;
using Words = std::vector<std::string>;

constexpr std::chrono::milliseconds kPatience{60'000};

// A gateway that listens on ports of its own.
class GatewayProgram {
 public:
  explicit GatewayProgram(const Words& more = {}) : program_(words_with(more)) {
    const std::string line = program_.read_line();
    EXPECT_TRUE(line.starts_with("listening 127.0.0.1:")) << line;
    port_ = port_of(line);
  }

  Client connect(Encoding encoding = Encoding::text) const {
    Result<Client> client =
        Client::connect({.port = port_, .encoding = encoding, .timeout = kPatience});
    EXPECT_TRUE(client) << client.error().message;
    return std::move(*client);
  }

  std::uint16_t port() const { return port_; }
  std::uint16_t admin_port() {
    const std::string line = program_.read_line();
    EXPECT_TRUE(line.starts_with("metrics ")) << line;
    return port_of(line.substr(0, line.rfind('/')));
  }
  Program& program() { return program_; }

 private:
  static Words words_with(const Words& more) {
    Words words{"gateway", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static std::uint16_t port_of(const std::string& text) {
    return static_cast<std::uint16_t>(std::stoul(text.substr(text.rfind(':') + 1)));
  }

  Program program_;
  std::uint16_t port_ = 0;
};

ClientReply ask(Client& client, std::string_view id, std::int64_t correlation_id,
                std::string_view payload) {
  client.send(id, correlation_id, payload);
  Result<ClientReply> reply = client.receive();
  EXPECT_TRUE(reply) << reply.error().message;
  return reply ? *reply : ClientReply{};
}

std::string http_get(std::uint16_t port, const std::string& path) {
  const app::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  const std::string request =
      "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string reply;
  std::array<char, 16384> part;
  for (ssize_t got = 1; got > 0;) {
    got = ::recv(socket.get(), part.data(), part.size(), 0);
    if (got > 0) reply.append(part.data(), static_cast<std::size_t>(got));
  }
  return reply;
}

constexpr const char* kRoutes =
    "[[route]]\nsymbol = \"A*\"\nvenue = \"XNAS\"\n[oms]\ndefault_venue = \"REST\"\n";

TEST(GatewayProgramTest, AnOrderLivesAndEnds) {
  GatewayProgram gateway;
  for (const Encoding encoding : {Encoding::text, Encoding::binary}) {
    Client client = gateway.connect(encoding);
    const std::int64_t id = encoding == Encoding::text ? 42 : 43;
    EXPECT_EQ(ask(client, "a", id, "NEW ACME BUY 10 99.5").words, "route:DEFAULT");
    EXPECT_EQ(ask(client, "b", id, "FILL 4").words, "filled:6");
    EXPECT_EQ(ask(client, "c", id, "CANCEL").words, "cancelled");
    EXPECT_EQ(ask(client, "d", 0, "QUOTE ACME 10").words, "target:DEFAULT");
  }
  gateway.program().signal(SIGTERM);
  EXPECT_EQ(gateway.program().finish().status, 0);
}

TEST(GatewayProgramTest, RoutesComeFromTheConfigurationAndHangUpReadsThemAgain) {
  const Folder folder;
  folder.write("g.toml", kRoutes);
  GatewayProgram gateway({"--config", folder.file("g.toml")});
  Client client = gateway.connect();
  EXPECT_EQ(ask(client, "1", 1, "NEW ACME BUY 1 1").words, "route:XNAS");
  EXPECT_EQ(ask(client, "2", 2, "NEW ZED BUY 1 1").words, "route:REST");
  folder.write("g.toml", "[oms]\ndefault_venue = \"NEXT\"\n");
  gateway.program().signal(SIGHUP);
  const std::uint16_t admin = gateway.admin_port();
  while (http_get(admin, "/metrics").find("reloads_total 1\n") == std::string::npos) {
  }
  EXPECT_EQ(ask(client, "3", 3, "NEW ACME BUY 1 1").words, "route:NEXT");
  gateway.program().signal(SIGTERM);
  const Finished end = gateway.program().finish();
  EXPECT_EQ(end.status, 0);
  EXPECT_NE(end.err.find(": 0 routes, default venue NEXT, 0 risk limits\n"), std::string::npos)
      << end.err;
}

TEST(GatewayProgramTest, ABadFileKeepsTheOldSettingsAndSaysWhy) {
  const Folder folder;
  folder.write("g.toml", kRoutes);
  GatewayProgram gateway({"--config", folder.file("g.toml")});
  const std::uint16_t admin = gateway.admin_port();
  folder.write("g.toml", "[[route]]\nsymbl = \"A*\"\nvenue = \"X\"\n");
  gateway.program().signal(SIGHUP);
  while (http_get(admin, "/metrics").find("reloads_failed_total 1\n") == std::string::npos) {
  }
  Client client = gateway.connect();
  EXPECT_EQ(ask(client, "1", 1, "NEW ACME BUY 1 1").words, "route:XNAS");
  gateway.program().signal(SIGTERM);
  const Finished end = gateway.program().finish();
  EXPECT_EQ(end.status, 0);
  EXPECT_NE(end.err.find("not reloaded, the old settings stay: "), std::string::npos) << end.err;
  EXPECT_NE(end.err.find("symbl"), std::string::npos) << end.err;
}

TEST(GatewayProgramTest, TheStopSignalUnderLoadAnswersAllThatWasAdmitted) {
  GatewayProgram gateway({"--drain", "30s"});
  Client client = gateway.connect(Encoding::binary);
  constexpr int kTasks = 20'000;
  constexpr int kIds = 100;
  for (int n = 0; n < kTasks; ++n) {
    client.send(std::to_string(n), 1 + n % kIds, n < kIds ? "NEW ACME BUY 1000000 1" : "FILL 1");
  }
  ASSERT_TRUE(client.flush());
  gateway.program().signal(SIGTERM);
  std::map<int, int> last;  // Of each id: the number of the request answered last.
  while (true) {
    const Result<ClientReply> reply = client.receive();
    if (!reply) break;  // The gateway has closed.
    const int number = std::stoi(reply->request_id);
    const auto id = static_cast<int>(reply->correlation_id);
    int& before = last.try_emplace(id, id - 1 - kIds).first->second;
    EXPECT_TRUE(reply->is_ok()) << reply->request_id;
    EXPECT_EQ(number, before + kIds);  // None is missing, none comes twice.
    before = number;
  }
  const Finished end = gateway.program().finish();
  EXPECT_EQ(end.status, 0) << end.err;
}

TEST(GatewayProgramTest, MetricsAndHealthAreServed) {
  GatewayProgram gateway;
  const std::uint16_t admin = gateway.admin_port();
  Client client = gateway.connect();
  EXPECT_TRUE(ask(client, "1", 7, "STATUS").is_ok());
  EXPECT_TRUE(http_get(admin, "/livez").ends_with("ok\n"));
  EXPECT_TRUE(http_get(admin, "/readyz").ends_with("ready\n"));
  EXPECT_TRUE(http_get(admin, "/blocked").ends_with("[]\n"));
  EXPECT_TRUE(http_get(admin, "/nowhere").starts_with("HTTP/1.1 404 "));
  const std::string metrics = http_get(admin, "/metrics");
  for (const char* line :
       {"ordo_gateway_connections 1\n", "ordo_gateway_requests_total 1\n", "ordo_gateway_ready 1\n",
        "ordo_gateway_rejected_total{partition=\"0\",reason=\"busy\"} 0\n",
        "# TYPE ordo_gateway_wait_seconds histogram\n"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line << metrics;
  }
}

TEST(GatewayProgramTest, ATakenPortIsExplainedWithItsHolder) {
  GatewayProgram gateway;
  const std::string port = std::to_string(gateway.port());
  const Finished end = run_ordo({"gateway", "--no-admin", "--listen", "127.0.0.1:" + port});
  EXPECT_EQ(end.status, 255);
  EXPECT_NE(end.err.find(port), std::string::npos) << end.err;
  EXPECT_NE(end.err.find("ordo (pid "), std::string::npos) << end.err;
  EXPECT_NE(end.err.find("--listen"), std::string::npos) << end.err;
}

TEST(GatewayProgramTest, CheckSaysWhatIsWrongAndDoesNothing) {
  const Folder folder;
  folder.write("good.toml", std::string(kRoutes) + "[gateway]\nbudget = 64\n");
  folder.write("bad.toml", "[gateway]\nbudgte = 64\n");
  EXPECT_EQ(run_ordo({"gateway", "--check", "--config", folder.file("good.toml")}).status, 0);
  const Finished end = run_ordo({"gateway", "--check", "--config", folder.file("bad.toml")});
  EXPECT_EQ(end.status, 255);
  EXPECT_NE(end.err.find("bad.toml:2: budgte"), std::string::npos) << end.err;
  EXPECT_NE(end.err.find("did you mean 'budget'?"), std::string::npos) << end.err;
  const Finished none = run_ordo({"gateway", "--check", "--config", folder.file("none.toml")});
  EXPECT_EQ(none.status, 255);
  EXPECT_NE(none.err.find("none.toml"), std::string::npos) << none.err;
  const Finished directory = run_ordo({"gateway", "--check", "--config", folder.file("")});
  EXPECT_EQ(directory.status, 255);
  EXPECT_NE(directory.err.find("cannot read"), std::string::npos) << directory.err;
}

TEST(GatewayProgramTest, TheClientSendsLinesAndPrintsReplies) {
  GatewayProgram gateway;
  const std::string to = "127.0.0.1:" + std::to_string(gateway.port());
  for (const Words& more : {Words{}, Words{"--binary"}, Words{"--window", "1"}}) {
    Words words{"gateway-client", "--connect", to};
    words.insert(words.end(), more.begin(), more.end());
    const Finished end = run_ordo(words, "0 QUOTE ACME 1\n7 STATUS\n7 CANCEL\n");
    EXPECT_EQ(end.status, 0) << end.err;
    const std::vector<std::string> lines = split_lines(end.out);
    ASSERT_EQ(lines.size(), 3U) << end.out;
    EXPECT_NE(end.out.find("OK 1 0 "), std::string::npos) << end.out;
    const std::size_t second = end.out.find("OK 2 7 ");
    ASSERT_NE(second, std::string::npos) << end.out;
    EXPECT_LT(second, end.out.find("OK 3 7 ")) << end.out;
  }
}

TEST(GatewayProgramTest, TheClientPassesManyLinesThroughASmallWindow) {
  GatewayProgram gateway;
  const std::string to = "127.0.0.1:" + std::to_string(gateway.port());
  std::string lines;
  for (int n = 0; n < 5'000; ++n)
    lines += std::to_string(1 + n % 50) + " STATUS\n";
  const Finished end = run_ordo({"gateway-client", "--connect", to, "--window", "7"}, lines);
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_EQ(split_lines(end.out).size(), 5'000U);
}

TEST(GatewayProgramTest, TheClientPassesRawLinesAndReportsRefusals) {
  GatewayProgram gateway;
  const std::string to = "127.0.0.1:" + std::to_string(gateway.port());
  const Finished end =
      run_ordo({"gateway-client", "--connect", to, "--raw"}, "PING\r\nnonsense\n\r\n\r\r\n");
  EXPECT_EQ(end.status, 1) << end.err;
  EXPECT_EQ(std::count(end.out.begin(), end.out.end(), '\n'), 3) << end.out;
  EXPECT_NE(end.out.find("PONG\n"), std::string::npos) << end.out;
  EXPECT_NE(end.out.find(" malformed"), std::string::npos) << end.out;
}

TEST(GatewayProgramTest, AClientWithoutAGatewaySaysSo) {
  GatewayProgram gateway;
  const std::string to = "127.0.0.1:" + std::to_string(gateway.port());
  gateway.program().signal(SIGTERM);
  EXPECT_EQ(gateway.program().finish().status, 0);
  const Finished end = run_ordo({"gateway-client", "--connect", to}, "1 STATUS\n");
  EXPECT_EQ(end.status, 255);
  EXPECT_NE(end.err.find("is 'ordo gateway' running there?"), std::string::npos) << end.err;
}

}  // namespace
}  // namespace ordo::flow

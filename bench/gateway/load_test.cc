// The judge of bench_gateway, judged: a small server in a thread answers rightly, or wrongly in one
// way, and the load has to notice.
#include "bench/gateway/load.h"

#include <cstring>
#include <functional>
#include <poll.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "bench/gateway/dialect.h"
#include "bench/support/usage.h"

namespace ordo::bench {
namespace {

// Takes one connection and gives each read's bytes to `answer`, whose result it sends, until the
// client closes.
class FakeServer {
 public:
  using Answering = std::function<std::string(std::string&)>;  // Takes off what it has used.

  explicit FakeServer(Answering answering) : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_, plain, size), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    EXPECT_EQ(::getsockname(listener_, plain, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, answer = std::move(answering)] { serve(answer); });
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;
  ~FakeServer() {
    thread_.join();
    ::close(listener_);
  }

  std::uint16_t port() const { return port_; }

 private:
  void serve(const Answering& answer) const {
    const int fd = ::accept(listener_, nullptr, nullptr);
    std::string in;
    char buffer[4096];
    for (ssize_t size = 0; (size = ::recv(fd, buffer, sizeof buffer, 0)) > 0;) {
      in.append(buffer, static_cast<std::size_t>(size));
      const std::string out = answer(in);
      ::send(fd, out.data(), out.size(), MSG_NOSIGNAL);
    }
    ::close(fd);
  }

  const int listener_;
  std::uint16_t port_ = 0;
  std::thread thread_{};
};

// What the gateway would decide on the request of this number.
std::string decision_for(const std::string& request_id, const std::string& payload) {
  const std::size_t step = std::stoul(request_id) / kIdsPerConnection % kOrderSteps;
  const std::string open = std::to_string(100 - (step + 1) / 2);
  if (payload.starts_with("NEW")) return "route:X";
  if (payload.starts_with("FILL")) return "filled:" + open;
  return payload == "STATUS" ? "status:partially-filled:" + open : "cancelled";
}

// The lines of whole text requests, taken off `in`: request id, correlation id, payload.
std::vector<std::vector<std::string>> take_lines(std::string& in) {
  std::vector<std::vector<std::string>> lines;
  for (std::size_t end = 0; (end = in.find('\n')) != std::string::npos; in.erase(0, end + 1)) {
    const std::size_t first = in.find(' ');
    const std::size_t second = in.find(' ', first + 1);
    lines.push_back({in.substr(0, first), in.substr(first + 1, second - first - 1),
                     in.substr(second + 1, end - second - 1)});
  }
  return lines;
}

std::string ok_line(const std::vector<std::string>& request) {
  return "OK " + request[0] + " " + request[1] + " 0 " + decision_for(request[0], request[2]) +
         " t0=1 t1=2\n";
}

Measures drive(const std::string& dialect, const FakeServer& server, double rate = 0,
               std::size_t pipelining = 40, std::uint64_t milliseconds = 20) {
  return run_load({.dialect = dialect,
                   .port = server.port(),
                   .connections = 1,
                   .pipelining = pipelining,  // 40: two requests of each id.
                   .rate = rate,
                   .warm_ns = 0,
                   .measured_ns = milliseconds * 1'000'000});
}

TEST(GatewayLoadTest, RightAnswersAreNoErrors) {
  const FakeServer server([](std::string& in) {
    std::string out;
    for (const auto& request : take_lines(in))
      out += ok_line(request);
    return out;
  });
  const Measures run = drive("ordo_text", server, 0, 40, 300);
  EXPECT_EQ(run.get("errors"), 0);
  EXPECT_GT(run.get("requests"), 0);
  EXPECT_GT(run.get("p99_us"), 0);
}

TEST(GatewayLoadTest, AnswersOfDifferentIdsMayComeInAnyOrder) {
  const FakeServer server([](std::string& in) {
    std::string evens, odds;
    for (const auto& request : take_lines(in))
      (std::stoi(request[1]) % 2 == 0 ? evens : odds) += ok_line(request);
    return evens + odds;
  });
  EXPECT_EQ(drive("ordo_text", server).get("errors"), 0);
}

// 1,320 requests are more than the life of an order: the next one in its place has another id.
TEST(GatewayLoadTest, AnOrderNeedNotWaitForTheOneWhosePlaceItTakes) {
  std::vector<std::string> late;
  const FakeServer server([&](std::string& in) {
    std::string out;
    for (const auto& request : take_lines(in)) {
      if (request[2] == "CANCEL") {
        late.push_back(ok_line(request));
        continue;
      }
      out += ok_line(request);
    }
    for (const std::string& line : late)
      out += line;
    late.clear();
    return out;
  });
  // Sixty together: the last request of an order with the first one of the next.
  const Measures run = drive("ordo_text", server, 0, 60, 500);
  EXPECT_GE(run.get("requests"), 1'320);
  EXPECT_EQ(run.get("errors"), 0);
}

TEST(GatewayLoadTest, AnswersOfOneIdThatChangePlacesAreDisorder) {
  const FakeServer server([](std::string& in) {
    std::string out;
    for (const auto& request : take_lines(in))
      out.insert(0, ok_line(request));
    return out;
  });
  EXPECT_GT(drive("ordo_text", server).get("disordered"), 0);
}

TEST(GatewayLoadTest, AnAnswerGivenTwiceIsAnError) {
  const FakeServer server([](std::string& in) {
    std::string out;
    for (const auto& request : take_lines(in)) {
      out += ok_line(request);
      if (request[0] == "5") out += ok_line(request);
    }
    return out;
  });
  EXPECT_GT(drive("ordo_text", server).get("errors"), 0);
}

TEST(GatewayLoadTest, ARefusalIsABadAnswer) {
  const FakeServer server([](std::string& in) {
    std::string out;
    for (const auto& request : take_lines(in)) {
      out += request[0] == "7" ? "REJ 7 " + request[1] + " 0 busy\n" : ok_line(request);
    }
    return out;
  });
  const Measures run = drive("ordo_text", server);
  EXPECT_EQ(run.get("bad"), 1);
  EXPECT_EQ(run.get("disordered"), 0);
}

TEST(GatewayLoadTest, ADecisionThatDoesNotFitIsABadAnswer) {
  const FakeServer server([](std::string& in) {
    std::string out;
    for (const auto& request : take_lines(in))
      out += "OK " + request[0] + " " + request[1] + " 0 reject:unknown t0=1 t1=2\n";
    return out;
  });
  EXPECT_GT(drive("ordo_text", server).get("bad"), 0);
}

// The replies come in order, but what they say was decided in another.
TEST(GatewayLoadTest, AnOrderWithAFillTooManyIsABadAnswer) {
  const FakeServer server([](std::string& in) {
    std::string out;
    for (const auto& request : take_lines(in)) {
      const bool is_wrong = request[0] == "25";
      out += is_wrong ? "OK 25 " + request[1] + " 0 filled:98 t0=1 t1=2\n" : ok_line(request);
    }
    return out;
  });
  const Measures run = drive("ordo_text", server);
  EXPECT_EQ(run.get("bad"), 1);
  EXPECT_EQ(run.get("disordered"), 0);
}

TEST(GatewayLoadTest, WhatIsNeverAnsweredIsAnError) {
  const FakeServer server([](std::string&) { return std::string(); });
  const Measures run = run_load({.dialect = "ordo_text",
                                 .port = server.port(),
                                 .connections = 1,
                                 .warm_ns = 0,
                                 .measured_ns = 1'000'000,
                                 .patience_ns = 50'000'000});
  EXPECT_EQ(run.get("unanswered"), 1);
  EXPECT_GT(run.get("errors"), 0);
}

TEST(GatewayLoadTest, APortWithoutAServerIsAnError) {
  EXPECT_GT(run_load({.dialect = "ordo_text", .port = 1, .connections = 1}).get("errors"), 0);
}

// The binary frames of the requests come back as frames of replies.
TEST(GatewayLoadTest, BinaryRepliesAreUnderstood) {
  const FakeServer server([](std::string& in) {
    std::string out;
    while (in.size() >= 8) {
      std::uint32_t body = 0;
      std::memcpy(&body, in.data() + 4, sizeof body);
      if (in.size() < 8 + body) break;
      const auto length = static_cast<std::size_t>(in[2]);
      const std::string decision =
          decision_for(in.substr(16, length), in.substr(16 + length, body - 8 - length));
      const auto reply_body = static_cast<std::uint32_t>(32 + length + decision.size());
      out += std::string({1, static_cast<char>(129), in[2], 0});
      out.append(reinterpret_cast<const char*>(&reply_body), sizeof reply_body);
      out += in.substr(8, 8) + std::string(24, '\0') + in.substr(16, length) + decision;
      in.erase(0, 8 + body);
    }
    return out;
  });
  EXPECT_EQ(drive("ordo_binary", server).get("errors"), 0);
}

TEST(GatewayLoadTest, EchoedBytesAreUnderstoodInAnOpenLoop) {
  const FakeServer server([](std::string& in) { return std::exchange(in, std::string()); });
  const Measures run = drive("echo", server, 100'000);
  EXPECT_EQ(run.get("errors"), 0);
  EXPECT_LE(run.get("requests"), 2'040);  // 20 ms of 100,000 requests/s, and a burst.
}

TEST(GatewayLoadTest, AnOpenLoopCountsWhatWasDueThoughTheServerStandsStillUntilItIsOver) {
  constexpr std::uint64_t kStillNs = 50'000'000;
  std::size_t asked = 0;
  Measures run;
  {
    std::uint64_t until_ns = 0;
    const FakeServer server([&](std::string& in) {
      if (until_ns == 0) until_ns = now_ns() + kStillNs;
      while (now_ns() < until_ns)
        ::poll(nullptr, 0, 1);
      std::string out;
      for (const auto& request : take_lines(in)) {
        out += ok_line(request);
        ++asked;
      }
      return out;
    });
    run = drive("ordo_text", server, 100'000);
  }
  EXPECT_EQ(run.get("errors"), 0);
  EXPECT_EQ(asked, 2'000U);  // 20 ms of 100,000 requests/s.
  EXPECT_GE(run.get("max_us"), 50'000);
  EXPECT_GT(run.get("p50_us"), 25'000);
}

TEST(GatewayLoadTest, AnEchoOfOtherBytesIsABadAnswer) {
  const FakeServer server([](std::string& in) {
    if (in.size() > 20) in[20] = '?';
    return std::exchange(in, std::string());
  });
  EXPECT_GT(drive("echo", server).get("bad"), 0);
}

TEST(GatewayDialectTest, AnOrderLivesFromNewToCancelAndThenHasANewId) {
  const auto dialect = make_dialect("ordo_text", 3);
  const auto asked = [&](std::uint64_t sequence) {
    std::string out;
    dialect->ask(sequence, out);
    return out;
  };
  EXPECT_EQ(asked(0), "0 61 NEW ACME BUY 100 99.5\n");
  EXPECT_EQ(asked(20), "20 61 FILL 1\n");
  EXPECT_EQ(asked(40), "40 61 STATUS\n");
  EXPECT_EQ(asked(63 * 20), "1260 61 CANCEL\n");
  EXPECT_EQ(asked(64 * 20), "1280 1000061 NEW ACME BUY 100 99.5\n");
}

TEST(GatewayDialectTest, RedisIsAskedAsItsOwnBenchmarkAsks) {
  std::string out;
  make_dialect("redis_set", 7)->ask(3, out);
  EXPECT_EQ(out, "*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000143\r\n$3\r\nxxx\r\n");
  const auto get = make_dialect("redis_get", 0);
  EXPECT_EQ(get->read("$3\r\nx").size, 0U);
  EXPECT_TRUE(get->read("$3\r\nxxx\r\n").good);
  EXPECT_FALSE(get->read("$-1\r\n").good);
}

}  // namespace
}  // namespace ordo::bench

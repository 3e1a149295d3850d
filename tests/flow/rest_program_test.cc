// The JSON form of the Pub/Sub API, as the real `ordo serve` has it, asked by curl.
#include <array>
#include <csignal>
#include <cstdio>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "map_program.h"
#include "tests/support/raw_socket.h"
#include "tests/support/waiting.h"

namespace ordo::flow {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::eventually;
using testing_support::RawSocket;

constexpr const char* kOrdered =
    R"({"topic":"projects/p/topics/orders","enableMessageOrdering":true,"ackDeadlineSeconds":600})";

// The program on a free port, and curl to ask it.
class RestProgram : public testing::Test {
 protected:
  RestProgram() {
    program_.read_line();
    const std::string at = program_.read_line();  // Pub/Sub    127.0.0.1:8085      export ...
    const std::size_t colon = at.find(':');
    if (colon != std::string::npos)
      port_ = static_cast<std::uint16_t>(std::stoul(at.substr(colon + 1)));
    EXPECT_NE(port_, 0) << at;
  }

  // The body, and behind it the version and the status of HTTP.
  std::string curl(const std::string& words, const std::string& path) const {
    const std::string command = "timeout 60 curl -sS -m 60 -w '%{http_version} %{http_code}' " +
                                words + " 'http://127.0.0.1:" + std::to_string(port_) + path +
                                "' 2>&1";
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    std::string said;
    std::array<char, 4'096> buffer{};
    for (std::size_t size = 0; (size = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
      said.append(buffer.data(), size);
    ::pclose(pipe);
    return said;
  }
  static std::string post(const std::string& body) { return "-d '" + body + "'"; }

  void create() const {
    ASSERT_THAT(curl("-X PUT", topic_), EndsWith(" 200"));
    ASSERT_THAT(curl("-X PUT " + post(kOrdered), subscription_), EndsWith(" 200"));
  }
  std::string publish(const std::string& data) const {
    return curl(post(R"({"messages":[{"data":")" + data + R"(","orderingKey":"k"}]})"),
                topic_ + ":publish");
  }
  std::string pull() const {
    return curl(post(R"({"maxMessages":5,"returnImmediately":true})"), subscription_ + ":pull");
  }
  // A pull that waits.
  RawSocket waiting_pull() const {
    RawSocket socket(port_);
    const std::string body = R"({"maxMessages":5})";
    socket.send("POST " + subscription_ + ":pull HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    return socket;
  }
  unsigned long metric(const std::string& name) const {
    const std::string page = curl("", "/metrics");
    const std::size_t at = page.find("\n" + name + " ");
    EXPECT_NE(at, std::string::npos) << name;
    return at == std::string::npos ? 0 : std::stoul(page.substr(at + name.size() + 2));
  }

  const std::string topic_ = "/v1/projects/p/topics/orders";
  const std::string subscription_ = "/v1/projects/p/subscriptions/billing";
  const Folder folder_;
  Program program_{{"serve", "--listen", "127.0.0.1:0", "--data", folder_.file("data")}};
  std::uint16_t port_ = 0;
};

std::string ack_id_in(const std::string& json) {
  const std::string mark = "\"ackId\": \"";
  const std::size_t begin = json.find(mark);
  if (begin == std::string::npos) return {};
  return json.substr(begin + mark.size(),
                     json.find('"', begin + mark.size()) - begin - mark.size());
}

TEST_F(RestProgram, MessagesGoInAndComeOutOverHttp1AndHttp2) {
  create();
  EXPECT_THAT(publish("MQ=="), AllOf(HasSubstr("\"messageIds\": ["), EndsWith("1.1 200")));
  EXPECT_THAT(
      curl("--http2-prior-knowledge " + post(R"({"messages":[{"data":"Mg==","orderingKey":"k"}]})"),
           topic_ + ":publish"),
      AllOf(HasSubstr("\"messageIds\": ["), EndsWith("2 200")));
  const std::string first = pull();
  EXPECT_THAT(first, AllOf(HasSubstr("MQ=="), EndsWith("1.1 200")));
  EXPECT_THAT(curl("--http2-prior-knowledge " + post(R"({"ackIds":[")" + ack_id_in(first) + "\"]}"),
                   subscription_ + ":acknowledge"),
              StartsWith("{}\n2 200"));
  EXPECT_THAT(
      curl("--http2-prior-knowledge " + post(R"({"maxMessages":5})"), subscription_ + ":pull"),
      AllOf(HasSubstr("Mg=="), EndsWith("2 200")));
}

TEST_F(RestProgram, ErrorsAreJsonAndThePagesStayWhereTheyAre) {
  EXPECT_THAT(curl("", topic_), AllOf(HasSubstr("\"status\": \"NOT_FOUND\""), EndsWith("1.1 404")));
  EXPECT_THAT(curl("--http2-prior-knowledge -X DELETE", topic_), EndsWith("2 404"));
  EXPECT_THAT(curl("", "/v1/what"), AllOf(HasSubstr("\"code\": 404"), EndsWith(" 404")));
  EXPECT_THAT(curl("-H 'Origin: http://evil.example' -X PUT", topic_), EndsWith(" 403"));
  EXPECT_THAT(curl("", "/"), AllOf(HasSubstr("<title>Ordo</title>"), EndsWith(" 200")));
  EXPECT_THAT(curl("-X PUT -d @/dev/null", topic_), EndsWith(" 200"));
  EXPECT_THAT(curl("-I", topic_), ContainsRegex("content-type: application/json"));
}

// Goal: a client that is killed while it pulls takes no message with it, for 600 s.
TEST_F(RestProgram, APullWhoseClientHasGoneTakesNothing) {
  create();
  {
    const RawSocket gone = waiting_pull();
    ASSERT_TRUE(gone.is_connected());
  }
  ASSERT_TRUE(eventually([&] { return metric("ordo_http_cancelled_total") == 1; }));
  publish("MQ==");
  EXPECT_TRUE(eventually([&] { return pull().find("MQ==") != std::string::npos; }));
}

TEST_F(RestProgram, AServerThatStopsAnswersItsPulls) {
  create();
  RawSocket waiting = waiting_pull();
  // Each look at the metrics is a request too.
  unsigned long looks = 0;
  const unsigned long before = 2;
  ASSERT_TRUE(eventually([&] {
    ++looks;
    return metric("ordo_http_requests_total") == before + looks + 1;
  }));
  program_.signal(SIGTERM);
  EXPECT_THAT(waiting.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(program_.finish().status, 0);
}

}  // namespace
}  // namespace ordo::flow

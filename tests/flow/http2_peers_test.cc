// Real clients against the HTTP/2 front: curl, nghttp and h2load.
#include <array>
#include <cstdio>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/echo_program.h"
#include "tests/support/waiting.h"

namespace ordo::http2 {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::EchoProgram;
using testing_support::Watchdog;

// What a command prints, both ways; it has 60 s.
std::string said_by(const std::string& command) {
  std::FILE* const pipe = ::popen(("timeout 60 " + command + " 2>&1").c_str(), "r");
  std::string words;
  std::array<char, 4'096> buffer{};
  for (std::size_t size = 0; (size = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    words.append(buffer.data(), size);
  ::pclose(pipe);
  return words;
}

class Http2Peers : public testing::Test {
 protected:
  Watchdog watchdog_{"Http2Peers"};
  EchoProgram echo_{{.threads = 2}};
};

TEST_F(Http2Peers, CurlSpeaksHttp1) {
  EXPECT_THAT(said_by("curl -s -i " + echo_.url() + "/hello"),
              AllOf(HasSubstr("HTTP/1.1 200 OK"), HasSubstr("hello\n")));
  EXPECT_THAT(said_by("curl -s -I " + echo_.url() + "/hello"), HasSubstr("content-length: 6"));
  EXPECT_EQ(said_by("curl -s -N " + echo_.url() + "/events"), "data: 0\n\ndata: 1\n\ndata: 2\n\n");
  EXPECT_EQ(
      said_by("curl -s -d one " + echo_.url() + "/echo --next -s -d two " + echo_.url() + "/echo"),
      "onetwo");
}

TEST_F(Http2Peers, CurlSendsChunksAndWaitsToGoOn) {
  const std::string body = testing::TempDir() + "http2_peers_body";
  std::ofstream(body) << std::string(2'000'000, 'c');
  const std::string same = " -s -o - " + echo_.url() + "/echo | cmp - " + body + " && echo same";
  EXPECT_EQ(
      said_by("sh -c 'curl -H \"Transfer-Encoding: chunked\" --data-binary @" + body + same + "'"),
      "same\n");
  EXPECT_EQ(said_by("sh -c 'curl -H \"Expect: 100-continue\" --data-binary @" + body + same + "'"),
            "same\n");
  std::remove(body.c_str());
}

TEST_F(Http2Peers, CurlSpeaksHttp2) {
  const std::string curl = "curl -s --http2-prior-knowledge ";
  EXPECT_THAT(said_by(curl + "-i " + echo_.url() + "/hello"),
              AllOf(HasSubstr("HTTP/2 200"), HasSubstr("hello\n")));
  EXPECT_EQ(said_by(curl + "-o /dev/null -w %{size_download} " + echo_.url() + "/large"),
            "4194304");
}

TEST_F(Http2Peers, NghttpGetsManyInOneConnection) {
  std::string command = "nghttp -n -s -m 50 " + echo_.url() + "/hello";
  const std::string words = said_by(command);
  EXPECT_THAT(words, HasSubstr("/hello"));
  EXPECT_THAT(words, HasSubstr(" 200 "));
}

TEST_F(Http2Peers, H2loadMakesUnaryCalls) {
  const std::string message = testing::TempDir() + "http2_peers_message";
  std::ofstream(message) << std::string("\0\0\0\0\5hello", 10);
  for (const char* method : {"Say", "Later"}) {
    const std::string words = said_by("h2load -n 5000 -c 4 -m 50 -d " + message +
                                      " -H 'content-type: application/grpc' -H 'te: trailers' " +
                                      echo_.url() + "/test.Echo/" + method);
    EXPECT_THAT(words, HasSubstr("5000 succeeded, 0 failed, 0 errored")) << words;
  }
  std::remove(message.c_str());
  EXPECT_THAT(echo_.end(), HasSubstr("calls 10000 "));
}

}  // namespace
}  // namespace ordo::http2

// Hostile clients against the HTTP/2 front, over real sockets: its memory stays bounded, and an
// honest client is served meanwhile and afterwards.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/echo_program.h"
#include "tests/support/raw_socket.h"
#include "tests/support/waiting.h"

namespace ordo::http2 {
namespace {

using testing_support::Background;
using testing_support::EchoProgram;
using testing_support::eventually;
using testing_support::is_served;
using testing_support::kIsSanitized;
using testing_support::RawSocket;
using testing_support::Watchdog;

constexpr std::size_t kGrowthMax = std::size_t{64} << 20;

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream,
                  std::string_view payload) {
  std::string text;
  for (const int shift : {16, 8, 0})
    text.push_back(static_cast<char>(payload.size() >> shift & 0xFF));
  text.push_back(static_cast<char>(type));
  text.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0})
    text.push_back(static_cast<char>(stream >> shift & 0xFF));
  return text.append(payload);
}

constexpr std::uint8_t kHeaders = 1;
constexpr std::uint8_t kReset = 3;
constexpr std::uint8_t kSettings = 4;
constexpr std::uint8_t kPing = 6;
constexpr std::uint8_t kContinuation = 9;
constexpr std::uint8_t kEndHeaders = 4;

// The preface, and SETTINGS that say nothing.
std::string hello() {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, "");
}

// POST http / with the content-type of gRPC and the path of a call that stays open.
std::string call_block() {
  const std::string path = "/test.Echo/Chat";
  const std::string type = "application/grpc";
  std::string block = "\x83\x86\x44";
  block.push_back(static_cast<char>(path.size()));
  block.append(path).append("\x5f");
  block.push_back(static_cast<char>(type.size()));
  return block.append(type);
}

// As many as the environment says, else the usual; fewer with sanitizers.
int count_of(const char* variable, int usual) {
  const char* const text = std::getenv(variable);
  if (text != nullptr) return std::atoi(text);
  return kIsSanitized ? usual / 10 : usual;
}

// Short, but an honest client must not be late on a slow machine.
constexpr int kShortTimeout = 8;

// Serves an honest client for as long as `attack` runs, and looks at the memory before and after.
void survive(EchoProgram& echo, const std::function<void()>& attack) {
  EXPECT_TRUE(is_served(echo.port()));
  const std::size_t before = echo.resident_bytes();
  std::atomic<int> served = 0;
  std::atomic<int> failed = 0;
  std::size_t peak = before;
  {
    Background attacker(attack);
    do {
      ++(is_served(echo.port()) ? served : failed);
      peak = std::max(peak, echo.resident_bytes());
    } while (!attacker.is_finished());
  }
  EXPECT_EQ(failed, 0);
  EXPECT_GE(served, 1);
  EXPECT_TRUE(is_served(echo.port()));
  if (!kIsSanitized) {
    EXPECT_LE(peak, before + kGrowthMax);
  }
  EXPECT_NE(echo.end(), "");
}

TEST(Http2Hostile, AHundredThousandResets) {
  Watchdog watchdog("Http2Hostile.AHundredThousandResets");
  EchoProgram echo({.threads = 2});
  const int resets_max = count_of("ORDO_HTTP_RESETS", 100'000);
  survive(echo, [&] {
    const std::string block = call_block();
    for (int sent = 0; sent < resets_max;) {
      RawSocket socket(echo.port());
      socket.send(hello());
      std::uint32_t stream = 1;
      for (bool is_open = true; is_open && sent < resets_max;) {
        std::string batch;
        for (int i = 0; i < 100; ++i, stream += 2, ++sent) {
          batch.append(frame(kHeaders, kEndHeaders, stream, block));
          batch.append(frame(kReset, 0, stream, std::string_view("\0\0\0\x08", 4)));
        }
        is_open = socket.send(batch);
      }
    }
  });
}

// Repeats `bytes` behind a beginning until the server closes, on `connections` connections.
void flood(std::uint16_t port, int connections, const std::string& begin,
           const std::string& bytes) {
  constexpr std::size_t kBytesMax = std::size_t{16} << 20;
  for (int i = 0; i < connections; ++i) {
    RawSocket socket(port);
    socket.send(hello() + begin);
    std::size_t sent = 0;
    while (sent < kBytesMax && socket.send(bytes))
      sent += bytes.size();
    EXPECT_LT(sent, kBytesMax);
    EXPECT_TRUE(socket.is_closed());
  }
}

TEST(Http2Hostile, EndlessContinuations) {
  Watchdog watchdog("Http2Hostile.EndlessContinuations");
  EchoProgram echo({});
  std::string continuations;
  for (int i = 0; i < 1'000; ++i)
    continuations.append(frame(kContinuation, 0, 1, "\x82"));
  survive(echo, [&] { flood(echo.port(), 20, frame(kHeaders, 0, 1, ""), continuations); });
}

TEST(Http2Hostile, TenMegabytesOfHeaders) {
  Watchdog watchdog("Http2Hostile.TenMegabytesOfHeaders");
  EchoProgram echo({});
  survive(echo, [&] {
    const std::string field = std::string("\x40\x01x\x7f\xe1\x7d", 6) + std::string(16'224, 'v');
    flood(echo.port(), 20, frame(kHeaders, 0, 1, field), frame(kContinuation, 0, 1, field));
  });
}

TEST(Http2Hostile, PingsAndSettingsWithoutEnd) {
  Watchdog watchdog("Http2Hostile.PingsAndSettingsWithoutEnd");
  EchoProgram echo({});
  std::string pings;
  std::string settings;
  for (int i = 0; i < 1'000; ++i) {
    pings.append(frame(kPing, 0, 0, "pingping"));
    settings.append(frame(kSettings, 0, 0, ""));
  }
  survive(echo, [&] {
    flood(echo.port(), 10, "", pings);
    flood(echo.port(), 10, "", settings);
  });
}

TEST(Http2Hostile, AThousandIdleConnections) {
  Watchdog watchdog("Http2Hostile.AThousandIdleConnections");
  EchoProgram echo({.threads = 2});
  std::vector<RawSocket> sockets;
  const int connections = count_of("ORDO_HTTP_CONNECTIONS", 900);
  survive(echo, [&] {
    for (int i = 0; i < connections; ++i) {
      sockets.emplace_back(echo.port());
      EXPECT_TRUE(sockets.back().send(hello()));
    }
  });
}

TEST(Http2Hostile, OutOfDescriptorsAndBack) {
  Watchdog watchdog("Http2Hostile.OutOfDescriptorsAndBack");
  EchoProgram echo({.threads = 1, .descriptors = 64});
  ASSERT_TRUE(is_served(echo.port()));
  {
    std::vector<RawSocket> sockets;
    for (int i = 0; i < 100; ++i) {
      sockets.emplace_back(echo.port());
      sockets.back().send(hello());
    }
    // Whoever came first is served on.
    EXPECT_NE(sockets.front().read(), "");
  }
  EXPECT_TRUE(is_served(echo.port()));
  const std::string words = echo.end();
  EXPECT_EQ(words.find(" failed 0"), std::string::npos) << words;
}

TEST(Http2Hostile, HandshakesThatStopHalfWay) {
  Watchdog watchdog("Http2Hostile.HandshakesThatStopHalfWay");
  EchoProgram echo({.timeout_seconds = kShortTimeout});
  survive(echo, [&] {
    std::vector<RawSocket> sockets;
    for (int i = 0; i < 200; ++i) {
      sockets.emplace_back(echo.port());
      sockets.back().send(i % 2 == 0 ? "PRI * HTT" : "GET / HT");
    }
    for (RawSocket& socket : sockets)
      EXPECT_TRUE(socket.is_closed());
  });
}

TEST(Http2Hostile, ReadersThatDoNotRead) {
  Watchdog watchdog("Http2Hostile.ReadersThatDoNotRead");
  EchoProgram echo({.timeout_seconds = kShortTimeout});
  std::vector<RawSocket> sockets;
  survive(echo, [&] {
    for (int i = 0; i < 200; ++i) {
      sockets.emplace_back(echo.port(), 4'096);
      sockets.back().send("GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n");
    }
    // They are given up after the write timeout, though none of them goes.
    EXPECT_TRUE(eventually([&] {
      return std::all_of(sockets.begin(), sockets.end(),
                         [](const RawSocket& socket) { return socket.is_reset(); });
    }));
  });
}

}  // namespace
}  // namespace ordo::http2

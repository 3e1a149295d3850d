// Hostile clients against the HTTP/2 front, over real sockets: its memory stays bounded, and an
// honest client is served meanwhile and afterwards.
//
// With ORDO_HTTP_HOSTILE=1 in full size, on a machine that does nothing else: then the honest
// client must also keep its 99th percentile within twice what it was, and be served within a second
// after the attack. The figures are printed. Where the attack takes its time from the system more
// than from the server, the percentile may also be what it was on top of that with a BareServer.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "ordo/adapters/http2/gzip.h"
#include "tests/support/bare_server.h"
#include "tests/support/echo_program.h"
#include "tests/support/honest_client.h"
#include "tests/support/http2_frames.h"
#include "tests/support/raw_socket.h"
#include "tests/support/waiting.h"

namespace ordo::http2 {
namespace {

using testing_support::BareServer;
using testing_support::EchoProgram;
using testing_support::eventually;
using testing_support::frame;
using testing_support::HonestClient;
using testing_support::is_served;
using testing_support::kIsSanitized;
using testing_support::RawSocket;
using testing_support::Watchdog;

constexpr std::size_t kGrowthMax = std::size_t{64} << 20;
constexpr int kStep = 4;                        // So many connections, then the honest client asks.
constexpr std::chrono::seconds kSiegeMax{250};  // Of the full size, too.

constexpr std::uint8_t kData = 0;
constexpr std::uint8_t kHeaders = 1;
constexpr std::uint8_t kReset = 3;
constexpr std::uint8_t kSettings = 4;
constexpr std::uint8_t kPing = 6;
constexpr std::uint8_t kContinuation = 9;
constexpr std::uint8_t kEndStream = 1;
constexpr std::uint8_t kEndHeaders = 4;

// The preface, and SETTINGS that say nothing.
std::string hello() {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, "");
}

// POST http localhost with the content-type of gRPC and the path of a call that stays open. HPACK
// remembers nothing of it.
std::string call_block(const std::string& path = "/test.Echo/Chat") {
  const std::string type = "application/grpc";
  std::string block = "\x83\x86\x01\x01x\x04";
  block.push_back(static_cast<char>(path.size()));
  block.append(path).append("\x0f\x10");
  block.push_back(static_cast<char>(type.size()));
  return block.append(type);
}

// As many as the system lets us have; children inherit it.
void allow_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

bool is_full_size() {
  const char* const text = std::getenv("ORDO_HTTP_HOSTILE");
  return text != nullptr && std::string_view(text) == "1";
}

// The full size when it is asked for, else the usual; fewer with sanitizers.
int count_of(int full, int usual) {
  if (is_full_size()) return full;
  return kIsSanitized ? usual / 10 : usual;
}

// Short, but an honest client must not be late on a slow machine.
constexpr int kShortTimeout = 8;

// In full size the server has a processor of its own, as it would have with its clients elsewhere.
EchoProgram::Options server_options(int timeout_seconds = 60) {
  if (!is_full_size()) return {.threads = 2, .timeout_seconds = timeout_seconds};
  testing_support::run_on(1);
  return {.timeout_seconds = timeout_seconds, .processor = 0};
}

struct Siege {
  std::size_t growth = 0;              // Of the server's memory, in bytes.
  std::chrono::microseconds before{};  // The honest client's 99th percentile,
  std::chrono::microseconds during{};
  std::chrono::microseconds kept_before{};  // that on the connection it keeps,
  std::chrono::microseconds kept_during{};
  std::chrono::microseconds bare{};  // with a BareServer during the attack, 0: not measured,
  std::chrono::microseconds back{};  // and its first answer after the attack.
  std::size_t asked = 0;
};

// Of what is work for the server, and not only noise, the time is not judged.
enum class Judged { memory_and_time, memory };

void judge(const Siege& siege, Judged judged) {
  if (!kIsSanitized) {
    EXPECT_LE(siege.growth, kGrowthMax);
  }
  if (!is_full_size()) return;
  std::printf(
      "%s: grew by %.1f MB, p99 %ld us before, %ld us during (%zu requests; of the kept connection "
      "%ld and %ld; of a bare server %ld), back in %ld us\n",
      testing::UnitTest::GetInstance()->current_test_info()->name(),
      static_cast<double>(siege.growth) / 1e6, static_cast<long>(siege.before.count()),
      static_cast<long>(siege.during.count()), siege.asked,
      static_cast<long>(siege.kept_before.count()), static_cast<long>(siege.kept_during.count()),
      static_cast<long>(siege.bare.count()), static_cast<long>(siege.back.count()));
  if (judged == Judged::memory) return;
  EXPECT_LE(siege.during, siege.before + std::max(siege.before, siege.bare));
  EXPECT_LE(siege.back, std::chrono::seconds(1));
}

using Pause = std::function<void()>;
using Attack = std::function<void(std::uint16_t port, const Pause& pause)>;

// From where the attacker's connection `index` comes: not from the honest client's address, whose
// ports would become rare.
std::uint32_t address_of_attacker(int index) {
  constexpr std::uint32_t kAddresses = 8;
  return INADDR_LOOPBACK + 1 + static_cast<std::uint32_t>(index) % kAddresses;
}

// The honest client's 99th percentile with a server that is nothing but system calls; in full size.
std::chrono::microseconds percentile_of_bare(const Attack& attack) {
  if (!is_full_size()) return {};
  const BareServer bare(0);
  HonestClient honest(bare.port());
  attack(bare.port(), [&] { honest.ask(); });
  EXPECT_EQ(honest.failed(), 0);
  return honest.percentile(0.99);
}

// Runs `attack`, which calls its pause after each step: then, with all the step brought still in
// front of the server, an honest client asks, and the memory is looked at. One thread does both, so
// that no scheduler comes between.
void survive(EchoProgram& echo, const Attack& attack, Judged judged = Judged::memory_and_time,
             std::chrono::microseconds bare = {}) {
  HonestClient honest(echo.port());
  for (int i = 0; i < count_of(10'000, 20); ++i)
    honest.ask();
  Siege siege{
      .before = honest.percentile(0.99), .kept_before = honest.kept_percentile(0.99), .bare = bare};
  const std::size_t before = echo.resident_bytes();
  std::size_t peak = before;
  honest.forget_times();
  attack(echo.port(), [&] {
    honest.ask();
    if (honest.count() % 16 == 1) peak = std::max(peak, echo.resident_bytes());
  });
  siege.during = honest.percentile(0.99);
  siege.kept_during = honest.kept_percentile(0.99);
  siege.asked = honest.count();
  const TimePoint end = system_clock().now();
  EXPECT_TRUE(is_served(echo.port()));
  siege.back = std::chrono::duration_cast<std::chrono::microseconds>(system_clock().now() - end);
  siege.growth = std::max(peak, echo.resident_bytes()) - before;
  EXPECT_EQ(honest.failed(), 0);
  EXPECT_GE(siege.asked, 1u);
  judge(siege, judged);
  EXPECT_NE(echo.end(), "");
}

// On each connection a little more than it may; then the next.
TEST(Http2Hostile, StreamsThatAreResetAtOnce) {
  Watchdog watchdog("Http2Hostile.StreamsThatAreResetAtOnce", kSiegeMax);
  EchoProgram echo(server_options());
  const int resets_max = count_of(1'000'000, 100'000);
  constexpr std::uint32_t kResetsOfOne = 1'100;
  survive(echo, [&](std::uint16_t port, const Pause& pause) {
    const std::string block = call_block();
    std::string batch = hello();
    for (std::uint32_t stream = 1; stream < 2 * kResetsOfOne; stream += 2) {
      batch.append(frame(kHeaders, kEndHeaders, stream, block));
      batch.append(frame(kReset, 0, stream, std::string_view("\0\0\0\x08", 4)));
    }
    for (int sent = 0; sent < resets_max; sent += static_cast<int>(kResetsOfOne)) {
      RawSocket socket(port, 0, address_of_attacker(sent));
      socket.send(batch);
      pause();
      EXPECT_TRUE(socket.is_closed());
    }
  });
}

// Repeats `bytes` behind a beginning until the server closes, on `connections` connections.
void flood(std::uint16_t port, int connections, const std::string& begin, const std::string& bytes,
           const Pause& pause) {
  constexpr std::size_t kBytesMax = std::size_t{16} << 20;
  constexpr int kFloodStep = 32;
  int steps = 0;
  for (int i = 0; i < connections; ++i) {
    RawSocket socket(port, 0, address_of_attacker(i));
    socket.send(hello() + begin);
    std::size_t sent = 0;
    while (sent < kBytesMax && socket.send(bytes)) {
      if (steps++ % kFloodStep == 0) pause();
      sent += bytes.size();
    }
    EXPECT_LT(sent, kBytesMax);
    EXPECT_TRUE(socket.is_closed());
  }
}

TEST(Http2Hostile, EndlessContinuations) {
  Watchdog watchdog("Http2Hostile.EndlessContinuations", kSiegeMax);
  EchoProgram echo(server_options());
  std::string continuations;
  for (int i = 0; i < 1'000; ++i)
    continuations.append(frame(kContinuation, 0, 1, "\x82"));
  survive(echo, [&](std::uint16_t port, const Pause& pause) {
    flood(port, count_of(500, 20), frame(kHeaders, 0, 1, ""), continuations, pause);
  });
}

TEST(Http2Hostile, TenMegabytesOfHeaders) {
  Watchdog watchdog("Http2Hostile.TenMegabytesOfHeaders", kSiegeMax);
  EchoProgram echo(server_options());
  survive(echo, [&](std::uint16_t port, const Pause& pause) {
    const std::string field = std::string("\x40\x01x\x7f\xe1\x7d", 6) + std::string(16'224, 'v');
    flood(port, count_of(500, 20), frame(kHeaders, 0, 1, field), frame(kContinuation, 0, 1, field),
          pause);
  });
}

TEST(Http2Hostile, PingsAndSettingsWithoutEnd) {
  Watchdog watchdog("Http2Hostile.PingsAndSettingsWithoutEnd", kSiegeMax);
  EchoProgram echo(server_options());
  std::string pings;
  std::string settings;
  for (int i = 0; i < 1'000; ++i) {
    pings.append(frame(kPing, 0, 0, "pingping"));
    settings.append(frame(kSettings, 0, 0, ""));
  }
  survive(echo, [&](std::uint16_t port, const Pause& pause) {
    flood(port, count_of(250, 10), "", pings, pause);
    flood(port, count_of(250, 10), "", settings, pause);
  });
}

// GET http localhost /hello, and nothing after it.
std::string request(std::uint32_t stream = 1) {
  return frame(kHeaders, kEndHeaders | kEndStream, stream, "\x82\x86\x41\x01x\x44\x06/hello");
}

// Of three one is silent, one greets, one asks once; all stay.
TEST(Http2Hostile, ConnectionsThatAreHeldAndNotUsed) {
  Watchdog watchdog("Http2Hostile.ConnectionsThatAreHeldAndNotUsed", kSiegeMax);
  allow_descriptors();
  std::vector<RawSocket> sockets;
  const int connections = count_of(15'000, 900);
  const Attack attack = [&](std::uint16_t port, const Pause& pause) {
    for (int i = 0; i < connections; ++i) {
      sockets.emplace_back(port, 0, address_of_attacker(i));
      if (i % 3 == 1) sockets.back().send(hello());
      if (i % 3 == 2) sockets.back().send(hello() + request());
      if (i % kStep == 0) pause();
    }
  };
  EchoProgram echo(server_options());
  const std::chrono::microseconds bare = percentile_of_bare(attack);
  sockets.clear();
  survive(echo, attack, Judged::memory_and_time, bare);
}

// Each asks once, and stays: what has served somebody takes most memory.
TEST(Http2Hostile, ConnectionsThatAskOnceAndStay) {
  Watchdog watchdog("Http2Hostile.ConnectionsThatAskOnceAndStay", kSiegeMax);
  allow_descriptors();
  std::vector<RawSocket> sockets;
  const int connections = count_of(15'000, 600);
  const Attack attack = [&](std::uint16_t port, const Pause& pause) {
    for (int i = 0; i < connections; ++i) {
      sockets.emplace_back(port, 0, address_of_attacker(i));
      sockets.back().send(hello() + request());
      if (i % kStep == 0) pause();
    }
  };
  EchoProgram echo(server_options());
  const std::chrono::microseconds bare = percentile_of_bare(attack);
  sockets.clear();
  survive(echo, attack, Judged::memory_and_time, bare);
}

// Each head is long for the server and short for the client: three times the same field, which
// HPACK remembers.
TEST(Http2Hostile, CallsWithLongHeadsThatStay) {
  Watchdog watchdog("Http2Hostile.CallsWithLongHeadsThatStay", kSiegeMax);
  EchoProgram echo(server_options());
  std::vector<RawSocket> sockets;
  const std::string field = std::string("\x40\x01x\x7f\xa1\x1e", 6) + std::string(4'000, 'v');
  std::string calls = hello() + frame(kHeaders, kEndHeaders, 1, call_block() + field);
  for (std::uint32_t stream = 3; stream < 2'000; stream += 2)
    calls.append(frame(kHeaders, kEndHeaders, stream, call_block() + "\xbe\xbe\xbe"));
  survive(
      echo,
      [&](std::uint16_t port, const Pause& pause) {
        for (int i = 0; i < count_of(400, 20); ++i) {
          sockets.emplace_back(port, 0, address_of_attacker(i));
          sockets.back().send(calls);
          pause();
        }
      },
      Judged::memory);
}

// Of the longest message that is taken, as gzip makes it of nothing but zeros.
TEST(Http2Hostile, ShortMessagesThatInflate) {
  Watchdog watchdog("Http2Hostile.ShortMessagesThatInflate", kSiegeMax);
  EchoProgram echo(server_options());
  RawSocket socket(echo.port());
  const std::string encoding = std::string("\0\x0dgrpc-encoding\x04gzip", 20);
  const std::string zeros(std::size_t{20} << 20, '\0');
  const std::string message = deflated({Slice::constant(zeros)});
  std::string framed = {1, static_cast<char>(message.size() >> 24),
                        static_cast<char>(message.size() >> 16),
                        static_cast<char>(message.size() >> 8), static_cast<char>(message.size())};
  framed.append(message);
  survive(
      echo,
      [&](std::uint16_t /*port*/, const Pause& pause) {
        socket.send(hello());
        const auto end = 2 * static_cast<std::uint32_t>(count_of(200, 10)) + 1;
        for (std::uint32_t stream = 1; stream < end; stream += 2) {
          std::string call =
              frame(kHeaders, kEndHeaders, stream, call_block("/test.Echo/Listen") + encoding);
          constexpr std::size_t kFrameBytesMax = 16'384;
          for (std::size_t sent = 0; sent < framed.size(); sent += kFrameBytesMax)
            call.append(
                frame(kData, 0, stream, std::string_view(framed).substr(sent, kFrameBytesMax)));
          socket.send(call);
          pause();
        }
        // When this is answered all of them have been inflated.
        socket.send(request(end));
        EXPECT_NE(socket.read_until("hello\n"), "");
      },
      Judged::memory);
}

TEST(Http2Hostile, OutOfDescriptorsAndBack) {
  Watchdog watchdog("Http2Hostile.OutOfDescriptorsAndBack");
  EchoProgram echo({.threads = 1, .descriptors = 64});
  RawSocket first(echo.port());
  ASSERT_TRUE(first.send("GET /hello HTTP/1.1\r\nhost: localhost\r\n\r\n"));
  ASSERT_NE(first.read_until("hello\n"), "");
  TimePoint end;
  {
    std::vector<RawSocket> sockets;
    for (int i = 0; i < 100; ++i) {
      sockets.emplace_back(echo.port());
      sockets.back().send(hello());
    }
    // Whoever came first is served on.
    EXPECT_NE(sockets.front().read(), "");
    EXPECT_TRUE(first.send("GET /hello HTTP/1.1\r\nhost: localhost\r\n\r\n"));
    EXPECT_NE(first.read_until("hello\n"), "");
    EXPECT_TRUE(eventually([&] {
      first.send("GET /failed HTTP/1.1\r\nhost: localhost\r\n\r\n");
      return first.read_until("!").find("failed 0!") == std::string::npos;
    }));
    end = system_clock().now();
  }
  EXPECT_TRUE(is_served(echo.port()));
  if (is_full_size()) {
    const auto back = system_clock().now() - end;
    std::printf("OutOfDescriptorsAndBack: back in %ld us\n",
                static_cast<long>(back / std::chrono::microseconds(1)));
    EXPECT_LE(back, std::chrono::seconds(1));
  }
  const std::string words = echo.end();
  EXPECT_EQ(words.find(" failed 0"), std::string::npos) << words;
}

TEST(Http2Hostile, HandshakesThatStopHalfWay) {
  Watchdog watchdog("Http2Hostile.HandshakesThatStopHalfWay", kSiegeMax);
  allow_descriptors();
  EchoProgram echo(server_options(kShortTimeout));
  survive(echo, [&](std::uint16_t port, const Pause& pause) {
    std::vector<RawSocket> sockets;
    for (int i = 0; i < count_of(5'000, 200); ++i) {
      sockets.emplace_back(port, 0, address_of_attacker(i));
      sockets.back().send(i % 2 == 0 ? "PRI * HTT" : "GET / HT");
      if (i % kStep == 0) pause();
    }
    // They are closed after the handshake timeout; meanwhile they are only there.
    while (!sockets.back().has_ended())
      pause();
    for (RawSocket& socket : sockets)
      EXPECT_TRUE(socket.is_closed());
  });
}

TEST(Http2Hostile, ReadersThatDoNotRead) {
  Watchdog watchdog("Http2Hostile.ReadersThatDoNotRead", kSiegeMax);
  allow_descriptors();
  EchoProgram echo(server_options(kShortTimeout));
  std::vector<RawSocket> sockets;
  survive(echo, [&](std::uint16_t port, const Pause& pause) {
    for (int i = 0; i < count_of(2'000, 200); ++i) {
      sockets.emplace_back(port, 4'096, address_of_attacker(i));
      sockets.back().send("GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n");
      if (i % kStep == 0) pause();
    }
    // They are given up after the write timeout, though none of them goes.
    EXPECT_TRUE(eventually([&] {
      pause();
      return std::all_of(sockets.begin(), sockets.end(),
                         [](const RawSocket& socket) { return socket.is_reset(); });
    }));
  });
}

}  // namespace
}  // namespace ordo::http2

// Whose turn it is: what one connection sends, or a crowd of them, does not keep others waiting.
// The I/O thread is held by a handler until all is in front of it; then the order counts, not time.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <latch>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/adapters/http2/put_off_list.h"
#include "ordo/adapters/http2/server.h"
#include "tests/support/http2_frames.h"
#include "tests/support/raw_socket.h"
#include "tests/support/waiting.h"

namespace ordo::http2 {
namespace {

using testing::ElementsAre;
using testing_support::eventually;
using testing_support::frame;
using testing_support::RawSocket;
using testing_support::Watchdog;

using Kind = PutOffList::Kind;

std::vector<std::uint64_t> take_all(PutOffList& list) {
  std::vector<std::uint64_t> taken;
  while (!list.empty())
    taken.push_back(list.take());
  return taken;
}

TEST(PutOffListTest, TheNewestAndTheOldestTakeTurnsWithTheOthersBetween) {
  PutOffList list;
  for (std::uint64_t number = 1; number <= 4; ++number) {
    list.add(number, Kind::unheard);
    list.add(10 + number, Kind::other);
  }
  EXPECT_THAT(take_all(list), ElementsAre(4, 11, 1, 12, 3, 13, 2, 14));
}

TEST(PutOffListTest, WhoIsAloneHasEveryTurn) {
  PutOffList list;
  for (std::uint64_t number = 1; number <= 3; ++number)
    list.add(number, Kind::other);
  EXPECT_THAT(take_all(list), ElementsAre(1, 2, 3));
  for (std::uint64_t number = 1; number <= 3; ++number)
    list.add(number, Kind::unheard);
  const std::vector<std::uint64_t> taken = take_all(list);
  EXPECT_THAT(taken, testing::UnorderedElementsAre(1, 2, 3));
}

constexpr std::uint8_t kHeaders = 1;
constexpr std::uint8_t kReset = 3;
constexpr std::uint8_t kSettings = 4;
constexpr std::uint8_t kEndHeaders = 4;

// A call that stays open, reset at once: 59 bytes.
std::string call_and_reset(std::uint32_t stream) {
  return frame(kHeaders, kEndHeaders, stream,
               "\x83\x86\x41\x01x\x44\x06/Noise\x5f\x10"
               "application/grpc") +
         frame(kReset, 0, stream, std::string_view("\0\0\0\x08", 4));
}

std::string noise(std::uint32_t first, std::uint32_t count) {
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i)
    text.append(call_and_reset(first + 2 * i));
  return text;
}

std::string request(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nhost: localhost\r\n\r\n";
}

class TurnsTest : public testing::Test {
 protected:
  // What a small read brings of calls that are reset, and a little more.
  static constexpr std::ptrdiff_t kPiece = 20;

  TurnsTest() : server_({.io_threads = 1}, routes()) {
    const Status started = server_.start();
    EXPECT_TRUE(started);
  }
  ~TurnsTest() override { server_.stop(); }

  std::uint16_t port() const { return server_.port(); }
  static bool is_answered(RawSocket& socket) {
    return socket.read_until("\r\n\r\nhello\n").ends_with("hello\n");
  }
  // A connection that was served before.
  std::unique_ptr<RawSocket> known_client() {
    auto client = std::make_unique<RawSocket>(port());
    EXPECT_TRUE(client->send(request("/before")));
    EXPECT_TRUE(is_answered(*client));
    return client;
  }
  // From here to let_go() the I/O thread does nothing.
  void hold() {
    holder_ = std::make_unique<RawSocket>(port());
    EXPECT_TRUE(holder_->send(request("/hold")));
    EXPECT_TRUE(eventually([&] { return is_held_.load(); }));
  }
  void let_go() { go_.count_down(); }

  std::ptrdiff_t count_before(std::string_view path, std::string_view end) {
    const std::lock_guard lock(mutex_);
    return std::count(order_.begin(), std::find(order_.begin(), order_.end(), end), path);
  }

  Server& server() { return server_; }

 private:
  void note(std::string_view path) {
    const std::lock_guard lock(mutex_);
    order_.emplace_back(path);
  }

  Routes routes() {
    Routes routes;
    routes.streaming("/Noise", [this](const CallPtr&) {
      class Silent final : public CallHandler {
        void on_message(std::string_view) override {}
        void on_half_close() override {}
      };
      note("/Noise");
      return std::make_unique<Silent>();
    });
    routes.plain([this](const ExchangePtr& exchange) {
      note(exchange->path());
      exchange->respond({.body = Slice::constant("hello\n")});
    });
    routes.plain("/hold", [this](const ExchangePtr& exchange) {
      is_held_.store(true);
      go_.wait();
      exchange->respond({.body = Slice::constant("hello\n")});
    });
    routes.plain("/large", [](const ExchangePtr& exchange) {
      exchange->respond({.body = Slice::of(std::string(std::size_t{4} << 20, 'l') + "\nend")});
    });
    return routes;
  }

  Watchdog watchdog_{"TurnsTest"};
  std::mutex mutex_;
  std::vector<std::string> order_;  // Of what was served. Guarded by mutex_.
  std::atomic<bool> is_held_{false};
  std::latch go_{1};
  std::unique_ptr<RawSocket> holder_;
  Server server_;
};

const std::string kHello = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, "");

TEST_F(TurnsTest, AKnownClientDoesNotWaitForABurstOfResets) {
  const auto known = known_client();
  RawSocket noisy(port());
  ASSERT_TRUE(noisy.send(kHello + noise(1, 30)));
  ASSERT_TRUE(eventually([&] { return count_before("/Noise", "") == 30; }));
  hold();
  ASSERT_TRUE(noisy.send(noise(61, 800)));
  ASSERT_TRUE(known->send(request("/known")));
  let_go();
  EXPECT_TRUE(is_answered(*known));
  EXPECT_LE(count_before("/Noise", "/known"), 30 + kPiece);
  // And the others have their turn, too.
  EXPECT_TRUE(eventually([&] { return count_before("/Noise", "") == 830; }));
}

TEST_F(TurnsTest, AKnownClientDoesNotWaitForACrowdOfNewOnes) {
  const auto known = known_client();
  hold();
  std::vector<RawSocket> crowd;
  for (int i = 0; i < 200; ++i) {
    crowd.emplace_back(port());
    ASSERT_TRUE(crowd.back().send(request("/crowd")));
  }
  ASSERT_TRUE(known->send(request("/known")));
  let_go();
  EXPECT_TRUE(is_answered(*known));
  EXPECT_LE(count_before("/crowd", "/known"), 10);
  for (RawSocket& one : crowd)
    EXPECT_TRUE(is_answered(one));
}

TEST_F(TurnsTest, ANewClientDoesNotWaitForBurstsOfResets) {
  std::vector<RawSocket> noisy;
  for (int i = 0; i < 3; ++i) {
    noisy.emplace_back(port());
    ASSERT_TRUE(noisy.back().send(kHello + noise(1, 30)));
  }
  ASSERT_TRUE(eventually([&] { return count_before("/Noise", "") == 90; }));
  hold();
  for (RawSocket& one : noisy)
    ASSERT_TRUE(one.send(noise(61, 800)));
  RawSocket fresh(port());
  ASSERT_TRUE(fresh.send(request("/fresh")));
  let_go();
  EXPECT_TRUE(is_answered(fresh));
  EXPECT_LE(count_before("/Noise", "/fresh"), 90 + 10 * kPiece);
  EXPECT_TRUE(eventually([&] { return count_before("/Noise", "") == 90 + 3 * 800; }));
}

TEST_F(TurnsTest, WhoDoesNotReadIsNotGivenMegabytes) {
  const auto known = known_client();
  RawSocket lazy(port(), 4'096);
  ASSERT_TRUE(lazy.send(request("/large")));
  ASSERT_TRUE(eventually([&] { return server().stats().requests == 2; }));
  ASSERT_TRUE(known->send(request("/known")));
  EXPECT_TRUE(is_answered(*known));
  EXPECT_LE(server().stats().bytes_sent, std::uint64_t{1} << 20);
  // Who reads gets all.
  RawSocket reader(port());
  ASSERT_TRUE(reader.send(request("/large")));
  EXPECT_TRUE(reader.read_until("\nend").ends_with("\nend"));
}

}  // namespace
}  // namespace ordo::http2

// What the handler of a call is told, and when, where the front or another thread comes in between.
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/adapters/http2/grpc_text.h"
#include "tests/support/http2_rig.h"

namespace ordo::http2 {
namespace {

using testing::ElementsAre;
using testing_support::framed;
using testing_support::Http2Rig;

struct Told {
  std::vector<std::string> events{};
  CallPtr call{};
};

// Notes what it is told; `on_each` is called with every message.
class Recorder final : public CallHandler {
 public:
  Recorder(Told& told, std::function<void()> on_each) : told_(told), on_each_(std::move(on_each)) {}
  void on_message(std::string_view bytes) override {
    told_.events.emplace_back(bytes);
    if (on_each_) on_each_();
  }
  void on_half_close() override { told_.events.emplace_back("half close"); }
  void on_cancelled() override { told_.events.emplace_back("cancelled"); }

 private:
  Told& told_;
  const std::function<void()> on_each_;
};

void add_recorder(Routes& routes, Told& told, std::function<void()> on_each = nullptr) {
  routes.streaming("/test.Echo/Chat", [&told, on_each = std::move(on_each)](const CallPtr& call) {
    told.call = call;
    return std::make_unique<Recorder>(told, on_each);
  });
}

TEST(CallTest, AHandlerIsToldThatTheFrontHasEndedItsCall) {
  Told told;
  Http2Rig rig;
  add_recorder(rig.routes, told);
  const std::string no_message("\x05\0\0\0\0", 5);
  const auto id = rig.client.call("/test.Echo/Chat", framed("one") + no_message, false);
  rig.run();
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-status"), "13");
  EXPECT_THAT(told.events, ElementsAre("one", "cancelled"));
  EXPECT_TRUE(told.call->is_cancelled());
  EXPECT_FALSE(told.call->send(Slice::constant("late")));
  rig.lose_connection();
  EXPECT_THAT(told.events, ElementsAre("one", "cancelled"));
}

TEST(CallTest, AHandlerThatThrowsIsToldThatItsCallHasEnded) {
  Told told;
  Http2Rig rig;
  add_recorder(rig.routes, told, [] { throw std::runtime_error("no"); });
  const auto id = rig.client.call("/test.Echo/Chat", framed("one"), true);
  rig.run();
  EXPECT_EQ(rig.client.answer(id).trailer("grpc-message"), "no");
  EXPECT_THAT(told.events, ElementsAre("one", "cancelled"));
}

// Goal: the client's end comes behind all its messages. Method: three things wait; with each
// message the handler holds its input, another thread resumes it at once, and what the handler then
// sends brings that order in, before the next message is handed over.
TEST(CallTest, TheEndComesBehindHeldMessagesThoughAnotherThreadResumes) {
  Told told;
  Http2Rig rig;
  add_recorder(rig.routes, told, [&] {
    if (told.events.size() == 1) return;
    told.call->hold_input();
    std::thread([&] { told.call->resume_input(); }).join();
    told.call->send(Slice::constant("x"));
  });
  const auto id = rig.client.call("/test.Echo/Chat", framed("one"), false);
  rig.run();
  told.call->hold_input();
  rig.client.send(id, framed("two") + framed("three"), true);
  rig.run();
  EXPECT_THAT(told.events, ElementsAre("one"));
  told.call->resume_input();
  rig.run();
  EXPECT_THAT(told.events, ElementsAre("one", "two", "three", "half close"));
}

TEST(CallTest, TheWordsOfAStatusAreCutToWhatEveryClientTakes) {
  std::string words;
  Http2Rig rig;
  rig.routes.unary("/test.Echo/Fail",
                   [&](const CallPtr& call, std::string_view) { call->finish(3, words); });
  const auto said = [&](std::string given) {
    words = std::move(given);
    const auto id = rig.client.call("/test.Echo/Fail", framed("x"), true);
    rig.run();
    EXPECT_EQ(rig.client.answer(id).trailer("grpc-status"), "3");
    return rig.client.answer(id).trailer("grpc-message");
  };
  EXPECT_EQ(said(std::string(1'600, 'e')), std::string(1'600, 'e'));
  EXPECT_EQ(said(std::string(1'601, 'e')), std::string(1'597, 'e') + "...");
  EXPECT_EQ(said(std::string(3'000'000, 'e')), std::string(1'597, 'e') + "...");
}

TEST(GrpcTextTest, WhatIsCutEndsBehindAWholeLetter) {
  std::string text;
  std::string encoded;
  for (std::size_t letters = 0; letters < 10; ++letters) {
    for (std::size_t bytes_max = 3; bytes_max < encoded.size(); ++bytes_max) {
      const std::size_t whole = (bytes_max - 3) / 6 * 6;
      EXPECT_EQ(percent_encoded(text, bytes_max), encoded.substr(0, whole) + "...");
    }
    EXPECT_EQ(percent_encoded(text, encoded.size()), encoded);
    text.append("\xC3\xA9");
    encoded.append("%C3%A9");
  }
}

}  // namespace
}  // namespace ordo::http2

#include "ordo/adapters/push_http/poster.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/core/clock.h"
#include "tests/support/push_receiver.h"
#include "tests/support/waiting.h"

namespace ordo::push_http {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing_support::eventually;
using testing_support::HeldAnswers;
using testing_support::PushedRequest;
using testing_support::PushPeer;
using testing_support::PushReceiver;
using testing_support::Watchdog;

class PosterTest : public testing::Test {
 protected:
  // A request with `body`, for the receiver.
  Post request(const PushReceiver& receiver, const std::string& body,
               std::optional<PostOutcome>& outcome) {
    Post post;
    post.host = "127.0.0.1";
    post.port = receiver.port();
    post.time_max = 600s;
    post.make_request = [body] {
      return "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: " + std::to_string(body.size()) +
             "\r\n\r\n" + body;
    };
    post.answered = [&outcome](const PostResult& result) { outcome = result.outcome; };
    return post;
  }
  bool await(const std::optional<PostOutcome>& outcome) {
    return eventually([&] {
      context_.poll();
      context_.restart();
      return outcome.has_value();
    });
  }
  static std::vector<std::string> bodies(const PushReceiver& receiver) {
    std::vector<std::string> bodies;
    for (const PushedRequest& request : receiver.requests())
      bodies.push_back(request.body);
    return bodies;
  }

  Watchdog watchdog_{"PosterTest"};
  ManualClock clock_;
  boost::asio::io_context context_{1};
  std::atomic<bool> was_hung_up_{false};
};

TEST_F(PosterTest, WhatHasWaitedForAConnectionTooLongIsNotSent) {
  HeldAnswers held;
  PushReceiver receiver([&](const PushedRequest&, const PushPeer& peer) {
    held.wait();
    peer.answer(200);
  });
  Poster poster(context_, {.connections_max = 1}, clock_);
  std::optional<PostOutcome> first;
  std::optional<PostOutcome> second;
  std::optional<PostOutcome> third;
  poster.post(request(receiver, "first", first));
  Post late = request(receiver, "second", second);
  late.until = clock_.now() + 1s;
  poster.post(std::move(late));
  poster.post(request(receiver, "third", third));
  EXPECT_EQ(poster.waiting_count(), 2u);
  clock_.advance(1s);
  held.release();
  ASSERT_TRUE(await(third));
  EXPECT_EQ(first, PostOutcome::accepted);
  EXPECT_EQ(second, PostOutcome::aborted);
  EXPECT_EQ(third, PostOutcome::accepted);
  EXPECT_THAT(bodies(receiver), ElementsAre("first", "third"));
}

TEST_F(PosterTest, WhatMeetsAClosedConnectionIsSentAgainUnlessItIsTooLateForThat) {
  for (const bool is_late : {false, true}) {
    PushReceiver receiver([&](const PushedRequest& request, PushPeer& peer) {
      if (request.body != "first" && !was_hung_up_.exchange(true)) {
        if (is_late) clock_.advance(600s);
        return peer.close();
      }
      peer.answer(200);
    });
    was_hung_up_ = false;
    Poster poster(context_, {}, clock_);
    std::optional<PostOutcome> first;
    std::optional<PostOutcome> second;
    poster.post(request(receiver, "first", first));
    ASSERT_TRUE(await(first));
    Post post = request(receiver, "second", second);
    post.until = clock_.now() + 600s;
    poster.post(std::move(post));
    ASSERT_TRUE(await(second));
    if (is_late) {
      EXPECT_EQ(second, PostOutcome::aborted);
      EXPECT_THAT(bodies(receiver), ElementsAre("first", "second"));
    } else {
      EXPECT_EQ(second, PostOutcome::accepted);
      EXPECT_THAT(bodies(receiver), ElementsAre("first", "second", "second"));
    }
  }
}

}  // namespace
}  // namespace ordo::push_http

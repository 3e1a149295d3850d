// Endpoints that are down, slow or hostile, and the bounds that hold all the same.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/adapters/push_http/courier.h"
#include "tests/support/push_receiver.h"
#include "tests/support/push_rig.h"
#include "tests/support/waiting.h"

namespace ordo::push_http {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing_support::eventually;
using testing_support::HeldAnswers;
using testing_support::kIsSanitized;
using testing_support::let_others_fall_asleep;
using testing_support::PushedRequest;
using testing_support::PushPeer;
using testing_support::PushReceiver;
using testing_support::PushRig;
using testing_support::Watchdog;

std::vector<std::string> numbered(const std::string& text, int count) {
  std::vector<std::string> all;
  for (int i = 1; i <= count; ++i)
    all.push_back(text + std::to_string(i));
  return all;
}

class CourierTroubleTest : public testing::Test {
 protected:
  // The first request meets `trouble`, all others are accepted.
  static PushReceiver::Script first(PushReceiver::Script trouble) {
    auto count = std::make_shared<std::atomic<int>>(0);
    return [count, trouble = std::move(trouble)](const PushedRequest& request, PushPeer& peer) {
      if (count->fetch_add(1) == 0) {
        trouble(request, peer);
      } else {
        peer.answer(200);
      }
    };
  }

  Watchdog watchdog_{"CourierTroubleTest"};
};

TEST_F(CourierTroubleTest, AnEndpointThatComesUpLaterGetsEverythingInOrder) {
  PushReceiver receiver([](const PushedRequest&, const PushPeer& peer) { peer.answer(200); },
                        PushReceiver::Listens::later);
  PushRig rig;
  rig.create(receiver.url());
  rig.publish("k", numbered("m", 5));
  ASSERT_TRUE(eventually([&] { return rig.courier().stats().unreachable >= 3; }));
  receiver.listen();
  ASSERT_TRUE(rig.await_acked(5));
  EXPECT_EQ(receiver.data_of("k"), numbered("m", 5));
}

TEST_F(CourierTroubleTest, ASlowEndpointHasAFirstWindowOfRequestsAndNoMore) {
  HeldAnswers held;
  PushReceiver receiver([&](const PushedRequest&, const PushPeer& peer) {
    held.wait();
    peer.answer(200);
  });
  PushRig rig({.window = {.size_first = 3}});
  rig.create(receiver.url());
  rig.publish("", numbered("m", 40));
  ASSERT_TRUE(eventually([&] { return receiver.busy_now() == 3; }));
  let_others_fall_asleep();
  EXPECT_EQ(receiver.busy_max(), 3);
  held.release();
  ASSERT_TRUE(rig.await_acked(40));
  EXPECT_EQ(receiver.count(), 40u);
}

TEST_F(CourierTroubleTest, MoreRequestsThanConnectionsWaitTheirTurn) {
  PushReceiver receiver([](const PushedRequest&, const PushPeer& peer) { peer.answer(200); });
  PushRig rig({.window = {.size_first = 50}, .poster = {.connections_max = 2}});
  rig.create(receiver.url());
  rig.publish("", numbered("m", 100));
  ASSERT_TRUE(rig.await_acked(100));
  EXPECT_LE(receiver.busy_max(), 2);
  EXPECT_LE(rig.courier().stats().connections, 2u);
  EXPECT_EQ(receiver.count(), 100u);
}

TEST_F(CourierTroubleTest, WithoutAnAnswerBeforeTheAckDeadlineAMessageComesAgain) {
  HeldAnswers held;
  PushReceiver receiver(first([&](const PushedRequest&, const PushPeer&) { held.wait(); }));
  PushRig rig;
  broker::SubscriptionConfig config;
  config.ack_deadline = 1s;
  rig.create(receiver.url(), config);
  rig.publish("k", numbered("m", 2));
  ASSERT_TRUE(rig.await_acked(2));
  held.release();
  EXPECT_GE(rig.courier().stats().timed_out, 1u);
  std::vector<std::string> seen = receiver.data_of("k");
  EXPECT_EQ(seen[1], "m1");
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());  // A second is not long.
  EXPECT_EQ(seen, numbered("m", 2));
}

TEST_F(CourierTroubleTest, AnEndlessHeadOfAResponseIsCutOffAndIsNoAnswer) {
  PushReceiver receiver(first([](const PushedRequest&, const PushPeer& peer) {
    peer.send("HTTP/1.1 200 OK\r\n");
    while (peer.send("x-more: of the same\r\n")) {
    }
  }));
  PushRig rig;
  rig.create(receiver.url());
  rig.publish("k", {"m"});
  ASSERT_TRUE(rig.await_acked(1));
  EXPECT_EQ(rig.courier().stats().broken, 1u);
  EXPECT_THAT(receiver.data_of("k"), ElementsAre("m", "m"));
}

TEST_F(CourierTroubleTest, TheBodyOfAResponseIsNotReadToItsEndlessEnd) {
  std::atomic<bool> was_cut_off{false};
  PushReceiver receiver(first([&](const PushedRequest&, const PushPeer& peer) {
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n");
    const std::string much(65'536, 'x');
    while (peer.send(much)) {
    }
    was_cut_off = true;
  }));
  PushRig rig;
  rig.create(receiver.url());
  rig.publish("k", numbered("m", 2));
  ASSERT_TRUE(rig.await_acked(2)) << "its status has accepted";
  ASSERT_TRUE(eventually([&] { return was_cut_off.load(); }));
  EXPECT_EQ(rig.courier().stats().accepted, 2u);
  EXPECT_THAT(receiver.data_of("k"), ElementsAre("m1", "m2"));
}

TEST_F(CourierTroubleTest, WhatIsNoHttpOrEndsAtOnceIsNoAnswer) {
  for (const std::string words : {"", "220 mail.example.com ESMTP\r\n", "HTTP/1.1 20"}) {
    PushReceiver receiver(first([&](const PushedRequest&, PushPeer& peer) {
      peer.send(words);
      peer.close();
    }));
    PushRig rig;
    rig.create(receiver.url());
    rig.publish("k", {"m"});
    ASSERT_TRUE(rig.await_acked(1)) << words;
    EXPECT_EQ(rig.courier().stats().broken, 1u) << words;
    EXPECT_THAT(receiver.data_of("k"), ElementsAre("m", "m")) << words;
  }
}

TEST_F(CourierTroubleTest, InterimResponsesArePassedOverButNotForEver) {
  PushReceiver patient([](const PushedRequest&, const PushPeer& peer) {
    peer.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n");
    peer.answer(200);
  });
  PushRig rig;
  rig.create(patient.url());
  rig.publish("k", numbered("m", 2));
  ASSERT_TRUE(rig.await_acked(2));
  EXPECT_EQ(patient.count(), 2u);

  PushReceiver endless(first([](const PushedRequest&, const PushPeer& peer) {
    while (peer.send("HTTP/1.1 100 Continue\r\n\r\n")) {
    }
  }));
  rig.aim_at(endless.url());
  rig.publish("k", {"m3"});
  ASSERT_TRUE(rig.await_acked(3));
  EXPECT_EQ(rig.courier().stats().broken, 1u);
}

TEST_F(CourierTroubleTest, AStatusOfProcessingAccepts) {
  PushReceiver receiver([](const PushedRequest&, const PushPeer& peer) {
    peer.send("HTTP/1.1 102 Processing\r\n\r\n");
  });
  PushRig rig;
  rig.create(receiver.url());
  rig.publish("k", numbered("m", 2));
  ASSERT_TRUE(rig.await_acked(2));
  EXPECT_EQ(receiver.data_of("k"), numbered("m", 2));
}

TEST_F(CourierTroubleTest, AConnectionThatIsClosedWhileItRestsCostsNoAttempt) {
  PushReceiver receiver([](const PushedRequest&, PushPeer& peer) {
    peer.answer(200);  // Says that it stays, and goes.
    peer.close();
  });
  PushRig rig;
  rig.create(receiver.url());
  for (int i = 1; i <= 20; ++i)
    rig.publish("k", {"m" + std::to_string(i)});
  ASSERT_TRUE(rig.await_acked(20));
  EXPECT_EQ(receiver.data_of("k"), numbered("m", 20));
  EXPECT_EQ(rig.courier().stats().broken, 0u);
  EXPECT_EQ(rig.courier().stats().accepted, 20u);
}

TEST_F(CourierTroubleTest, ANameThatNobodyKnowsIsTriedAgainUntilTheEndpointChanges) {
  PushReceiver receiver([](const PushedRequest&, const PushPeer& peer) { peer.answer(200); });
  PushRig rig;
  broker::SubscriptionConfig config;
  config.ack_deadline = 1s;
  rig.create("http://nobody.invalid/", config);
  rig.publish("k", {"m"});
  ASSERT_TRUE(eventually([&] {
    const CourierStats stats = rig.courier().stats();
    return stats.unreachable + stats.timed_out >= 1;  // Where no server of names answers.
  }));
  rig.aim_at(receiver.url());
  ASSERT_TRUE(rig.await_acked(1));
}

TEST_F(CourierTroubleTest, ALargeMessageArrivesWhole) {
  PushReceiver receiver([](const PushedRequest&, const PushPeer& peer) { peer.answer(200); });
  PushRig rig;
  rig.create(receiver.url());
  std::string large(kIsSanitized ? 1'000'000 : 9'000'000, '\0');
  for (std::size_t i = 0; i < large.size(); ++i)
    large[i] = static_cast<char>(i * 7);
  rig.publish("k", {large});
  ASSERT_TRUE(rig.await_acked(1));
  EXPECT_TRUE(receiver.requests()[0].data == large);
}

}  // namespace
}  // namespace ordo::push_http

#include "ordo/broker/credit_desk.h"

#include <cstdint>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ordo::broker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Grant = CreditDesk::Grant;
using Grants = CreditDesk::Grants;
constexpr std::uint64_t kAll = CreditDesk::kUnlimited;

Grants after(const std::function<void(Grants&)>& call) {
  Grants grants;
  call(grants);
  return grants;
}

TEST(CreditDeskTest, AnUnlimitedConsumerGetsEverythingEverywhere) {
  CreditDesk desk({}, 2);
  EXPECT_THAT(after([&](Grants& g) { desk.want(0, g); }), ElementsAre(Grant{0, kAll, kAll}));
  EXPECT_THAT(after([&](Grants& g) { desk.want(1, g); }), ElementsAre(Grant{1, kAll, kAll}));
}

TEST(CreditDeskTest, ALimitedConsumerMayHaveAllItsCreditInOnePartition) {
  CreditDesk desk({.messages = 10}, 2);
  EXPECT_THAT(after([&](Grants& g) { desk.want(1, g); }), ElementsAre(Grant{1, 10, kAll}));
}

TEST(CreditDeskTest, NoMoreMessagesAreOutstandingThanTheLimit) {
  CreditDesk desk({.messages = 2}, 2);
  EXPECT_THAT(after([&](Grants& g) { desk.want(0, g); }), ElementsAre(Grant{0, 2, kAll}));
  EXPECT_THAT(after([&](Grants& g) { desk.want(1, g); }), IsEmpty());
  EXPECT_THAT(after([&](Grants& g) { desk.deliver(0, 2, 100, g); }), IsEmpty());
  EXPECT_THAT(after([&](Grants& g) { desk.release(0, 1, 50, g); }), ElementsAre(Grant{1, 1, kAll}));
  EXPECT_EQ(desk.leased_messages(), 1);
}

TEST(CreditDeskTest, BytesStopAtTheLimitAndOneMessageMayOvershoot) {
  CreditDesk desk({.bytes = 100}, 2);
  EXPECT_THAT(after([&](Grants& g) { desk.want(0, g); }), ElementsAre(Grant{0, kAll, 100}));
  EXPECT_THAT(after([&](Grants& g) { desk.want(1, g); }), IsEmpty());
  EXPECT_THAT(after([&](Grants& g) { desk.deliver(0, 1, 150, g); }), IsEmpty());
  EXPECT_THAT(after([&](Grants& g) { desk.release(0, 1, 50, g); }), IsEmpty());  // 100: stop.
  EXPECT_THAT(after([&](Grants& g) { desk.release(0, 0, 1, g); }), ElementsAre(Grant{1, kAll, 1}));
}

TEST(CreditDeskTest, WhatOneGivesBackGoesToAnother) {
  CreditDesk desk({.messages = 5}, 3);
  Grants grants;
  desk.want(0, grants);
  desk.want(2, grants);
  EXPECT_THAT(grants, ElementsAre(Grant{0, 5, kAll}));
  EXPECT_THAT(after([&](Grants& g) { desk.give_back(0, g); }), ElementsAre(Grant{2, 5, kAll}));
}

TEST(CreditDeskTest, WhatIsLeftOfTheOtherLimitGoesToAnother) {
  CreditDesk desk({.messages = 10, .bytes = 100}, 2);
  Grants grants;
  desk.want(0, grants);
  desk.want(1, grants);
  EXPECT_THAT(grants, ElementsAre(Grant{0, 10, 100}));
  // One message of 99 bytes, then one of 1: nine messages and no bytes left.
  EXPECT_THAT(after([&](Grants& g) { desk.deliver(0, 1, 99, g); }), IsEmpty());
  EXPECT_THAT(after([&](Grants& g) { desk.deliver(0, 1, 1, g); }), IsEmpty());
  EXPECT_THAT(after([&](Grants& g) { desk.release(0, 1, 99, g); }), ElementsAre(Grant{1, 9, 99}));
}

TEST(CreditDeskTest, PartitionsTakeTurnsInEvenShares) {
  CreditDesk desk({.messages = 8}, 4);
  Grants grants;
  desk.want(0, grants);
  desk.deliver(0, 8, 8, grants);
  for (const std::uint32_t partition : {0u, 1u, 2u, 3u})
    desk.want(partition, grants);
  EXPECT_THAT(
      after([&](Grants& g) { desk.release(0, 8, 8, g); }),
      ElementsAre(Grant{1, 2, kAll}, Grant{2, 2, kAll}, Grant{3, 2, kAll}, Grant{0, 2, kAll}));
}

TEST(CreditDeskTest, OneThatAlwaysWantsDoesNotStarveAnother) {
  CreditDesk desk({.messages = 1}, 2);
  Grants grants;
  desk.want(0, grants);
  desk.deliver(0, 1, 10, grants);
  desk.want(1, grants);
  desk.want(0, grants);
  grants.clear();
  for (int round = 0; round < 6; ++round) {
    const auto whose = static_cast<std::uint32_t>((round + 1) % 2);
    desk.release(1 - whose, 1, 10, grants);
    ASSERT_THAT(grants, ElementsAre(Grant{whose, 1, kAll}));
    grants.clear();
    desk.deliver(whose, 1, 10, grants);
    desk.want(whose, grants);
  }
}

TEST(CreditDeskTest, LargeByteLimitsServeSeveralPartitionsAtOnce) {
  CreditDesk desk({.bytes = 100'000'000}, 2);
  Grants grants;
  desk.want(0, grants);
  desk.deliver(0, 1, 100'000'000, grants);
  desk.want(0, grants);
  desk.want(1, grants);
  grants.clear();
  desk.release(0, 1, 100'000'000, grants);
  EXPECT_THAT(grants, ElementsAre(Grant{1, kAll, 50'000'000}, Grant{0, kAll, 39'998'000}));
}

TEST(CreditDeskTest, APullGetsItsNumberOfMessagesAndNeverMore) {
  CreditDesk desk({.messages = 3, .is_one_shot = true}, 2);
  Grants grants;
  desk.want(0, grants);
  desk.deliver(0, 1, 10, grants);
  desk.want(1, grants);
  grants.clear();
  desk.give_back(0, grants);
  EXPECT_THAT(grants, ElementsAre(Grant{1, 2, kAll}));
  EXPECT_FALSE(desk.is_spent());
  desk.deliver(1, 2, 20, grants);
  EXPECT_TRUE(desk.is_spent());
  grants.clear();
  desk.release(0, 1, 10, grants);
  desk.want(0, grants);
  EXPECT_THAT(grants, IsEmpty());
}

TEST(CreditDeskTest, TheLargestLimitsDoNotOverflow) {
  CreditDesk desk({.messages = INT64_MAX, .bytes = INT64_MAX}, 64);
  Grants grants;
  for (std::uint32_t partition = 0; partition < 64; ++partition)
    desk.want(partition, grants);
  for (const Grant& grant : grants) {
    EXPECT_GT(grant.messages, 0u);
    EXPECT_LE(grant.messages, kAll);
  }
}

TEST(CreditDeskTest, AWiderLimitIsGrantedAtOnceToWhoWants) {
  CreditDesk desk({.messages = 1}, 2);
  Grants grants;
  desk.want(0, grants);
  desk.deliver(0, 1, 10, grants);
  EXPECT_THAT(after([&](Grants& g) { desk.want(1, g); }), IsEmpty());
  EXPECT_THAT(after([&](Grants& g) { desk.limit_messages(3, g); }), ElementsAre(Grant{1, 2, kAll}));
}

TEST(CreditDeskTest, ANarrowerLimitTakesNothingBackAndGrantsNothingUntilThereIsRoom) {
  CreditDesk desk({.messages = 3}, 2);
  Grants grants;
  desk.want(0, grants);
  desk.deliver(0, 3, 30, grants);
  EXPECT_THAT(after([&](Grants& g) { desk.limit_messages(1, g); }), IsEmpty());
  EXPECT_THAT(after([&](Grants& g) { desk.want(1, g); }), IsEmpty());
  EXPECT_THAT(after([&](Grants& g) { desk.release(0, 2, 20, g); }), IsEmpty());
  EXPECT_THAT(after([&](Grants& g) { desk.release(0, 1, 10, g); }), ElementsAre(Grant{1, 1, kAll}));
}

TEST(CreditDeskTest, ALimitOfNothingIsNotUnlimited) {
  CreditDesk desk({.messages = 3}, 1);
  EXPECT_THAT(after([&](Grants& g) { desk.limit_messages(0, g); }), IsEmpty());
  EXPECT_THAT(after([&](Grants& g) { desk.want(0, g); }), IsEmpty());
  EXPECT_THAT(after([&](Grants& g) { desk.limit_messages(1, g); }), ElementsAre(Grant{0, 1, kAll}));
}

}  // namespace
}  // namespace ordo::broker

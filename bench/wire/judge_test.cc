#include "bench/wire/judge.h"

#include <gtest/gtest.h>

namespace ordo::bench {
namespace {

TEST(WireJudgeTest, WhatCameOnceInAnyOrderIsGoodWithoutKeys) {
  Judge judge(0);
  for (const std::uint64_t number : {2u, 0u, 1u})
    judge.received({.number = number});
  EXPECT_EQ(judge.errors(3).get("errors"), 0);
}

TEST(WireJudgeTest, ALostAndARepeatedMessageDoNotMakeUpForEachOther) {
  Judge judge(0);
  for (const std::uint64_t number : {0u, 0u, 2u})
    judge.received({.number = number});
  const Measures errors = judge.errors(3);
  EXPECT_EQ(errors.get("lost"), 1);
  EXPECT_EQ(errors.get("repeated"), 1);
  EXPECT_GT(errors.get("errors"), 0);
}

TEST(WireJudgeTest, AMissingMessageIsAnError) {
  Judge judge(0);
  judge.received({.number = 0});
  EXPECT_EQ(judge.errors(2).get("lost"), 1);
  EXPECT_GT(judge.errors(2).get("errors"), 0);
}

TEST(WireJudgeTest, AKeyOutOfOrderIsAnErrorAndOthersAreNot) {
  Judge judge(2);
  for (const auto& [key, number] : {std::pair{0u, 0u}, {1u, 0u}, {0u, 2u}, {1u, 1u}}) {
    judge.received({.number = number, .key = key});
    judge.done(key);
  }
  EXPECT_EQ(judge.errors(4).get("disordered"), 1);
}

TEST(WireJudgeTest, TwoOfAKeyInFlightAreAnError) {
  Judge judge(1);
  judge.received({.number = 0});
  judge.received({.number = 1});
  EXPECT_EQ(judge.errors(2).get("overlapping"), 1);
  EXPECT_EQ(judge.errors(2).get("disordered"), 0);
}

TEST(WirePlanTest, AStampComesBackFromTheBodyItWasWrittenTo) {
  std::string body(100, 'x');
  Stamp{.due_ns = 5, .number = 6, .key = 7}.write(body);
  const Stamp stamp = Stamp::read(body);
  EXPECT_EQ(stamp.due_ns, 5u);
  EXPECT_EQ(stamp.number, 6u);
  EXPECT_EQ(stamp.key, 7u);
  EXPECT_EQ(body.substr(Stamp::kBytes), std::string(100 - Stamp::kBytes, 'x'));
}

TEST(WirePlanTest, ArgumentsAreReadByName) {
  const WirePlan plan = WirePlan::parse({"flow", "port=80", "batch=7", "rate=2.5"});
  EXPECT_EQ(plan.mode, "flow");
  EXPECT_EQ(plan.port, 80);
  EXPECT_EQ(plan.batch, 7u);
  EXPECT_EQ(plan.rate, 2.5);
}

TEST(WirePlanDeathTest, AnUnknownArgumentIsRefused) {
  EXPECT_EXIT(WirePlan::parse({"flow", "prot=80"}), testing::ExitedWithCode(1), "prot");
}

}  // namespace
}  // namespace ordo::bench

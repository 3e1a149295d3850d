// Tasks that end when their token is used: when, by whom, and what a token can and cannot do.
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/engine.h"
#include "tests/support/engine_probe.h"
#include "tests/support/gates.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using engine_probe::Book;
using engine_probe::Item;
using engine_probe::kLong;
using engine_probe::TokenBoard;
using engine_probe::TokenHandler;
using testing_support::eventually;
using Engine = PartitionEngine<Item, TokenHandler>;

class EngineTokenTest : public testing::TestWithParam<bool> {
 protected:
  EngineOptions options() const { return {.partitions = 2, .callers_run = GetParam()}; }
  auto making() {
    return [this](std::size_t) { return TokenHandler(book_, board_); };
  }
  bool ended(std::size_t count) {
    return eventually([&] { return book_.count() == count; });
  }

  Book book_;
  TokenBoard board_;
};

TEST_P(EngineTokenTest, TheNextTaskOfAnIdWaitsForTheTokenOthersDoNot) {
  Engine engine(options(), making());
  ASSERT_EQ(engine.post(7, Item{1}).entry, Entry::admitted);
  ASSERT_EQ(engine.post(7, Item{2}).entry, Entry::admitted);
  ASSERT_EQ(engine.post(8, Item{3}).entry, Entry::admitted);
  ASSERT_EQ(engine.post(0, Item{4}).entry, Entry::admitted);
  TaskToken first = board_.await(1);
  EXPECT_TRUE(board_.await(3).done());
  EXPECT_TRUE(board_.await(4).done());
  EXPECT_TRUE(ended(2));
  EXPECT_FALSE(board_.has(2));
  // A task is answered just before its lane is free.
  EXPECT_TRUE(eventually([&] { return engine.stats().total().in_flight == 1; }));

  EXPECT_TRUE(first.done());
  EXPECT_TRUE(board_.await(2).done());
  EXPECT_TRUE(engine.drain(kLong).complete());
  EXPECT_EQ(book_.values_of(7), (std::vector<int>{1, 2}));
}

TEST_P(EngineTokenTest, ManyTasksAreInFlightAtOnceWithoutHoldingTheThread) {
  Engine engine(options(), making());
  for (int n = 0; n < 500; ++n)
    ASSERT_EQ(engine.submit(n % 2 == 0 ? n + 1 : 0, Item{n}).entry, Entry::admitted);
  engine.flush();
  EXPECT_TRUE(eventually([&] { return engine.stats().total().in_flight == 500; }));
  for (int n = 0; n < 500; ++n)
    EXPECT_TRUE(board_.await(n).done());
  EXPECT_TRUE(engine.drain(kLong).complete());
  EXPECT_EQ(engine.stats().total().processed, 500u);
}

TEST_P(EngineTokenTest, ATokenMayBeUsedInsideTheHandler) {
  Engine engine(options(), making());
  for (int n = 1; n <= 3; ++n) {
    Item item{n};
    item.with_token = [](const TaskToken& token) { EXPECT_TRUE(token.done()); };
    ASSERT_EQ(engine.submit(7, std::move(item)).entry, Entry::admitted);
  }
  engine.flush();
  EXPECT_TRUE(ended(3));
  EXPECT_EQ(book_.values_of(7), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(engine.stats().total().processed, 3u);
}

TEST_P(EngineTokenTest, AFailedTokenFailsTheTaskWithItsError) {
  Engine engine(options(), making());
  ASSERT_EQ(engine.post(7, Item{1}).entry, Entry::admitted);
  EXPECT_TRUE(board_.await(1).fail("venue is closed"));
  ASSERT_EQ(engine.post(7, Item{2}).entry, Entry::admitted);
  EXPECT_TRUE(board_.await(2).fail(std::exception_ptr()));
  EXPECT_TRUE(ended(2));
  EXPECT_EQ(book_.errors_of(7), (std::vector<std::string>{"venue is closed", "failed"}));
}

TEST_P(EngineTokenTest, ASecondUseIsNothingAndIsCounted) {
  Engine engine(options(), making());
  ASSERT_EQ(engine.post(7, Item{1}).entry, Entry::admitted);
  const TaskToken token = board_.await(1);
  const TaskToken copy = token;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_TRUE(token.done());
  EXPECT_FALSE(token.done());
  EXPECT_FALSE(copy.fail("too late"));
  EXPECT_TRUE(ended(1));
  ASSERT_EQ(engine.post(7, Item{2}).entry, Entry::admitted);  // Gets the same cell again.
  const TaskToken next = board_.await(2);
  EXPECT_FALSE(token.done());
  EXPECT_EQ(engine.stats().total().tokens_late, 3u);
  EXPECT_EQ(book_.count(), 1u);
  EXPECT_TRUE(next.done());
  EXPECT_TRUE(engine.drain(kLong).complete());
  EXPECT_EQ(book_.errors_of(7), (std::vector<std::string>{"", ""}));
}

TEST_P(EngineTokenTest, DroppingTheLastCopyFailsTheTask) {
  Engine engine(options(), making());
  ASSERT_EQ(engine.post(7, Item{1}).entry, Entry::admitted);
  {
    std::optional<TaskToken> token = board_.await(1);
    const TaskToken copy = *token;
    token.reset();
    EXPECT_EQ(book_.count(), 0u);
  }
  EXPECT_TRUE(ended(1));
  EXPECT_EQ(book_.errors_of(7),
            (std::vector<std::string>{"the token of the task was dropped without use"}));
  EXPECT_EQ(engine.stats().total().failed, 1u);
}

TEST_P(EngineTokenTest, AHandlerThatThrowsUsesItsTokenUp) {
  Engine engine(options(), making());
  std::optional<TaskToken> kept;
  Item item{1};
  item.with_token = [&](const TaskToken& token) {
    kept = token;
    throw std::runtime_error("after all");
  };
  ASSERT_EQ(engine.post(7, std::move(item)).entry, Entry::admitted);
  EXPECT_TRUE(ended(1));
  EXPECT_FALSE(kept->done());
  EXPECT_EQ(book_.errors_of(7), (std::vector<std::string>{"after all"}));
  ASSERT_EQ(engine.post(7, Item{2}).entry, Entry::admitted);
  EXPECT_TRUE(board_.await(2).done());
  EXPECT_TRUE(engine.drain(kLong).complete());
}

TEST_P(EngineTokenTest, WhatAHandlerThrowsIsHeardAndNotThatItLetItsTokenGo) {
  Engine engine(options(), making());
  Item item{1};
  item.with_token = [](const TaskToken&) { throw std::runtime_error("thrown"); };
  ASSERT_EQ(engine.post(7, std::move(item)).entry, Entry::admitted);
  Item silent{2};
  silent.with_token = [](const TaskToken&) {};
  ASSERT_EQ(engine.post(7, std::move(silent)).entry, Entry::admitted);
  EXPECT_TRUE(engine.drain(kLong).complete());
  EXPECT_EQ(book_.errors_of(7),
            (std::vector<std::string>{"thrown", "the token of the task was dropped without use"}));
}

TEST_P(EngineTokenTest, AUseBeforeTheHandlerThrowsCounts) {
  Engine engine(options(), making());
  Item item{1};
  item.with_token = [](const TaskToken& token) {
    EXPECT_TRUE(token.done());
    throw std::runtime_error("after it was done");
  };
  ASSERT_EQ(engine.post(7, std::move(item)).entry, Entry::admitted);
  EXPECT_TRUE(engine.drain(kLong).complete());
  EXPECT_EQ(book_.errors_of(7), (std::vector<std::string>{""}));
}

TEST_P(EngineTokenTest, DrainListsWhatIsInFlightAndItsTokenIsOver) {
  Engine engine(options(), making());
  ASSERT_EQ(engine.submit(7, Item{1}).entry, Entry::admitted);
  ASSERT_EQ(engine.submit(7, Item{2}).entry, Entry::admitted);
  ASSERT_EQ(engine.submit(0, Item{3}).entry, Entry::admitted);
  engine.flush();
  const TaskToken first = board_.await(1);
  const TaskToken third = board_.await(3);
  const EngineDrain<Item> drained = engine.drain(1ms);
  ASSERT_EQ(drained.undone.size(), 3u);
  int in_flight = 0;
  for (const auto& undone : drained.undone) {
    in_flight += undone.in_flight ? 1 : 0;
    // Whoever has the token may have the task too, and change it.
    EXPECT_EQ(undone.task.has_value(), !undone.in_flight);
    EXPECT_EQ(undone.task ? undone.task->value : 2, 2);
  }
  EXPECT_EQ(in_flight, 2);
  EXPECT_FALSE(first.done());
  EXPECT_FALSE(third.fail("too late"));
  EXPECT_EQ(book_.count(), 0u);
  EXPECT_EQ(engine.stats().total().tokens_late, 2u);
  EXPECT_EQ(engine.stats().total().undone, 3u);
  EXPECT_EQ(engine.stats().total().depth, 0u);
  EXPECT_TRUE(engine.drain(1s).complete());
}

TEST_P(EngineTokenTest, TokensMayOutliveTheEngine) {
  std::vector<TaskToken> tokens;
  {
    Engine engine(options(), making());
    for (int n = 0; n < 3; ++n) {
      ASSERT_EQ(engine.post(n + 1, Item{n}).entry, Entry::admitted);
      tokens.push_back(board_.await(n));
    }
  }
  const TaskToken copy = tokens[0];
  EXPECT_FALSE(tokens[0].done());
  EXPECT_FALSE(tokens[1].fail("gone"));
  tokens.clear();
  EXPECT_FALSE(copy.done());
  EXPECT_EQ(book_.count(), 0u);
}

TEST_P(EngineTokenTest, TokensUsedByManyThreadsLoseNothing) {
  constexpr int kTasks = 4'000;
  Engine engine(options(), making());
  std::vector<std::thread> users;
  for (int user = 0; user < 3; ++user) {
    users.emplace_back([&, user] {
      for (int n = user; n < kTasks; n += 3) {
        const TaskToken token = board_.await(n);
        n % 7 == 0 ? token.fail("seventh") : token.done();
      }
    });
  }
  for (int n = 0; n < kTasks;) {
    const Submitted submitted = engine.post(n % 5 == 0 ? 0 : n % 50, Item{n});
    if (submitted.entry == Entry::admitted) {
      ++n;
    } else {
      std::this_thread::yield();
    }
  }
  for (std::thread& user : users)
    user.join();
  EXPECT_TRUE(engine.drain(kLong).complete());
  const PartitionStats stats = engine.stats().total();
  EXPECT_EQ(stats.failed, (kTasks + 6) / 7);
  EXPECT_EQ(stats.processed + stats.failed, kTasks);
  EXPECT_EQ(book_.overlaps(), 0u);
}

TEST(EngineTokenDefaultTest, ATokenOfNoTaskDoesNothing) {
  const TaskToken token;
  EXPECT_FALSE(token.done());
  EXPECT_FALSE(token.fail("nothing"));
}

INSTANTIATE_TEST_SUITE_P(Modes, EngineTokenTest, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "CallersRun" : "OwnThreads"; });

}  // namespace
}  // namespace ordo

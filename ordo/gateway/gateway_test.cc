#include "ordo/gateway/gateway.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/gates.h"
#include "tests/support/recorded_replies.h"
#include "tests/support/waiting.h"

namespace ordo::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::Background;
using testing_support::eventually;
using testing_support::Gates;
using testing_support::RecordedReplies;
using testing_support::Watchdog;

OmsSettings venue(const std::string& name) {
  OmsSettings settings;
  settings.default_venue = name;
  return settings;
}

Request request(std::string_view id, std::int64_t correlation_id, std::string_view payload) {
  return {ReplyAddress{.front = 1, .connection = 7}, id, correlation_id, payload};
}

// The number in a request id of the tests: "r12" is 12.
std::uint64_t number_of(const RequestId& id) {
  return std::stoull(std::string(id.view().substr(1)));
}

std::string name_of_number(std::uint64_t number) {
  return std::string("r").append(std::to_string(number));
}

// Whether callers of flush() may run partitions.
class GatewayTest : public testing::TestWithParam<bool> {
 protected:
  GatewayOptions options(std::size_t budget = 1'024, std::size_t per_id = 64) const {
    GatewayOptions options;
    options.engine.budget = budget;
    options.engine.per_id = per_id;
    options.engine.callers_run = GetParam();
    options.oms = venue("XNYS");
    return options;
  }
  // Submits until there is room.
  static void insist(Gateway& gateway, std::string_view id, std::int64_t correlation_id,
                     std::string_view payload) {
    ASSERT_TRUE(eventually([&] {
      const Admitted admitted = gateway.submit(request(id, correlation_id, payload));
      gateway.flush();
      return admitted.refusal == Refusal::none;
    }));
  }

  Watchdog watchdog_{"GatewayTest"};
  RecordedReplies replies_;
};
INSTANTIATE_TEST_SUITE_P(CallersRun, GatewayTest, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "On" : "Off"; });

TEST_P(GatewayTest, AnOrderLivesThroughItsInstructions) {
  Gateway gateway(options(), replies_);
  const std::vector<std::pair<std::string, std::string>> life = {
      {"NEW ACME BUY 10 99.5", "route:XNYS"},
      {"FILL 4", "filled:6"},
      {"STATUS", "status:partially-filled:6"},
      {"REPLACE 8 99", "replaced"},
      {"CANCEL", "cancelled"},
      {"FILL 1", "reject:closed"}};
  for (std::size_t i = 0; i < life.size(); ++i) {
    EXPECT_EQ(gateway.submit(request(name_of_number(i), 42, life[i].first)).refusal, Refusal::none);
  }
  gateway.flush();
  ASSERT_TRUE(replies_.await(life.size()));
  const std::vector<Reply> replies = replies_.all();
  for (std::size_t i = 0; i < life.size(); ++i) {
    EXPECT_EQ(replies[i].id.view(), name_of_number(i));
    EXPECT_EQ(replies[i].words.view(), life[i].second);
    EXPECT_EQ(replies[i].to, (ReplyAddress{.front = 1, .connection = 7}));
    EXPECT_EQ(replies[i].correlation_id, 42);
    EXPECT_EQ(replies[i].partition, replies[0].partition);
    EXPECT_GT(replies[i].began_ns, 0);
    EXPECT_GE(replies[i].ended_ns, replies[i].began_ns);
  }
}

TEST_P(GatewayTest, TenThousandTasksOfAHundredIdsAreAnsweredOnceAndInOrder) {
  constexpr std::uint64_t kTasks = 10'000;
  constexpr std::uint64_t kIds = 100;
  Gateway gateway(options(), replies_);
  for (std::uint64_t n = 0; n < kTasks; ++n) {
    const auto id = static_cast<std::int64_t>(1 + n % kIds);
    insist(gateway, name_of_number(n), id, n < kIds ? "NEW ACME BUY 1000000 1" : "FILL 1");
  }
  EXPECT_TRUE(gateway.drain(60s).empty());

  std::map<std::int64_t, std::uint64_t> next;
  std::map<std::int64_t, std::int32_t> partitions;
  std::map<std::int64_t, std::int64_t> ended;
  for (const Reply& reply : replies_.all()) {
    const std::int64_t id = reply.correlation_id;
    const std::uint64_t turn = next[id]++;
    ASSERT_EQ(reply.id.view(), name_of_number(static_cast<std::uint64_t>(id) - 1 + turn * kIds));
    ASSERT_EQ(reply.words.view(),
              turn == 0 ? "route:XNYS" : "filled:" + std::to_string(1'000'000 - turn));
    ASSERT_EQ(partitions.try_emplace(id, reply.partition).first->second, reply.partition);
    ASSERT_LE(ended[id], reply.began_ns);  // Never two of an id at once.
    ended[id] = reply.ended_ns;
  }
  EXPECT_EQ(replies_.flushed_count(), kTasks);
  EXPECT_EQ(next.size(), kIds);
  for (const auto& [id, count] : next)
    EXPECT_EQ(count, kTasks / kIds) << id;
}

TEST_P(GatewayTest, ATaskThatThrowsIsAnsweredWithAnErrorAndTheNextOnesGoOn) {
  GatewayOptions with_hook = options();
  with_hook.before_task = [](const Request& given) {
    if (given.id.view() == "r2") throw std::runtime_error("disk\non fire");
  };
  Gateway gateway(std::move(with_hook), replies_);
  const std::vector<std::string> payloads = {"NEW ACME BUY 10 1", "FILL 1", "FILL 2", "STATUS"};
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    gateway.submit(request(name_of_number(i + 1), 5, payloads[i]));
    gateway.submit(request(name_of_number(i + 101), 6, payloads[i]));
  }
  gateway.flush();
  ASSERT_TRUE(replies_.await(8));
  const auto ids = replies_.ids_by_correlation();
  EXPECT_EQ(ids.at(5), (std::vector<std::string>{"r1", "r2", "r3", "r4"}));
  EXPECT_EQ(replies_.words_of("r1"), "route:XNYS");
  EXPECT_EQ(replies_.words_of("r2"), "error disk?on fire");
  EXPECT_EQ(replies_.words_of("r3"), "filled:8");
  EXPECT_EQ(replies_.words_of("r4"), "status:partially-filled:8");
  EXPECT_EQ(replies_.words_of("r104"), "status:partially-filled:7");
  EXPECT_TRUE(gateway.drain(60s).empty());
  EXPECT_EQ(gateway.stats().engine.total().failed, 1U);
  EXPECT_EQ(gateway.stats().engine.total().processed, 7U);
}

TEST_P(GatewayTest, QuotesHaveNoIdAndGoRoundThePartitions) {
  Gateway gateway(options(), replies_);
  for (std::uint64_t n = 0; n < 100; ++n) {
    const std::int64_t id = n % 3 == 0 ? 0 : n % 3 == 1 ? -1 : INT64_MIN;
    insist(gateway, name_of_number(n), id, "QUOTE ACME 10");
  }
  EXPECT_TRUE(gateway.drain(60s).empty());
  std::map<std::int32_t, int> partitions;
  std::set<std::string> ids;
  for (const Reply& reply : replies_.all()) {
    EXPECT_EQ(reply.words.view(), "target:XNYS");
    ++partitions[reply.partition];
    ids.emplace(reply.id.view());
  }
  EXPECT_EQ(ids.size(), 100U);
  ASSERT_EQ(partitions.size(), 4U);
  EXPECT_EQ(partitions.begin()->first, 0);
  EXPECT_EQ(partitions.rbegin()->first, 3);
}

// Goal: settings change between two tasks, never within one, and no answer is lost meanwhile.
// Method: quotes without end while settings alternate; each answer is of the one or the other, and
// after the last reload of the last.
TEST_P(GatewayTest, SettingsAreReloadedUnderLoad) {
  Gateway gateway(options(), replies_);
  std::atomic<bool> is_reloading = true;
  std::atomic<std::uint64_t> admitted = 0;
  Background load([&] {
    for (std::uint64_t n = 0; is_reloading || n < 2'000; ++n) {
      const bool is_quote = n % 2 == 0;
      const Request given = request(name_of_number(n), is_quote ? 0 : static_cast<std::int64_t>(n),
                                    is_quote ? "QUOTE ACME 1" : "NEW ACME BUY 1 1");
      if (gateway.submit(Request(given)).refusal == Refusal::none) ++admitted;
      gateway.flush();
    }
  });
  for (int round = 0; round < 200; ++round) {
    gateway.apply(std::make_shared<OmsSettings>(venue(round % 2 == 0 ? "XNAS" : "XNYS")));
    std::this_thread::yield();
  }
  is_reloading = false;
  ASSERT_TRUE(load.finished());
  ASSERT_TRUE(replies_.await(admitted))
      << admitted << " " << replies_.all().size() << " " << gateway.stats_line();
  gateway.apply(std::make_shared<OmsSettings>(venue("XLON")));
  for (std::uint64_t n = 0; n < 4; ++n)
    insist(gateway, "last" + std::to_string(n), 0, "QUOTE ACME 1");
  EXPECT_TRUE(gateway.drain(60s).empty());

  const std::vector<Reply> replies = replies_.all();
  EXPECT_EQ(replies.size(), admitted + 4);
  for (const Reply& reply : replies) {
    const std::string words(reply.words.view().substr(reply.words.view().find(':') + 1));
    const bool is_last = reply.id.view().starts_with("last");
    EXPECT_TRUE(is_last ? words == "XLON" : words == "XNAS" || words == "XNYS") << words;
  }
}

TEST_P(GatewayTest, DrainUnderLoadAnswersEverythingThatWasAdmitted) {
  Gateway gateway(options(64, 8), replies_);
  std::atomic<std::uint64_t> admitted = 0;
  std::atomic<std::uint64_t> refused_first = 0;
  const auto load = [&](std::int64_t base) {
    for (std::int64_t n = 1;; ++n) {
      const Admitted became = gateway.submit(request("r1", base + n % 50, "STATUS"));
      if (n % 8 == 0) gateway.flush();
      if (became.refusal == Refusal::closing) return;
      became.refusal == Refusal::none ? ++admitted : ++refused_first;
    }
  };
  std::vector<UndoneRequest> undone;
  {
    Background first([&] { load(100); });
    Background second([&] { load(200); });
    ASSERT_TRUE(eventually([&] { return admitted > 1'000; }));
    undone = gateway.drain(60s);
  }
  EXPECT_TRUE(undone.empty());
  EXPECT_EQ(replies_.flushed_count(), admitted);
  const PartitionStats total = gateway.stats().engine.total();
  EXPECT_EQ(total.admitted, admitted);
  EXPECT_EQ(total.processed, admitted);
  EXPECT_EQ(total.depth, 0U);
  EXPECT_EQ(total.rejected_busy + total.rejected_id_busy, refused_first);
  EXPECT_EQ(gateway.submit(request("late", 1, "STATUS")).refusal, Refusal::closing);
}

TEST_P(GatewayTest, StatsSayWhatWasDecidedInOneLineOfJson) {
  Gateway gateway(options(), replies_);
  insist(gateway, "a", 1, "NEW ACME BUY 10 1");
  insist(gateway, "b", 1, "NEW ACME BUY 10 1");
  insist(gateway, "c", 1, "CANCEL");
  insist(gateway, "d", 2, "NEW ACME BUY 10 1");
  insist(gateway, "e", 0, "QUOTE ACME 1");
  EXPECT_TRUE(gateway.drain(60s).empty());
  const GatewayStats stats = gateway.stats();
  EXPECT_EQ(stats.outcomes[static_cast<std::size_t>(Outcome::routed)], 2U);
  EXPECT_EQ(stats.outcomes[static_cast<std::size_t>(Outcome::target)], 1U);
  EXPECT_EQ(stats.rejects[static_cast<std::size_t>(Reject::duplicate)], 1U);
  EXPECT_EQ(stats.open_orders, 1U);
  EXPECT_EQ(stats.remembered_orders, 1U);

  const std::string line = gateway.stats_line();
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_TRUE(line.starts_with("{\"admitted\":5,\"processed\":5,\"failed\":0,\"undone\":0,"))
      << line;
  for (const char* part :
       {"\"rejected\":{\"busy\":0,\"id-busy\":0,\"closing\":0}", "\"routed\":2", "\"duplicate\":1",
        "\"open_orders\":1", "\"wait_ns\":{\"count\":5,", "\"partitions\":[{\"depth\":0,"}) {
    EXPECT_NE(line.find(part), std::string::npos) << part << " in " << line;
  }
}

// What needs a handler that blocks, which callers must not run.
class BlockedGatewayTest : public testing::Test {
 protected:
  GatewayOptions options(std::size_t budget, std::size_t per_id) {
    GatewayOptions options;
    options.engine.partitions = 1;
    options.engine.budget = budget;
    options.engine.per_id = per_id;
    options.oms = venue("XNYS");
    options.before_task = [this](const Request& given) { gates_.enter(number_of(given.id)); };
    return options;
  }

  Watchdog watchdog_{"BlockedGatewayTest"};
  RecordedReplies replies_;
  Gates<bool> gates_;
};

TEST_F(BlockedGatewayTest, RefusalsAreExactAndAtOnceWhileAHandlerIsStuck) {
  Gateway gateway(options(64, 4), replies_);
  std::uint64_t admitted = 0;
  std::uint64_t busy = 0;
  std::uint64_t id_busy = 0;
  for (std::uint64_t n = 0; n < 1'000; ++n) {
    Request given = request(name_of_number(n), 1 + static_cast<std::int64_t>(n % 20), "STATUS");
    const Admitted became = gateway.submit(std::move(given));
    EXPECT_EQ(became.partition, 0);
    admitted += became.refusal == Refusal::none;
    busy += became.refusal == Refusal::busy;
    id_busy += became.refusal == Refusal::id_busy;
    if (became.refusal != Refusal::none) {
      // NOLINTNEXTLINE(bugprone-use-after-move): what is refused is whole.
      EXPECT_EQ(given.id.view(), name_of_number(n));
    }
    gateway.flush();
  }
  EXPECT_EQ(admitted, 64U);
  EXPECT_EQ(busy + id_busy, 1'000U - 64U);
  EXPECT_GT(busy, 0U);
  gates_.open_all();
  EXPECT_TRUE(gateway.drain(60s).empty());
  EXPECT_EQ(replies_.flushed_count(), 64U);
}

TEST_F(BlockedGatewayTest, OneIdMayHaveItsShareAndNoMore) {
  Gateway gateway(options(64, 4), replies_);
  for (std::uint64_t n = 0; n < 4; ++n)
    EXPECT_EQ(gateway.submit(request(name_of_number(n), 9, "STATUS")).refusal, Refusal::none);
  EXPECT_EQ(gateway.submit(request("r4", 9, "STATUS")).refusal, Refusal::id_busy);
  EXPECT_EQ(gateway.submit(request("r5", 8, "STATUS")).refusal, Refusal::none);
  gateway.flush();
  ASSERT_TRUE(gates_.await(0));
  const auto blocked = gateway.longest_blocked(10);
  gates_.open_all();
  const bool is_listed = std::any_of(blocked.begin(), blocked.end(),
                                     [](const BlockedId& head) { return head.id == 9; });
  EXPECT_TRUE(is_listed);
}

TEST_F(BlockedGatewayTest, DrainListsWhatWasNotDoneAndNeverAnswersIt) {
  Gateway gateway(options(64, 64), replies_);
  for (std::uint64_t n = 0; n < 5; ++n)
    gateway.submit(request(name_of_number(n), n < 3 ? 9 : 0, n < 3 ? "STATUS" : "QUOTE A 1"));
  gates_.open(0);
  gateway.flush();
  ASSERT_TRUE(eventually([&] {
    const auto started = gates_.started();
    return !started.empty() && started.back() != 0;  // Somebody is stuck; perhaps 0 is done.
  }));
  const std::vector<UndoneRequest> undone = gateway.drain(0ns);
  gates_.open_all();

  std::set<std::string> seen;
  int in_flight = 0;
  for (const UndoneRequest& left : undone) {
    EXPECT_TRUE(seen.emplace(left.id.view()).second);
    EXPECT_EQ(left.correlation_id, number_of(left.id) < 3 ? 9 : 0);
    EXPECT_EQ(left.partition, 0);
    EXPECT_EQ(left.from.connection, 7U);
    in_flight += left.in_flight;
  }
  EXPECT_EQ(in_flight, 1);
  for (const Reply& reply : replies_.all())
    EXPECT_TRUE(seen.emplace(reply.id.view()).second);
  EXPECT_EQ(seen.size(), 5U);  // Each is answered or listed, none is both.
  EXPECT_EQ(undone.size() + gateway.stats().engine.total().processed, 5U);
}

TEST(GatewayTimeTest, ClosedOrdersAreForgottenWhenTheirTimeComesThoughNothingElseHappens) {
  Watchdog watchdog("GatewayTimeTest");
  ManualClock clock(TimePoint{1h});
  RecordedReplies replies;
  GatewayOptions options;
  options.engine.partitions = 1;
  options.engine.clock = &clock;
  options.oms = venue("XNYS");
  options.oms.forget_after = 60s;
  Gateway gateway(std::move(options), replies);
  for (std::int64_t id = 1; id <= 3'000; ++id) {
    for (const char* payload : {"NEW ACME BUY 1 1", "CANCEL"}) {
      ASSERT_TRUE(eventually([&] {
        const Admitted admitted = gateway.submit(request("r", id, payload));
        gateway.flush();
        return admitted.refusal == Refusal::none;
      }));
    }
  }
  ASSERT_TRUE(replies.await(6'000));
  ASSERT_TRUE(eventually([&] { return gateway.stats().remembered_orders == 3'000; }));
  ASSERT_TRUE(eventually([&] {
    clock.advance(30s);
    return gateway.stats().remembered_orders == 0;
  }));
  EXPECT_EQ(gateway.stats().open_orders, 0U);
  EXPECT_EQ(gateway.stats().forgotten_early, 0U);
}

TEST(GatewayOptionsTest, BadOptionsAreNamed) {
  RecordedReplies replies;
  const auto message_of = [&](GatewayOptions options) -> std::string {
    try {
      const Gateway gateway(std::move(options), replies);
      return "";
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  };
  EXPECT_EQ(message_of({}), "");
  EXPECT_NE(message_of({.engine = {.partitions = 0}}).find("partitions"), std::string::npos);
  EXPECT_NE(message_of({.oms = {.orders_max = 0}}).find("oms.orders_max"), std::string::npos);
}

}  // namespace
}  // namespace ordo::gateway

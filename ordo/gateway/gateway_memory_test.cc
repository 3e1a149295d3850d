// Memory: what an instruction allocates once warm, and what a million orders leave behind. A
// program of its own, because it counts every operator new there is.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <malloc.h>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "bench/support/allocations.h"
#include "ordo/gateway/gateway.h"
#include "tests/support/waiting.h"

namespace ordo::gateway {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing_support::eventually;
using testing_support::Watchdog;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsCounted = false;  // A sanitizer has an allocator of its own.
#else
constexpr bool kMemoryIsCounted = true;
#endif

// Bytes that are allocated now.
std::int64_t bytes_in_use() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

OmsSettings settings(std::chrono::nanoseconds forget_after) {
  OmsSettings settings;
  settings.routes = {{.symbol = "A*", .quantity_max = Quantity{5}, .venue = "XNAS"}};
  settings.default_venue = "XNYS";
  settings.forget_after = forget_after;
  return settings;
}

// Answers nobody, and counts.
class CountedReplies final : public ReplyPort {
 public:
  void reply(Reply&& reply) noexcept override {
    count_.fetch_add(1, std::memory_order_relaxed);
    if (reply.words.view().starts_with("reject")) rejected_.fetch_add(1);
  }
  void flush() noexcept override {}

  std::uint64_t count() const { return count_.load(); }
  std::uint64_t rejected() const { return rejected_.load(); }

 private:
  std::atomic<std::uint64_t> count_ = 0;
  std::atomic<std::uint64_t> rejected_ = 0;
};

TEST(OmsMemoryTest, InstructionsAllocateNothingOnceWarm) {
  SymbolTable symbols;
  Oms oms(std::make_shared<OmsSettings>(settings(0ns)), symbols);
  const TimePoint now{1h};
  const auto run = [&](std::int64_t orders) {
    for (std::int64_t id = 1; id <= orders; ++id) {
      oms.decide(id, "NEW ACME BUY 10 99.5", now);
      oms.decide(id, "FILL 1", now);
      oms.decide(id, "REPLACE 20 99.75", now);
      oms.decide(id, "STATUS", now);
      oms.decide(id, "FILL x", now);
      oms.decide(0, "QUOTE ACME 5", now);
      oms.decide(id, "CANCEL", now);
      oms.forget(now);
    }
  };
  run(1'000);
  const std::uint64_t before = bench::allocation_count();
  run(32'000);
  // The queue of closed orders takes a piece for each 32 of them, and gives one back.
  EXPECT_LE(bench::allocation_count() - before, 1'001U);
}

TEST(OmsMemoryTest, AMillionOrdersOpenAtOnceLeaveMemoryWhereItBegan) {
  if (!kMemoryIsCounted) GTEST_SKIP() << "a sanitizer has an allocator of its own";
  SymbolTable symbols;
  Oms oms(std::make_shared<OmsSettings>(settings(1s)), symbols);
  TimePoint now{1h};
  oms.decide(2'000'000, "NEW LAST BUY 1 1", now);  // Stays all the time.
  const std::int64_t before = bytes_in_use();
  for (std::int64_t id = 1; id < 1'000'000; ++id) {
    const std::string payload = "NEW S" + std::to_string(id) + " BUY 1 1";  // A symbol of its own.
    ASSERT_EQ(oms.decide(id, payload, now).outcome(), Outcome::routed);
  }
  const std::int64_t at_peak = bytes_in_use() - before;
  for (std::int64_t id = 1; id < 1'000'000; ++id)
    ASSERT_EQ(oms.decide(id, "CANCEL", now).outcome(), Outcome::cancelled);
  now += 1s;
  while (oms.next_due())
    oms.forget(now);
  const std::int64_t left = bytes_in_use() - before;
  RecordProperty("peak_bytes_per_order", std::to_string(at_peak / 1'000'000));
  RecordProperty("bytes_left", std::to_string(left));
  EXPECT_LT(at_peak / 1'000'000, 400);
  EXPECT_LT(left, 2 << 20);  // The cache of symbols, which has a bound.
  EXPECT_EQ(oms.open_count(), 1U);
}

TEST(GatewayMemoryTest, AMillionIdsOnceEachLeaveMemoryWhereItBegan) {
  Watchdog watchdog("GatewayMemoryTest");
  CountedReplies replies;
  GatewayOptions options;
  options.engine.partitions = 2;
  options.oms = settings(0ns);
  Gateway gateway(std::move(options), replies);
  std::uint64_t sent = 0;
  const auto send = [&](std::int64_t id, std::string_view payload) {
    while (gateway.submit({{}, "r", id, payload}).refusal != Refusal::none) {
      gateway.flush();
      std::this_thread::yield();
    }
    ++sent;
  };
  const auto run = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t id = first; id <= last; ++id) {
      send(id, "NEW ACME BUY 10 99.5");
      send(id, "CANCEL");
      if (id % 32 == 0) gateway.flush();
    }
    gateway.flush();
    ASSERT_TRUE(eventually([&] {
      return replies.count() == sent && gateway.stats().remembered_orders == 0 &&
             gateway.stats().engine.total().lanes == 0;
    })) << replies.count()
        << " " << sent << " " << gateway.stats_line();
  };
  const std::int64_t ids = kMemoryIsCounted ? 1'000'000 : 50'000;
  run(1, 10'000);
  const std::int64_t before = bytes_in_use();
  run(10'001, ids);
  EXPECT_EQ(replies.rejected(), 0U);
  EXPECT_EQ(gateway.stats().open_orders, 0U);
  if (!kMemoryIsCounted) return;
  EXPECT_LT(bytes_in_use() - before, 1 << 20);
}

}  // namespace
}  // namespace ordo::gateway

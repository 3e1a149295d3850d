#include "ordo/gateway/symbol_table.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/gateway/symbol_cache.h"

namespace ordo::gateway {
namespace {

TEST(SymbolTableTest, ASymbolIsTheSameForAllWhoFindIt) {
  SymbolTable table;
  Symbol* first = table.find("ACME");
  Symbol* second = table.find("ACME");
  EXPECT_EQ(first, second);
  EXPECT_EQ(first->name(), "ACME");
  EXPECT_EQ(table.symbol_count(), 1U);
  table.leave(first);
  EXPECT_EQ(table.symbol_count(), 1U);
  table.leave(second);
  EXPECT_EQ(table.symbol_count(), 0U);
}

TEST(SymbolTableTest, AnOpenOrderKeepsItsSymbol) {
  SymbolTable table;
  Symbol* symbol = table.find("ACME");
  ASSERT_EQ(table.open(*symbol, {}), OpenRefusal::none);
  table.leave(symbol);
  EXPECT_EQ(symbol->open_orders(), 1U);
  EXPECT_EQ(table.open_orders(), 1U);
  table.close(symbol);
  EXPECT_EQ(table.symbol_count(), 0U);
  EXPECT_EQ(table.open_orders(), 0U);
}

TEST(SymbolTableTest, ALimitThatIsMetRefusesAndCountsNothing) {
  SymbolTable table;
  Symbol* acme = table.find("ACME");
  Symbol* other = table.find("OTHER");
  const RiskLimits limits{.open_orders_max = 3, .symbol_open_orders_max = 2};
  EXPECT_EQ(table.open(*acme, limits), OpenRefusal::none);
  EXPECT_EQ(table.open(*acme, limits), OpenRefusal::none);
  EXPECT_EQ(table.open(*acme, limits), OpenRefusal::symbol_full);
  EXPECT_EQ(table.open(*other, limits), OpenRefusal::none);
  EXPECT_EQ(table.open(*other, limits), OpenRefusal::all_full);
  EXPECT_EQ(table.open_orders(), 3U);
  EXPECT_EQ(other->open_orders(), 1U);
  table.close(acme);
  EXPECT_EQ(table.open(*other, limits), OpenRefusal::none);
  table.close(acme);
  table.close(other);
  table.close(other);
  table.leave(acme);
  table.leave(other);
}

// Goal: limits are exact and symbols neither leak nor vanish in use, whoever comes and goes.
// Method: threads find, open, close and leave a few symbols; what is open is counted beside it.
TEST(SymbolTableStress, LimitsHoldWhileThreadsComeAndGo) {
  constexpr std::uint64_t kMost = 3;
  SymbolTable table;
  const RiskLimits limits{.open_orders_max = kMost, .symbol_open_orders_max = 2};
  std::atomic<std::uint64_t> open = 0;
  std::atomic<std::uint64_t> open_peak = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 20'000; ++i) {
        Symbol* symbol = table.find((i + thread) % 3 == 0 ? "A" : "B");
        const bool opened = table.open(*symbol, limits) == OpenRefusal::none;
        if (opened) {
          const std::uint64_t now_open = open.fetch_add(1) + 1;
          if (now_open > open_peak) open_peak = now_open;
        }
        table.leave(symbol);
        if (opened) {
          open.fetch_sub(1);
          table.close(symbol);
        }
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_LE(open_peak, kMost);
  EXPECT_EQ(table.symbol_count(), 0U);
  EXPECT_EQ(table.open_orders(), 0U);
}

TEST(SymbolCacheTest, KeepsTheRulesWhosePatternMatchesUpToTheFirstWithoutConditions) {
  OmsSettings settings;
  settings.routes = {{.symbol = "B*", .venue = "1"},
                     {.symbol = "A*", .quantity_max = Quantity{10}, .venue = "2"},
                     {.symbol = "AC?E", .venue = "3"},
                     {.symbol = "*", .venue = "4"}};
  SymbolTable table;
  SymbolCache cache(table);
  cache.use(settings);
  SymbolCache::Entry& entry = cache.find("ACME");
  ASSERT_EQ(entry.rules.size(), 2U);
  EXPECT_EQ(entry.rules[0]->venue, "2");
  EXPECT_EQ(entry.rules[1]->venue, "3");
  EXPECT_EQ(&cache.find("ACME"), &entry);
  EXPECT_EQ(table.symbol_count(), 0U);  // Quotes alone need none.
}

TEST(SymbolCacheTest, ManySymbolsTakeEachOthersPlaces) {
  OmsSettings settings;
  settings.default_venue = "X";
  SymbolTable table;
  SymbolCache cache(table);
  cache.use(settings);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < SymbolCache::kSymbolsMax * 3; ++i) {
      const std::string name = std::to_string(i);
      SymbolCache::Entry& entry = cache.find(name);
      ASSERT_EQ(entry.view(), name);
      ASSERT_EQ(cache.shared(entry).name(), name);
    }
    EXPECT_EQ(cache.count(), SymbolCache::kSymbolsMax);
    EXPECT_EQ(table.symbol_count(), SymbolCache::kSymbolsMax);
  }
  cache.use(settings);
  EXPECT_EQ(cache.count(), 0U);
  EXPECT_EQ(table.symbol_count(), 0U);
}

}  // namespace
}  // namespace ordo::gateway

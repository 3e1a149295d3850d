// What a decision costs: reading the instruction, the order's state, the routing table.
// Question it answers: is the mini-OMS light enough that the gateway's figures are those of the
// gateway? (It is meant to stay below 120 ns per instruction.)
#include "ordo/gateway/oms.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace ordo::gateway {
namespace {

OmsSettings bench_settings() {
  OmsSettings settings;
  for (char c = 'A'; c <= 'Z'; ++c) {
    settings.routes.push_back(
        {.symbol = std::string(1, c) + "*", .quantity_max = Quantity{100}, .venue = "XNAS"});
    settings.routes.push_back({.symbol = std::string(1, c) + "*", .venue = "XNYS"});
  }
  settings.risk.quantity_max = Quantity{1'000'000};
  settings.risk.notional_max = parse_notional("1000000000").value;
  settings.forget_after = std::chrono::nanoseconds(0);
  return settings;
}

// An order's life of five instructions (NEW, STATUS, FILL, REPLACE, CANCEL) and its end, over as
// many live orders as the argument says.
void oms_instruction(benchmark::State& state) {
  const std::int64_t live = state.range(0);
  SymbolTable symbols;
  Oms oms(std::make_shared<OmsSettings>(bench_settings()), symbols);
  std::vector<std::string> news;
  for (int i = 0; i < 1'000; ++i) {
    news.push_back("NEW " + std::string(1, static_cast<char>('A' + i % 26)) + std::to_string(i) +
                   " BUY 250 99.25");
  }
  const TimePoint now{std::chrono::hours(1)};
  std::uint64_t rejected = 0;
  const auto ask = [&](std::int64_t id, std::string_view payload) {
    const Decision decision = oms.decide(id, payload, now);
    benchmark::DoNotOptimize(decision.text().data());
    rejected += decision.outcome() == Outcome::rejected;
  };
  for (std::int64_t id = 1; id <= live; ++id)
    ask(id, news[static_cast<std::size_t>(id) % news.size()]);
  std::int64_t next = live + 1;
  for (auto _ : state) {
    const std::int64_t oldest = next - live;
    ask(next, news[static_cast<std::size_t>(next) % news.size()]);
    ask(next, "STATUS");
    ask(oldest, "FILL 100");
    ask(oldest, "REPLACE 300 98.75");
    ask(oldest, "CANCEL");
    oms.forget(now);
    ++next;
  }
  if (rejected != 0) state.SkipWithError("an instruction was rejected");
  state.SetItemsProcessed(state.iterations() * 5);
}
BENCHMARK(oms_instruction)->Arg(1)->Arg(1'000)->Arg(100'000)->Arg(999'000);

void oms_quote(benchmark::State& state) {
  SymbolTable symbols;
  Oms oms(std::make_shared<OmsSettings>(bench_settings()), symbols);
  std::uint64_t targets = 0;
  for (auto _ : state) {
    targets += oms.decide(0, "QUOTE ACME 250", TimePoint{}).outcome() == Outcome::target;
  }
  if (targets != static_cast<std::uint64_t>(state.iterations())) {
    state.SkipWithError("a quote had no target");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(oms_quote);

void parse(benchmark::State& state) {
  const std::string payload = "NEW ACME BUY 250 99.25";
  std::uint64_t understood = 0;
  for (auto _ : state) {
    std::string_view given = payload;
    benchmark::DoNotOptimize(given);
    understood += parse_instruction(given).fault == BadField::none;
  }
  benchmark::DoNotOptimize(understood);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(parse);

}  // namespace
}  // namespace ordo::gateway

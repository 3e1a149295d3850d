// What a message costs at the broker's border: made from what the library gives, taken from the
// wire, filtered, and written to the wire, at 100 bytes and 1 KiB.
// Question it answers: may every message be checked and filtered at some 100,000 of them a second?
#include "ordo/broker/message_codec.h"

#include <string>
#include <utility>

#include <benchmark/benchmark.h>

#include "ordo/broker/filter.h"

namespace ordo::broker {
namespace {

NewMessage message_of(benchmark::State& state) {
  return {.data = std::string(static_cast<std::size_t>(state.range(0)), 'x'),
          .attributes = {{"colour", "red"}, {"size", "large"}},
          .ordering_key = "user-1234"};
}

void message_encode(benchmark::State& state) {
  const NewMessage message = message_of(state);
  std::size_t bytes = 0;
  for (auto _ : state)
    bytes += encode_message(message)->bytes.size();
  benchmark::DoNotOptimize(bytes);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(message_encode)->Arg(100)->Arg(1'024);

void message_from_wire(benchmark::State& state) {
  const std::string wire = encode_message(message_of(state))->bytes;
  std::size_t bytes = 0;
  for (auto _ : state)
    bytes += body_from_wire(wire)->bytes.size();
  benchmark::DoNotOptimize(bytes);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(message_from_wire)->Arg(100)->Arg(1'024);

void message_to_wire(benchmark::State& state) {
  const auto batch =
      MessageBatch::make({*encode_message(message_of(state))}, Offset(1), WallTime());
  const Message message(batch, 0);
  std::string out;
  std::size_t bytes = 0;
  for (auto _ : state) {
    out.clear();
    append_wire(out, message);
    bytes += out.size();
  }
  benchmark::DoNotOptimize(bytes);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(message_to_wire)->Arg(100)->Arg(1'024);

void message_filter(benchmark::State& state) {
  const std::string body = encode_message(message_of(state))->bytes;
  const Filter filter =
      *Filter::parse(R"(attributes.colour = "red" AND NOT hasPrefix(attributes.size, "sm"))");
  std::size_t matched = 0;
  for (auto _ : state)
    matched += filter.matches(body) ? 1 : 0;
  benchmark::DoNotOptimize(matched);
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(message_filter)->Arg(100)->Arg(1'024);

}  // namespace
}  // namespace ordo::broker

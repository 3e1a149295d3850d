// What a message costs in the state machine alone: published, delivered and acknowledged, with
// effects performed by nobody.
// Question it answers: may one partition carry 200,000 messages a second beside everything else,
// and do blocked keys slow the others?
#include "ordo/broker/partition.h"

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <benchmark/benchmark.h>

#include "ordo/broker/message_codec.h"

namespace ordo::broker {
namespace {

constexpr CursorNumber kCursor{1};

class Line {
 public:
  explicit Line(bool is_ordered) : partition_(PartitionStart{}, PartitionOptions{}, now_) {
    SubscriptionSetup setup;
    setup.subscription = kCursor;
    setup.config.enable_message_ordering = is_ordered;
    step(Attach{RequestNumber(1), setup});
    step(OpenConsumer{ConsumerNumber(1), kCursor, std::nullopt});
    step(GrantCredit{ConsumerNumber(1), std::uint64_t{1} << 62, std::uint64_t{1} << 62});
  }

  void publish(std::vector<MessageBody> bodies) {
    step(Publish{RequestNumber(2), std::move(bodies)});
  }

  // All that was delivered, in one request.
  std::size_t acknowledge() {
    Acknowledge acknowledge{RequestNumber(3), true, std::exchange(delivered_, {})};
    const std::size_t count = acknowledge.ids.size();
    if (count > 0) step(std::move(acknowledge));
    return count;
  }

  void forget_delivered() { delivered_.clear(); }

  // One piece of a look at all keys; 0: it was the last.
  std::uint32_t list_keys(std::uint32_t from) {
    ListKeys list;
    list.subscription = kCursor;
    list.order = KeyOrder::deepest;
    list.from = from;
    step(list);
    return std::get<KeysReply>(effects_.back()).next;
  }

 private:
  void step(Input input) {
    now_.steady += std::chrono::nanoseconds(100);
    effects_.clear();
    partition_.step(std::move(input), now_, effects_);
    // Commits are done at once, in their order.
    std::vector<TicketNumber> tickets;
    for (Effect& effect : effects_) {
      if (const auto* commit = std::get_if<Commit>(&effect)) tickets.push_back(commit->ticket);
      if (const auto* deliver = std::get_if<Deliver>(&effect)) {
        for (const Delivery& delivery : deliver->deliveries)
          delivered_.push_back(delivery.ack_id);
      }
    }
    for (const TicketNumber ticket : tickets)
      step(Committed{ticket, std::nullopt});
  }

  Now now_{TimePoint(std::chrono::seconds(1)), WallTime(std::chrono::hours(1'000'000))};
  Partition partition_;
  Effects effects_;
  std::vector<AckId> delivered_;
};

std::vector<MessageBody> bodies(const std::string& key, std::size_t count) {
  NewMessage message;
  message.data = std::string(100, 'x');
  if (!key.empty()) message.ordering_key = key;
  return std::vector<MessageBody>(count, *encode_message(message));
}

std::string key_of(std::int64_t number) {
  std::string key = "customers/";
  key += std::to_string(number);
  return key;
}

// Batches of 100 without a key.
void partition_unkeyed(benchmark::State& state) {
  Line line(true);
  std::size_t count = 0;
  for (auto _ : state) {
    line.publish(bodies("", 100));
    count += line.acknowledge();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(count));
}
BENCHMARK(partition_unkeyed);

// Each round one message of every key, acknowledged together; one in flight each.
void partition_keys(benchmark::State& state) {
  const std::int64_t key_count = state.range(0);
  Line line(true);
  std::vector<std::vector<MessageBody>> ready;
  for (std::int64_t key = 0; key < key_count; ++key)
    ready.push_back(bodies(key_of(key), 1));
  std::size_t count = 0;
  for (auto _ : state) {
    for (const auto& message : ready)
      line.publish(message);
    count += line.acknowledge();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(count));
}
BENCHMARK(partition_keys)->Arg(1)->Arg(1'000);

// A batch of 100 of one key, acknowledged one by one.
void partition_one_key_batches(benchmark::State& state) {
  Line line(true);
  std::size_t count = 0;
  for (auto _ : state) {
    line.publish(bodies("key", 100));
    for (int i = 0; i < 100; ++i)
      count += line.acknowledge();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(count));
}
BENCHMARK(partition_one_key_batches);

// The same as partition_keys/1000 beside 1,000 keys that nobody acknowledges, with so many messages
// behind them.
void partition_beside_blocked_keys(benchmark::State& state) {
  Line line(true);
  for (std::int64_t sent = 0; sent < state.range(0); ++sent)
    line.publish(bodies(key_of(1'000'000 + sent % 1'000), 1));
  line.forget_delivered();
  std::vector<std::vector<MessageBody>> ready;
  for (std::int64_t key = 0; key < 1'000; ++key)
    ready.push_back(bodies(key_of(key), 1));
  std::size_t count = 0;
  for (auto _ : state) {
    for (const auto& message : ready)
      line.publish(message);
    count += line.acknowledge();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(count));
}
BENCHMARK(partition_beside_blocked_keys)->Arg(1'000)->Arg(1'000'000);

// One piece of a look at the deepest of so many keys that are in flight: for so long the partition
// does nothing else.
void partition_list_keys(benchmark::State& state) {
  Line line(true);
  for (std::int64_t key = 0; key < state.range(0); ++key)
    line.publish(bodies(key_of(key), 1));
  line.forget_delivered();
  std::uint32_t from = 0;
  for (auto _ : state)
    from = line.list_keys(from);
  benchmark::DoNotOptimize(from);
}
BENCHMARK(partition_list_keys)->Arg(1'000)->Arg(90'000);

}  // namespace
}  // namespace ordo::broker

#include "bench/pool/load.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bench/pool/ideal.h"

namespace ordo::bench {
namespace {

LoadSettings empty_load(std::uint64_t items) {
  LoadSettings settings;
  settings.workload = find_workload("empty");
  settings.items = items;
  return settings;
}

// All messages of the load with their work done, in order.
std::vector<Message> worked_messages(Load& load) {
  std::vector<Message> messages(load.items());
  for (std::uint64_t id = 0; id < load.items(); ++id) {
    load.fill(messages[id], id);
    load.work(messages[id]);
  }
  return messages;
}

double errors_of(Load& load, const std::vector<Message>& messages) {
  for (const Message& message : messages) {
    load.take(message);
  }
  return load.finish().get("errors");
}

TEST(LoadTest, MessagesThatComeAllAndInOrderAreNoError) {
  Load load(empty_load(100));
  load.begin();
  EXPECT_EQ(errors_of(load, worked_messages(load)), 0);
}

TEST(LoadTest, TwoSwappedMessagesAreErrors) {
  Load load(empty_load(100));
  load.begin();
  std::vector<Message> messages = worked_messages(load);
  std::swap(messages[40], messages[41]);
  EXPECT_EQ(errors_of(load, messages), 2);
}

TEST(LoadTest, AMissingLastMessageIsAnError) {
  Load load(empty_load(100));
  load.begin();
  std::vector<Message> messages = worked_messages(load);
  messages.pop_back();
  EXPECT_EQ(errors_of(load, messages), 1);
}

TEST(LoadTest, AMessageThatComesTwiceIsAnError) {
  Load load(empty_load(100));
  load.begin();
  std::vector<Message> messages = worked_messages(load);
  messages[7] = messages[6];
  EXPECT_EQ(errors_of(load, messages), 1);
}

TEST(LoadTest, AMessageWhoseWorkWasNotDoneIsAnError) {
  Load load(empty_load(100));
  load.begin();
  std::vector<Message> messages = worked_messages(load);
  messages[7].answer = 0;
  EXPECT_EQ(errors_of(load, messages), 1);
}

TEST(LoadTest, OneInAHundredOfTheSkewedMessagesSleeps) {
  LoadSettings settings = empty_load(10'000);
  settings.workload = find_workload("skewed");
  const Load load(settings);
  int sleepers = 0;
  for (std::uint64_t id = 0; id < load.items(); ++id) {
    if (load.sleep_ns(id) != 0) ++sleepers;
  }
  EXPECT_NEAR(sleepers, 100, 30);
}

TEST(LoadTest, AllocationsOfTheSecondHalfAreCounted) {
  Load load(empty_load(1'000));
  load.begin();
  const std::vector<Message> messages = worked_messages(load);
  std::vector<std::vector<int>> kept(1'000);
  for (const Message& message : messages) {
    if (message.id >= 501) kept[message.id].resize(1);
    load.take(message);
  }
  EXPECT_NEAR(load.finish().get("allocations_per_item"), 1.0, 0.01);
}

TEST(IdealTest, WorkersShareTheWork) {
  EXPECT_EQ(ideal_ns({10, 10, 10, 10}, 1, 8), 40);
  EXPECT_EQ(ideal_ns({10, 10, 10, 10}, 2, 8), 20);
  EXPECT_EQ(ideal_ns({10, 10, 10, 10}, 4, 8), 10);
}

TEST(IdealTest, ASlowHeadHoldsUpTheWindowAndNotMore) {
  // Items 0 and 1 are admitted; 2 waits for the release of 0, and 3 for that of 1.
  EXPECT_EQ(ideal_ns({100, 10, 10, 10}, 4, 2), 110);
  EXPECT_EQ(ideal_ns({100, 10, 10, 10}, 4, 4), 100);
}

}  // namespace
}  // namespace ordo::bench

// Plan: what a seed stands for: topics, subscriptions, clients, sizes, faults.
//
//   Plan plan = make_plan(seed);
//
// Threads: plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ordo/broker/config.h"
#include "ordo/broker/credit_desk.h"
#include "ordo/broker/partition.h"

namespace ordo::simulation {

// How a consumer treats what it gets.
enum class Habit : std::uint8_t {
  prompt,         // Acknowledges within milliseconds.
  slow,           // Shortly before the deadline, often after moving it on.
  late,           // After the deadline.
  doubling,       // Twice.
  nacking,        // Gives back most of what it gets.
  silent,         // Never answers.
  crashing,       // Prompt, but dies or closes now and then.
  never_reading,  // Takes what it is given and does nothing, with room for one.
  mixed,          // Any of these, anew for each delivery.
};

// Which messages a subscription takes.
enum class Taste : std::uint8_t { all, only_red, not_red };

struct SubscriptionPlan {
  broker::SubscriptionConfig config;
  std::uint32_t topic = 0;  // The last one is that of dead letters.
  Taste taste = Taste::all;
  bool is_late = false;  // Created while messages are published.

  broker::TopicNumber topic_number() const { return broker::TopicNumber(topic + 1); }
  // Deliveries are numbered, and the numbers kept through crashes.
  bool counts_attempts() const {
    return config.failure_policy == broker::FailurePolicy::dead_letter ||
           config.failure_policy == broker::FailurePolicy::park;
  }
  std::uint32_t attempts_max() const {
    if (config.failure_policy == broker::FailurePolicy::dead_letter)
      return config.dead_letter_policy->max_delivery_attempts;
    return config.failure_policy == broker::FailurePolicy::park ? config.park_attempts : 0;
  }
};

struct ClientPlan {
  std::uint32_t subscription = 0;
  Habit habit = Habit::prompt;
  broker::CreditLimits limits;
  std::optional<std::chrono::nanoseconds> ack_deadline;
  std::uint32_t confirm_percent = 50;
  std::uint32_t together_percent = 0;  // Acks that wait for others to go with.
};

struct Plan {
  std::uint64_t seed = 0;
  std::chrono::nanoseconds safety_time{};  // Then faults end, and all must drain.
  std::uint32_t topics = 1;                // And one more for dead letters.
  std::uint32_t partitions = 1;            // Of each topic.
  std::uint32_t keys = 1;
  std::uint32_t publishes = 0;
  std::uint32_t message_padding_max = 0;
  std::uint32_t unkeyed_percent = 20;
  broker::PartitionOptions options;
  std::vector<SubscriptionPlan> subscriptions;
  std::vector<ClientPlan> clients;

  std::uint32_t crashes = 0;
  std::uint32_t effects_between_crashes = 0;
  std::chrono::nanoseconds commit_delay_max{};
  std::chrono::nanoseconds read_delay_max{};
  std::chrono::nanoseconds timer_delay_max{};
  std::uint32_t commit_full_per_thousand = 0;
  std::uint32_t rows_full_per_thousand = 0;
  std::uint32_t commit_error_per_thousand = 0;
  std::uint32_t read_error_per_thousand = 0;
  std::chrono::nanoseconds sync_interval{};    // A crash may lose what came later; 0: every commit.
  std::uint32_t spill_error_per_thousand = 0;  // Of chunks that are to be written.
  std::uint32_t damages = 0;                   // Stored messages that lose a bit, until the end.

  bool has_verbs = false;
  bool has_seeks = false;
  bool has_snapshots = false;
  bool has_deletions = false;
  bool changes_retention = false;  // Of topics.
  bool loses_dead_letter_topic = false;
};

Plan make_plan(std::uint64_t seed);
std::string describe(const Plan& plan);

}  // namespace ordo::simulation

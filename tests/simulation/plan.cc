#include "tests/simulation/plan.h"

#include "tests/simulation/dice.h"

namespace ordo::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

void shrink(broker::PartitionOptions& options, Dice& dice) {
  if (dice.chance(30)) options.cache_bytes_max = dice.between(0, 400);
  if (dice.chance(40)) {
    options.tail_bytes_max = dice.between(0, 200);
    options.spill_chunk_offsets = dice.between(1, 4);
  }
  if (dice.chance(30)) options.ready_bytes_max = dice.between(1, 300);
  if (dice.chance(20)) options.leases_max = dice.between(1, 5);
  if (dice.chance(20)) options.lease_bytes_max = dice.between(1, 300);
  if (dice.chance(30)) {
    options.read_messages_max = dice.between(1, 4);
    options.read_bytes_max = dice.between(1, 300);
  }
  if (dice.chance(20)) {
    options.deliver_messages_max = dice.between(1, 3);
    options.deliver_bytes_max = dice.between(1, 200);
  }
  if (dice.chance(50)) options.delivered_ahead = dice.between(1, 8);
  if (dice.chance(15)) options.pending_publish_bytes_max = dice.between(100, 400);
}

void choose_failure_policy(broker::SubscriptionConfig& config, Dice& dice) {
  switch (dice.below(8)) {
    case 0:
    case 1:
    case 2:
      config.failure_policy = broker::FailurePolicy::dead_letter;
      config.dead_letter_policy = broker::DeadLetterPolicy{
          "projects/p/topics/dead", static_cast<std::uint32_t>(dice.between(1, 5))};
      break;
    case 3:
      config.failure_policy = broker::FailurePolicy::park;
      config.park_attempts = static_cast<std::uint32_t>(dice.between(1, 4));
      break;
    case 4:
      config.failure_policy = broker::FailurePolicy::skip_after;
      config.skip_after = dice.time(milliseconds(10), seconds(10));
      break;
    default:
      break;
  }
}

SubscriptionPlan make_subscription(std::uint32_t number, const Plan& plan, Dice& dice) {
  SubscriptionPlan result;
  result.topic = static_cast<std::uint32_t>(dice.below(plan.topics));
  broker::SubscriptionConfig& config = result.config;
  config.name = "projects/p/subscriptions/s" + std::to_string(number);
  config.topic = "projects/p/topics/t" + std::to_string(result.topic);
  config.ack_deadline = seconds(dice.pick<std::int64_t>({1, 1, 2, 10}));
  config.enable_message_ordering = dice.chance(85);
  config.enable_exactly_once_delivery = dice.chance(30);
  config.retain_acked_messages = plan.has_seeks && dice.chance(60);
  if (dice.chance(10)) config.message_retention = dice.time(seconds(2), seconds(30));
  if (config.enable_message_ordering && dice.chance(35))
    config.ordered_window = static_cast<std::uint32_t>(dice.between(2, 4));
  if (dice.chance(40)) {
    config.retry_policy.emplace();
    config.retry_policy->minimum_backoff = dice.time(milliseconds(10), seconds(2));
    config.retry_policy->maximum_backoff =
        config.retry_policy->minimum_backoff + dice.time(milliseconds(0), seconds(5));
  }
  if (dice.chance(25)) {
    result.taste = dice.chance(50) ? Taste::only_red : Taste::not_red;
    config.filter = result.taste == Taste::only_red ? "attributes.colour = \"red\""
                                                    : "NOT attributes.colour = \"red\"";
  }
  choose_failure_policy(config, dice);
  if (number > 0 && dice.chance(15)) {  // It gets dead letters, and makes none.
    result.topic = plan.topics;
    config.topic = "projects/p/topics/dead";
    config.dead_letter_policy.reset();
    config.failure_policy = broker::FailurePolicy::block;
  }
  result.is_late = dice.chance(20);
  return result;
}

ClientPlan make_client(std::uint32_t subscription, Dice& dice) {
  ClientPlan result;
  result.subscription = subscription;
  result.habit = dice.chance(40) ? Habit::mixed : static_cast<Habit>(dice.below(9));
  result.confirm_percent = dice.pick<std::uint32_t>({0, 50, 100});
  result.together_percent = dice.pick<std::uint32_t>({0, 0, 30, 80});
  if (dice.chance(60)) result.limits.messages = static_cast<std::int64_t>(dice.between(1, 8));
  if (dice.chance(20)) result.limits.bytes = static_cast<std::int64_t>(dice.between(1, 400));
  if (result.habit == Habit::never_reading) result.limits.messages = 1;
  if (dice.chance(20)) result.ack_deadline = dice.time(seconds(1), seconds(5));
  return result;
}

void choose_faults(Plan& plan, Dice& dice) {
  if (dice.chance(60)) plan.crashes = static_cast<std::uint32_t>(dice.between(1, 4));
  plan.effects_between_crashes = static_cast<std::uint32_t>(dice.between(20, 500));
  plan.commit_delay_max = dice.pick<milliseconds>(
      {milliseconds(0), milliseconds(2), milliseconds(50), milliseconds(1'000)});
  plan.read_delay_max =
      dice.pick<milliseconds>({milliseconds(0), milliseconds(2), milliseconds(200)});
  if (dice.chance(30)) plan.timer_delay_max = milliseconds(50);
  if (dice.chance(30))
    plan.commit_full_per_thousand = static_cast<std::uint32_t>(dice.between(1, 200));
  if (dice.chance(15))
    plan.rows_full_per_thousand = static_cast<std::uint32_t>(dice.between(1, 100));
  if (dice.chance(15))
    plan.commit_error_per_thousand = static_cast<std::uint32_t>(dice.between(1, 20));
  if (dice.chance(25))
    plan.read_error_per_thousand = static_cast<std::uint32_t>(dice.between(10, 200));
  if (dice.chance(12)) plan.sync_interval = dice.time(milliseconds(5), seconds(2));
  if (dice.chance(20))
    plan.spill_error_per_thousand = static_cast<std::uint32_t>(dice.between(10, 300));
}

}  // namespace

Plan make_plan(std::uint64_t seed) {
  Dice dice(seed);
  Plan plan;
  plan.seed = seed;
  plan.safety_time = dice.time(seconds(3), seconds(30));
  plan.topics = static_cast<std::uint32_t>(dice.between(1, 2));
  plan.partitions = static_cast<std::uint32_t>(dice.between(1, 3));
  plan.keys = static_cast<std::uint32_t>(dice.between(1, 6));
  plan.publishes = static_cast<std::uint32_t>(dice.between(3, 40));
  plan.message_padding_max = dice.pick<std::uint32_t>({0, 0, 10, 150});
  plan.unkeyed_percent = dice.pick<std::uint32_t>({0, 10, 50});
  plan.has_verbs = dice.chance(35);
  plan.has_seeks = dice.chance(25);
  plan.has_snapshots = plan.has_seeks && dice.chance(60);
  plan.has_deletions = dice.chance(15);
  plan.loses_dead_letter_topic = dice.chance(20);
  plan.changes_retention = dice.chance(15);
  if (dice.chance(70)) shrink(plan.options, dice);
  const std::uint64_t subscriptions = dice.between(1, 3);
  for (std::uint32_t i = 0; i < subscriptions; ++i) {
    plan.subscriptions.push_back(make_subscription(i, plan, dice));
    for (std::uint64_t clients = dice.between(1, 3); clients > 0; --clients)
      plan.clients.push_back(make_client(i, dice));
  }
  if (dice.chance(90)) choose_faults(plan, dice);
  if (dice.chance(12)) plan.damages = static_cast<std::uint32_t>(dice.between(1, 3));
  return plan;
}

std::string describe(const Plan& plan) {
  std::string text = "seed " + std::to_string(plan.seed) + ": " + std::to_string(plan.topics) +
                     " topics x " + std::to_string(plan.partitions) + " partitions, " +
                     std::to_string(plan.keys) + " keys, " + std::to_string(plan.publishes) +
                     " publishes, " + std::to_string(plan.crashes) + " crashes";
  for (const SubscriptionPlan& subscription : plan.subscriptions) {
    const broker::SubscriptionConfig& config = subscription.config;
    text +=
        "\n  subscription of t" + std::to_string(subscription.topic) +
        (config.enable_message_ordering ? " ordered" : " unordered") + " window " +
        std::to_string(config.ordered_window) +
        (config.enable_exactly_once_delivery ? " exactly-once" : "") + " policy " +
        std::to_string(static_cast<int>(config.failure_policy)) + " attempts " +
        std::to_string(subscription.attempts_max()) + " deadline " +
        std::to_string(config.ack_deadline / milliseconds(1)) + " ms" +
        (config.message_retention < std::chrono::hours(1)
             ? " retention " + std::to_string(config.message_retention / milliseconds(1)) + " ms"
             : "") +
        (config.retry_policy ? " retry" : "") + " taste " +
        std::to_string(static_cast<int>(subscription.taste));
  }
  for (const ClientPlan& client : plan.clients) {
    text += "\n  client of s" + std::to_string(client.subscription) + " habit " +
            std::to_string(static_cast<int>(client.habit)) + " limits " +
            std::to_string(client.limits.messages) + "/" + std::to_string(client.limits.bytes);
  }
  return text;
}

}  // namespace ordo::simulation

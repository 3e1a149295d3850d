// Publishers and consumers, and how they misbehave.
#include <algorithm>
#include <utility>

#include "ordo/broker/message_codec.h"
#include "ordo/core/check.h"
#include "tests/simulation/world.h"

namespace ordo::simulation {

using broker::AckId;
using broker::CloseConsumer;
using broker::ConsumerNumber;
using std::chrono::milliseconds;
using std::chrono::seconds;

void World::publish() {
  if (!is_up_) return;
  const auto topic = static_cast<std::uint32_t>(dice_.below(plan_.topics));
  std::string key;
  auto index = static_cast<std::uint32_t>(dice_.below(plan_.partitions));
  if (!dice_.chance(plan_.unkeyed_percent)) {
    key = "k" + std::to_string(dice_.below(plan_.keys));
    index = broker::partition_of(key, plan_.partitions);
  }
  const Address address{broker::TopicNumber(topic + 1), index};
  broker::Publish publish{new_request(), {}};
  Asked asked{{}, now_, address};
  const std::uint64_t count = dice_.chance(60) ? 1 : dice_.between(2, 5);
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool is_red = dice_.chance(50);
    const Uid uid = checker_.new_message(address, key, is_red);
    broker::NewMessage message;
    message.data =
        std::to_string(uid) + ";" + std::string(dice_.below(plan_.message_padding_max + 1), 'x');
    if (is_red) message.attributes.emplace_back("colour", "red");
    if (!key.empty()) message.ordering_key = key;
    Result<broker::MessageBody> body = broker::encode_message(message);
    ORDO_CHECK(body.has_value());
    publish.messages.push_back(*std::move(body));
    asked.uids.push_back(uid);
  }
  checker_.publish(address, publish.request, asked.uids);
  publishes_.emplace(publish.request.value(), std::move(asked));
  step(address, std::move(publish));
}

// ---------------------------------------------------------------------- connections

std::optional<std::size_t> World::client_of(ConsumerNumber consumer) const {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (clients_[i].consumer == consumer) return i;
  }
  return std::nullopt;
}

void World::connect(std::size_t index) {
  Client& client = clients_[index];
  if (client.consumer) return;
  const Subscription& subscription = subscriptions_[client.plan.subscription];
  if (!is_up_ || !subscription.exists) {
    after(dice_.time(milliseconds(10), milliseconds(500)), [this, index] { connect(index); });
    return;
  }
  const std::uint32_t life = life_;
  const ConsumerNumber consumer(++last_number_);
  client.subscription = subscription.number;
  client.consumer = consumer;
  client.desk = std::make_unique<broker::CreditDesk>(client.plan.limits, plan_.partitions);
  checker_.open_consumer(consumer, client.subscription, client.plan);
  trace("client " + std::to_string(index) + " connects as " + std::to_string(consumer.value()));
  for (const Address address : addresses(plan_.subscriptions[client.plan.subscription].topic)) {
    step(address, broker::OpenConsumer{consumer, client.subscription, client.plan.ack_deadline});
    if (!is_up_ || life != life_ || clients_[index].consumer != consumer) return;
  }
}

void World::disconnect(std::size_t index, std::optional<CloseConsumer::How> how) {
  Client& client = clients_[index];
  if (!client.consumer) return;
  const ConsumerNumber consumer = *std::exchange(client.consumer, std::nullopt);
  const std::uint32_t life = life_;
  if (how) {
    trace("client " + std::to_string(index) + " closes");
    if (auto* history = this->history(client.subscription);
        history != nullptr && *how != CloseConsumer::How::keep_leases)
      history->disconnect("c" + std::to_string(consumer.value()), now_);
    for (const Address address : addresses(plan_.subscriptions[client.plan.subscription].topic)) {
      step(address, CloseConsumer{consumer, *how});
      if (!is_up_ || life != life_) break;
    }
  }
  after(dice_.time(milliseconds(10), milliseconds(1'000)), [this, index] { connect(index); });
}

void World::grant(std::size_t index, const broker::CreditDesk::Grants& grants) {
  const ConsumerNumber consumer = *clients_[index].consumer;
  const std::uint32_t topic = plan_.subscriptions[clients_[index].plan.subscription].topic;
  for (const broker::CreditDesk::Grant& grant : grants) {
    const Address address{broker::TopicNumber(topic + 1), grant.partition};
    after_in_life(dice_.time({}, std::chrono::microseconds(100)), [=, this] {
      if (client_of(consumer))
        step(address, broker::GrantCredit{consumer, grant.messages, grant.bytes});
    });
  }
}

// ---------------------------------------------------------------------- deliveries

void World::delivered(std::size_t index, const broker::Delivery& delivery) {
  const ClientPlan& plan = clients_[index].plan;
  const AckId id = delivery.ack_id;
  const Nanoseconds deadline =
      plan.ack_deadline.value_or(plan_.subscriptions[plan.subscription].config.ack_deadline);
  if (auto* history = this->history(id.subscription)) {
    const auto view = broker::decode_message(delivery.message.body());
    const Uid uid = std::strtoull(std::string(view->data).c_str(), nullptr, 10);
    auto message = history_message(uid, nullptr, 0);
    message.message = delivery.message.id().value();
    history->deliver(
        "c" + std::to_string(clients_[index].consumer->value()), message,
        std::to_string(id.fence.value()) + "/" + std::to_string(id.partition),
        plan_.subscriptions[plan.subscription].config.ordered_window == 1 ? delivery.attempt : 0,
        deadline, now_);
  }
  Habit habit = is_draining_ ? Habit::prompt : plan.habit;
  if (habit == Habit::mixed) habit = static_cast<Habit>(dice_.below(7));
  const auto acknowledge_after = [&](Nanoseconds least, Nanoseconds most) {
    after(dice_.time(least, most), [this, index, id] { acknowledge(index, id); });
  };
  switch (habit) {
    case Habit::slow:
      if (dice_.chance(50)) {
        const Nanoseconds longer = dice_.time(milliseconds(100), deadline * 2);
        after(deadline * 9 / 10, [=, this] { modify(index, id, longer); });
        acknowledge_after(deadline * 9 / 10, deadline + longer);
      } else {
        acknowledge_after(deadline * 3 / 10, deadline);
      }
      break;
    case Habit::late:
      if (dice_.chance(20)) after(deadline, [this, index, id] { modify(index, id, seconds(1)); });
      acknowledge_after(deadline, deadline * 3);
      break;
    case Habit::doubling:
      acknowledge_after({}, deadline / 2);
      acknowledge_after({}, deadline * 2);
      break;
    case Habit::nacking:
      if (dice_.chance(75)) {
        after(dice_.time({}, milliseconds(50)), [this, index, id] { modify(index, id, {}); });
        if (dice_.chance(20)) acknowledge_after({}, milliseconds(100));
      } else {
        acknowledge_after({}, milliseconds(50));
      }
      break;
    case Habit::silent:
    case Habit::never_reading:
      break;
    case Habit::crashing:
      acknowledge_after({}, milliseconds(20));
      if (dice_.chance(15)) {
        const auto how = static_cast<CloseConsumer::How>(dice_.below(3));
        const ConsumerNumber consumer = *clients_[index].consumer;
        after(dice_.time({}, milliseconds(20)), [=, this] {
          if (clients_[index].consumer == consumer) disconnect(index, how);
        });
      }
      break;
    case Habit::prompt:
    case Habit::mixed:
      acknowledge_after({}, milliseconds(20));
      break;
  }
}

void World::acknowledge(std::size_t index, const AckId& id) {
  if (!is_up_) return;
  std::vector<AckId>& together = clients_[index].together;
  if (is_draining_ || !dice_.chance(clients_[index].plan.together_percent)) {
    send_acks(index, {id});
    return;
  }
  together.push_back(id);
  if (together.size() == 1)
    after(dice_.time({}, milliseconds(100)), [this, index] { acknowledge_together(index); });
}

// A request is for one partition of one subscription.
void World::acknowledge_together(std::size_t index) {
  std::vector<AckId> ids = std::exchange(clients_[index].together, {});
  while (!ids.empty()) {
    std::vector<AckId> request;
    const AckId first = ids.front();
    std::erase_if(ids, [&](const AckId& id) {
      if (id.subscription != first.subscription || id.partition != first.partition) return false;
      request.push_back(id);
      return true;
    });
    if (request.size() > 1) marks_.hit(Mark::acks_together);
    send_acks(index, request);
  }
}

void World::send_acks(std::size_t index, const std::vector<AckId>& ids) {
  const ClientPlan& plan = clients_[index].plan;
  if (!is_up_) return;
  const Address address{plan_.subscriptions[plan.subscription].topic_number(),
                        ids.front().partition};
  broker::Acknowledge input{new_request(), dice_.chance(plan.confirm_percent) || is_draining_, ids};
  for (const AckId& id : ids) {
    auto* history = this->history(id.subscription);
    if (history == nullptr) continue;
    const std::size_t line = history->settle(
        "ack", std::to_string(id.fence.value()) + "/" + std::to_string(id.partition), {}, now_);
    if (input.confirm) history_settles_[input.request.value()].emplace_back(history, line);
  }
  step(address, std::move(input));
}

void World::modify(std::size_t index, const AckId& id, Nanoseconds deadline) {
  const ClientPlan& plan = clients_[index].plan;
  if (!is_up_) return;
  const Address address{plan_.subscriptions[plan.subscription].topic_number(), id.partition};
  broker::ModifyDeadline input{new_request(), dice_.chance(plan.confirm_percent), {id}, deadline};
  if (auto* history = this->history(id.subscription)) {
    const std::size_t line = history->settle(
        deadline.count() == 0 ? "nack" : "modack",
        std::to_string(id.fence.value()) + "/" + std::to_string(id.partition), deadline, now_);
    if (input.confirm) history_settles_[input.request.value()].emplace_back(history, line);
  }
  step(address, std::move(input));
}

}  // namespace ordo::simulation

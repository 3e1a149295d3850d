// A broker under load that writes down all it sees, for broker_kill_test: publishers that wait for
// each answer, handlers that ack, nack, or refuse some messages for ever (those become dead
// letters).
//
//   broker_child DIRECTORY LOG CYCLE load     until it is killed
//   broker_child DIRECTORY LOG CYCLE drain    until nothing is left
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "ordo/adapters/store_rocksdb/open_broker.h"
#include "ordo/broker.h"
#include "tests/crash/event_log.h"

namespace ordo {
namespace {

using broker::MessageId;
using testing_support::EventLog;

const std::string kTopic = "projects/test/topics/orders";
const std::string kDeadTopic = "projects/test/topics/dead-letters";
const std::string kSubscription = "projects/test/subscriptions/billing";
const std::string kDeadSubscription = "projects/test/subscriptions/undertaker";
constexpr int kPublishers = 3;
constexpr int kKeys = 8;  // Of each publisher.

std::string text(std::uint64_t number) {
  return std::to_string(number);
}

std::string ack_name(const ReceivedMessage& message) {
  const broker::AckId& id = message.ack_id();
  return text(id.partition)
      .append("-")
      .append(text(id.offset.value()))
      .append("-")
      .append(text(id.fence.value()));
}

bool create(Broker& broker) {
  for (const std::string& name : {kTopic, kDeadTopic}) {
    broker::TopicConfig topic;
    topic.name = name;
    topic.partitions = 2;
    const auto created = broker.create_topic(topic);
    if (!created && created.error().code != ErrorCode::already_exists) return false;
  }
  broker::SubscriptionConfig dead;
  dead.name = kDeadSubscription;
  dead.topic = kDeadTopic;
  broker::SubscriptionConfig config;
  config.name = kSubscription;
  config.topic = kTopic;
  config.enable_message_ordering = true;
  config.dead_letter_policy = broker::DeadLetterPolicy{kDeadTopic, 5};
  for (const broker::SubscriptionConfig& one : {dead, config}) {
    const auto created = broker.create_subscription(one);
    if (!created && created.error().code != ErrorCode::already_exists) return false;
  }
  return true;
}

// One to three messages of one key, or of none, at a time.
void publish_for_ever(Broker& broker, const EventLog& log, const std::string& cycle, int number) {
  std::mt19937 random(static_cast<unsigned>(std::stoi(cycle) * 100 + number));
  const std::string publisher =
      std::string("p").append(std::to_string(number)).append("c").append(cycle);
  std::uint64_t next = 0;
  while (true) {
    const bool is_keyed = random() % 5 != 0;
    const std::string key = is_keyed ? std::string("k")
                                           .append(std::to_string(number))
                                           .append("-")
                                           .append(text(random() % kKeys))
                                     : std::string();
    std::vector<broker::NewMessage> messages(1 + random() % 3);
    const std::string batch = std::string(publisher).append("-").append(text(next));
    std::vector<std::string> uids;
    for (broker::NewMessage& message : messages) {
      const bool is_poison = random() % 40 == 0;
      uids.push_back(
          std::string(is_poison ? "bad-" : "").append(publisher).append("-").append(text(next++)));
      message.data = uids.back();
      if (is_keyed) message.ordering_key = key;
      log.add("begin", {uids.back(), key, publisher, text(next), batch, text(uids.size() - 1)});
    }
    const Result<std::vector<MessageId>> ids = broker.publish(kTopic, messages);
    for (std::size_t i = 0; i < uids.size(); ++i)
      log.add("end", {uids[i], ids ? "ok" : "unknown", ids ? text((*ids)[i].value()) : "0"});
  }
}

HandlerAnswer answer_for(const ReceivedMessage& message, std::uint64_t chance) {
  if (message.data().starts_with("bad-")) return HandlerAnswer::nack;
  return chance % 10 == 0 ? HandlerAnswer::nack : HandlerAnswer::ack;
}

void handle(const EventLog& log, const ReceivedMessage& message, const AckHandle& handle_of_it) {
  const std::string ack = ack_name(message);
  log.add("deliver", {message.data(), message.key(), ack, text(message.attempt()),
                      text(message.id().value())});
  if (answer_for(message, message.fence().value()) == HandlerAnswer::nack) {
    log.add("nack", {ack});
    handle_of_it.nack();
    return;
  }
  log.add("ack", {ack});
  handle_of_it.ack([&log, ack](const Status& status) {
    const bool is_late = !status && status.error().code == ErrorCode::failed_precondition;
    log.add("acked", {ack, status ? "ok" : is_late ? "fail" : "unknown"});
  });
}

bool is_empty(Broker& broker) {
  for (const std::string& name : {kSubscription, kDeadSubscription}) {
    const auto stats = broker.subscription_stats(name);
    if (!stats || stats->waiting + stats->leased + stats->unread > 0) return false;
  }
  return true;
}

int run(const std::string& directory, const std::string& path, const std::string& cycle,
        bool drains) {
  const EventLog log(path);
  Result<std::unique_ptr<Broker>> opened = open_broker(directory);
  if (!opened || !create(**opened)) {
    std::fprintf(stderr, "broker_child: %s\n", opened ? "setup" : opened.error().message.c_str());
    return 1;
  }
  Broker& broker = **opened;
  log.add("start", {cycle});
  auto subscriber =
      broker.subscribe_async(kSubscription,
                             [&log](const ReceivedMessage& message, const AckHandle& handle_of_it) {
                               handle(log, message, handle_of_it);
                             },
                             {.handlers = 2, .extension_max = std::chrono::seconds(0)});
  auto undertaker =
      broker.subscribe(kDeadSubscription,
                       [&log](const ReceivedMessage& message) {
                         log.add("dead", {message.data(), text(message.id().value())});
                         return HandlerAnswer::ack;
                       },
                       {.handlers = 1});
  if (!subscriber || !undertaker) return 1;
  if (!drains) {
    std::vector<std::thread> publishers;
    for (int number = 0; number < kPublishers; ++number)
      publishers.emplace_back([&, number] { publish_for_ever(broker, log, cycle, number); });
    for (std::thread& publisher : publishers)
      publisher.join();
  }
  while (!is_empty(broker))
    std::this_thread::yield();
  return 0;
}

}  // namespace
}  // namespace ordo

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "broker_child DIRECTORY LOG CYCLE load|drain\n");
    return 2;
  }
  return ordo::run(argv[1], argv[2], argv[3], std::string(argv[4]) == "drain");
}

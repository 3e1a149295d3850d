// A program of somebody else: it includes Ordo as installed, never the source tree.
#include <chrono>
#include <iostream>
#include <memory>
#include <string>

#include <ordo/broker.h>
#include <ordo/broker/store_memory.h>

int main() {
  const std::string topic = "projects/p/topics/letters";
  const std::string subscription = "projects/p/subscriptions/words";
  auto store = std::make_unique<ordo::broker::MemoryStore>(
      std::make_shared<ordo::broker::MemoryDisk>(), nullptr);
  auto opened = ordo::Broker::open(std::move(store));
  if (!opened) return 1;
  ordo::Broker& broker = **opened;
  ordo::broker::SubscriptionConfig ordered;
  ordered.name = subscription;
  ordered.topic = topic;
  ordered.enable_message_ordering = true;
  if (!broker.create_topic({.name = topic}) || !broker.create_subscription(ordered)) return 1;
  for (const std::string letter : {"a", "b", "c"}) {
    if (!broker.publish(topic, {{.data = letter, .ordering_key = "word"}})) return 1;
  }
  std::string word;
  while (word.size() < 3) {
    const auto pulled = broker.pull(subscription, {.wait = std::chrono::seconds(30)});
    if (!pulled || pulled->empty()) return 1;
    for (const ordo::ReceivedMessage& message : *pulled) {
      word += message.data();
      if (!broker.acknowledge(subscription, {message.ack_id()})) return 1;
    }
  }
  std::cout << word << '\n';
  return word == "abc" ? 0 : 1;
}

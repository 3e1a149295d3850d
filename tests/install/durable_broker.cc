// A program of somebody else: what it has published is there when it starts again.
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <unistd.h>

#include <ordo/adapters/store_rocksdb/open_broker.h>

namespace {

const std::string kTopic = "projects/p/topics/letters";
const std::string kSubscription = "projects/p/subscriptions/words";

bool publish(const std::string& directory) {
  auto broker = ordo::open_broker(directory);
  if (!broker) return false;
  ordo::broker::SubscriptionConfig ordered;
  ordered.name = kSubscription;
  ordered.topic = kTopic;
  ordered.enable_message_ordering = true;
  return (*broker)->create_topic({.name = kTopic}) && (*broker)->create_subscription(ordered) &&
         (*broker)->publish(kTopic, {{.data = "a", .ordering_key = "word"},
                                     {.data = "b", .ordering_key = "word"}});
}

std::string receive(const std::string& directory) {
  auto broker = ordo::open_broker(directory);
  std::string word;
  while (broker && word.size() < 2) {
    const auto pulled = (*broker)->pull(kSubscription);
    if (!pulled || pulled->empty()) break;
    for (const ordo::ReceivedMessage& message : *pulled) {
      word += message.data();
      if (!(*broker)->acknowledge(kSubscription, {message.ack_id()})) return "";
    }
  }
  return word;
}

}  // namespace

int main() {
  const std::string directory =
      (std::filesystem::temp_directory_path() / ("ordo_installed_" + std::to_string(::getpid())))
          .string();
  const std::string word = publish(directory) ? receive(directory) : "";
  std::filesystem::remove_all(directory);
  std::filesystem::remove(directory + ".witness");
  std::cout << word << '\n';
  return word == "ab" ? 0 : 1;
}

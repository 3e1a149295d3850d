// The broker in a program of your own, without a network: orders are published, one handler books
// them. What one customer does stays in order, also when a booking fails and is tried again; what
// was published is still there when the program is started the next time.
#include <atomic>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>

#include <ordo/broker.h>

// tidy: allow(layering) the store that keeps it on disk is an adapter, which is not installed
#include "ordo/adapters/store_rocksdb/open_broker.h"

namespace {

const std::string kTopic = "projects/shop/topics/orders";
const std::string kBooking = "projects/shop/subscriptions/booking";

int fail(const ordo::Error& error) {
  std::cerr << error_code_name(error.code) << ": " << error.message << '\n';
  return 1;
}

// The first life: a topic, a subscription that keeps order, and some orders.
int publish(const std::string& directory) {
  auto broker = ordo::open_broker(directory);
  if (!broker) return fail(broker.error());
  if (auto topic = (*broker)->create_topic({.name = kTopic}); !topic) return fail(topic.error());
  ordo::broker::SubscriptionConfig booking{.name = kBooking, .topic = kTopic};
  booking.enable_message_ordering = true;
  if (auto made = (*broker)->create_subscription(booking); !made) return fail(made.error());

  auto publisher = (*broker)->publisher(kTopic);
  if (!publisher) return fail(publisher.error());
  std::atomic<int> stored = 0;
  for (const char* const what : {"cart", "pay", "ship"}) {
    for (const char* const customer : {"ann", "bob"}) {
      publisher->publish({.data = what, .ordering_key = customer},
                         [&](const auto& id) { stored += id ? 1 : 0; });
    }
  }
  publisher->close(ordo::TimePoint::max());
  std::cout << stored << " orders on disk\n";
  return 0;
}

// The second life: what was not booked yet is.
int book(const std::string& directory) {
  auto broker = ordo::open_broker(directory);
  if (!broker) return fail(broker.error());
  std::mutex mutex;
  std::map<std::string, std::string> booked;
  bool has_failed = false;
  std::atomic<int> count = 0;
  auto subscriber = (*broker)->subscribe(kBooking, [&](const ordo::ReceivedMessage& order) {
    const std::lock_guard lock(mutex);
    std::string& line = booked[std::string(order.key())];
    if (order.key() == "bob" && order.data() == "pay" && !has_failed) {
      has_failed = true;
      line += " (pay failed)";
      return ordo::HandlerAnswer::nack;  // It comes again, before anything else of bob's.
    }
    line.append(" ").append(order.data());
    ++count;
    return ordo::HandlerAnswer::ack;
  });
  if (!subscriber) return fail(subscriber.error());
  while (count < 6)
    std::this_thread::yield();
  subscriber->close(ordo::CloseHow::drain, ordo::TimePoint::max());
  for (const auto& [customer, line] : booked)
    std::cout << customer << ":" << line << '\n';
  const auto left = (*broker)->subscription_stats(kBooking);
  std::cout << (left ? left->waiting + left->unread + left->leased : 1) << " left\n";
  return 0;
}

}  // namespace

int main() {
  const std::filesystem::path directory = std::filesystem::temp_directory_path() /
                                          ("ordo_embedded_broker_" + std::to_string(::getpid()));
  const auto forget = [&] {
    std::filesystem::remove_all(directory);
    std::filesystem::remove(directory.string() + ".witness");
  };
  forget();
  const int published = publish(directory);
  const int status = published != 0 ? published : book(directory);
  forget();
  return status;
}

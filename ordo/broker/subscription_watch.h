// SubscriptionWatch: tells somebody of the subscriptions of a broker, as long as it lives.
//
//   Result<broker::SubscriptionWatch> watch = broker.watch_subscriptions(
//       [&](const std::string& name, const broker::SubscriptionConfig* config) {
//     config == nullptr ? forget(name) : look_at(*config);
//   });
//
// First every subscription there is, then each that is made, changed, detached or deleted (config:
// null); also some that have not changed.
//
// Threads: the watcher is called by the catalog's thread, one call at a time and in order. It must
//          not block, nor make calls of the broker that wait. The watch has one owner; once it is
//          destroyed no call runs or comes.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "ordo/broker/config.h"

namespace ordo::broker {

using SubscriptionWatcher =
    std::function<void(const std::string& name, const SubscriptionConfig* config)>;

class SubscriptionWatch {
 public:
  SubscriptionWatch() = default;  // Watches nothing.
  explicit SubscriptionWatch(std::function<void()> stop) : stop_(std::move(stop)) {}
  SubscriptionWatch(SubscriptionWatch&& other) noexcept : stop_(std::exchange(other.stop_, {})) {}
  SubscriptionWatch& operator=(SubscriptionWatch&& other) noexcept {
    if (this != &other) {
      stop();
      stop_ = std::exchange(other.stop_, {});
    }
    return *this;
  }
  ~SubscriptionWatch() { stop(); }

 private:
  void stop() {
    if (const auto stop = std::exchange(stop_, {})) stop();
  }

  std::function<void()> stop_;
};

}  // namespace ordo::broker

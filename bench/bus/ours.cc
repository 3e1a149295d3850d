#include <chrono>
#include <string>
#include <vector>

#include "bench/bus/fan_out.h"
#include "ordo/bus.h"

namespace ordo::bench {
namespace {

class OrdoBus final : public FanOut {
 public:
  OrdoBus(std::size_t subscribers, bool mixed)
      : bus_({.critical_timeout = std::chrono::nanoseconds(0)}) {
    for (std::size_t i = 0; i < subscribers; ++i) {
      const auto priority = mixed ? static_cast<Priority>(i % 4) : Priority::normal;
      subscriptions_.push_back(
          bus_.subscribe(std::to_string(i), priority, {.capacity = kCapacity}));
    }
  }

  std::size_t publish(const Payload& payload) override { return bus_.publish(payload).sent; }
  std::size_t drain(std::size_t subscriber) override {
    std::size_t count = 0;
    while (subscriptions_[subscriber].try_pop())
      ++count;
    return count;
  }
  bool pop(std::size_t subscriber) override { return subscriptions_[subscriber].pop().has_value(); }
  void close() override { bus_.close(); }

 private:
  Bus<Payload> bus_;
  std::vector<Subscription<Payload>> subscriptions_;
};

}  // namespace

std::unique_ptr<FanOut> make_ordo(std::size_t subscribers) {
  return std::make_unique<OrdoBus>(subscribers, true);
}
std::unique_ptr<FanOut> make_ordo_equal(std::size_t subscribers) {
  return std::make_unique<OrdoBus>(subscribers, false);
}

}  // namespace ordo::bench

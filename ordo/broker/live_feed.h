// LiveFeed: the messages of a topic as they come in, for those who want the newest only.
//
//   LiveFeed feed({.bytes_max = 16 << 20}, clock);
//   LiveSubscription view = feed.subscribe("dashboard", Priority::best_effort, 64);
//   feed.offer(message);                       // the partitions, once a message is stored
//   while (auto message = view.pop()) show((*message)->key());
//
// Over ordo::Bus: nothing is stored for a live subscription, it has no acknowledgements, and it
// never holds anybody up. Under pressure the least important are shed first, and counted.
//
// Threads: any, all calls.
// Bounds:  256 subscriptions, the capacity of each, bytes_max over all.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "ordo/broker/message.h"
#include "ordo/bus/bus.h"
#include "ordo/core/result.h"

namespace ordo::broker {

struct LiveFeedOptions {
  std::size_t bytes_max = 16u << 20;  // Of all messages that wait for live subscriptions.
  std::function<double()> load{};     // 0 to 1: how hard the broker is pressed for memory.
  Clock* clock = nullptr;
};

class LiveFeed : public std::enable_shared_from_this<LiveFeed> {
 public:
  explicit LiveFeed(const LiveFeedOptions& options) : bus_(bus_options(options)) {}

  bool has_subscribers() const { return count_.load(std::memory_order_relaxed) > 0; }
  void offer(const Message& message) { (void)bus_.publish(message); }
  void close() { bus_.close(); }
  BusStats stats() const { return bus_.stats(); }

 private:
  friend class LiveSubscription;

  static BusOptions<Message> bus_options(const LiveFeedOptions& options) {
    BusOptions<Message> bus;
    bus.critical_timeout = std::chrono::nanoseconds(0);  // A partition waits for nobody.
    bus.bytes_max = options.bytes_max;
    bus.frame_bytes = [](const Message& message) { return message.size(); };
    bus.load = options.load;
    bus.clock = options.clock;
    return bus;
  }

  Bus<Message> bus_;
  std::atomic<std::size_t> count_{0};
};

// One's own end of it. Movable; destroying it unsubscribes.
class LiveSubscription {
 public:
  LiveSubscription() = default;
  LiveSubscription(LiveSubscription&& other) noexcept = default;
  LiveSubscription& operator=(LiveSubscription&& other) noexcept {
    if (this != &other) {
      leave();
      feed_ = std::move(other.feed_);
      subscription_ = std::move(other.subscription_);
    }
    return *this;
  }
  ~LiveSubscription() { leave(); }

  // Errors: already_exists, invalid_argument, resource_exhausted.
  static Result<LiveSubscription> open(std::shared_ptr<LiveFeed> feed, const std::string& name,
                                       Priority priority, const SubscribeOptions& options) {
    if (options.overflow == Overflow::block)
      return Error{ErrorCode::invalid_argument, "A live subscription cannot block publishers."};
    try {
      LiveSubscription live;
      live.subscription_ = feed->bus_.subscribe(name, priority, options);
      feed->count_.fetch_add(1);
      live.feed_ = std::move(feed);
      return live;
    } catch (const std::invalid_argument& error) {
      return Error{ErrorCode::invalid_argument, error.what()};
    }
  }

  // The next message; waits. Nothing: the broker or the topic is gone, and nothing is left.
  std::optional<FrameRef<Message>> pop() { return subscription_.pop(); }
  std::optional<FrameRef<Message>> try_pop() { return subscription_.try_pop(); }
  std::optional<FrameRef<Message>> pop_for(std::chrono::nanoseconds span) {
    return subscription_.pop_for(span);
  }

 private:
  void leave() {
    subscription_.unsubscribe();
    if (feed_) feed_->count_.fetch_sub(1);
    feed_.reset();
  }

  std::shared_ptr<LiveFeed> feed_;
  ordo::Subscription<Message> subscription_;
};

}  // namespace ordo::broker

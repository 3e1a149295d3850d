// Bus: one publisher's frame to many subscribers; under overload the least important lose first.
//
//   ordo::Bus<Frame> bus;
//   auto person = bus.subscribe("person-detector", ordo::Priority::critical, {.capacity = 5});
//   auto pose = bus.subscribe("pose-model", ordo::Priority::best_effort);
//
//   ordo::PublishResult result = bus.publish(frame);         // any thread: sent, dropped, closed
//   while (auto frame = person.pop()) detect(**frame);       // any thread; ends when bus is closed
//
// A frame is shared, not copied, per subscriber: what pop() gives is one of its owners. How load is
// shed: docs/bus.md and roster.h. Every frame offered to a subscriber is counted, as sent or as
// dropped. Each subscriber sees the frames of each publishing thread in the order published.
//
// Threads: any, all calls, for as long as the bus exists; subscriptions may outlive it. A frame's
//          constructors and destructor and the functions of the options must not call the bus.
// Bounds:  256 subscribers; the capacity of each; with bytes_max a budget for all. publish() waits
//          for critical_timeout at most, except for a subscriber with Overflow::block.
// Cost:    publish(): some 60 ns and the frame's allocation, whatever the number of subscribers,
//          while no queue is near its watermark; then up to 5 ns for each. No allocation but the
//          frame's, and not even that while all queues stay full. Idle: nothing.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ordo/bus/core.h"
#include "ordo/bus/frame.h"
#include "ordo/bus/options.h"
#include "ordo/bus/settings.h"

namespace ordo {

template <class Frame>
class Bus;

// One subscriber's end of a bus. Movable; destroying it unsubscribes.
//
// Threads: any may pop, and share the frames; moving and destroying is for one owner, while nobody
//          begins to pop. Who waits in pop() already is woken, and gets nothing.
template <class Frame>
class Subscription {
 public:
  Subscription() = default;
  Subscription(Subscription&&) noexcept = default;
  Subscription& operator=(Subscription&& other) noexcept {
    if (this != &other) {
      unsubscribe();
      core_ = std::move(other.core_);
      subscriber_ = std::move(other.subscriber_);
    }
    return *this;
  }
  ~Subscription() { unsubscribe(); }

  // The next frame. Waits for it; nothing when the bus is closed and the queue is empty, and after
  // unsubscribe.
  std::optional<FrameRef<Frame>> pop() { return pop_until(TimePoint::max()); }
  // The next frame if there is one now, or within `span`.
  std::optional<FrameRef<Frame>> try_pop() {
    return core_ ? wrap(core_->try_pop(*subscriber_)) : std::nullopt;
  }
  std::optional<FrameRef<Frame>> pop_for(std::chrono::nanoseconds span) {
    return core_ ? pop_until(bus::saturating_add(core_->clock().now(), span)) : std::nullopt;
  }

  // From now on the bus offers it nothing, and pop() gives nothing; what was queued is discarded.
  void unsubscribe() {
    if (core_) core_->unsubscribe(*subscriber_);
  }

  // Empty after a move.
  std::string id() const { return subscriber_ ? subscriber_->id() : std::string(); }

 private:
  friend class Bus<Frame>;

  Subscription(std::shared_ptr<bus::BusCore> core, std::shared_ptr<bus::Subscriber> subscriber)
      : core_(std::move(core)),
        subscriber_(std::move(subscriber)) {}

  static std::optional<FrameRef<Frame>> wrap(bus::FrameNode* frame) {
    if (frame == nullptr) return std::nullopt;
    return FrameRef<Frame>(frame);
  }
  std::optional<FrameRef<Frame>> pop_until(TimePoint deadline) {
    if (auto frame = try_pop()) return frame;
    // Who waits must outlast this subscription: destroying it is one of the ways to end the wait.
    const std::shared_ptr<bus::BusCore> core = core_;
    const std::shared_ptr<bus::Subscriber> subscriber = subscriber_;
    return core ? wrap(core->pop(*subscriber, deadline)) : std::nullopt;
  }

  std::shared_ptr<bus::BusCore> core_;
  std::shared_ptr<bus::Subscriber> subscriber_;
};

template <class Frame>
class Bus {
 public:
  using Options = BusOptions<Frame>;

  // Throws std::invalid_argument, naming the option, for bad options.
  explicit Bus(Options options = {})
      : core_(std::make_shared<bus::BusCore>(bus::make_settings(options))),
        frame_bytes_(std::move(options.frame_bytes)) {}
  // Closes.
  ~Bus() {
    if (core_) core_->close();
  }
  Bus(Bus&&) noexcept = default;
  Bus& operator=(Bus&& other) noexcept {
    if (core_ && this != &other) core_->close();
    core_ = std::move(other.core_);
    frame_bytes_ = std::move(other.frame_bytes_);
    return *this;
  }

  // From now on every frame is offered to it. Throws std::invalid_argument for an id that is taken,
  // an unknown priority or policy, a capacity of 0, and one subscriber too many.
  [[nodiscard]] Subscription<Frame> subscribe(const std::string& id,
                                              Priority priority = Priority::normal,
                                              const SubscribeOptions& options = {}) {
    return Subscription<Frame>(core_, core_->subscribe(id, priority, options));
  }
  // Nothing is delivered to it any more, queued frames included, once this has returned.
  // Throws std::invalid_argument when nobody has this id.
  void unsubscribe(const std::string& id) { core_->unsubscribe(id); }

  // Offers the frame to every subscriber. Everybody who can take it at once has it before anybody
  // is waited for. With a deadline (of the bus's clock): does not wait past it; past it already,
  // the frame is shed as if all but the critical were best effort, and nobody is waited for.
  PublishResult publish(
      const Frame& frame,
      std::optional<TimePoint> deadline = std::nullopt) requires std::copy_constructible<Frame> {
    return publish_made([&] { return FrameRef<Frame>::make(frame); }, deadline);
  }
  PublishResult publish(Frame&& frame, std::optional<TimePoint> deadline = std::nullopt) {
    return publish_made([&] { return FrameRef<Frame>::make(std::move(frame)); }, deadline);
  }
  // Shares a frame that exists. Throws std::invalid_argument for one that was moved from.
  PublishResult publish(const FrameRef<Frame>& frame,
                        std::optional<TimePoint> deadline = std::nullopt) {
    if (frame.node_ == nullptr) bus::require(false, "frame was moved from: there is nothing in it");
    return publish_made([&] { return frame; }, deadline);
  }

  // No more frames; those already queued can still be popped. Wakes everybody. Idempotent.
  void close() { core_->close(); }

  BusStats stats() const { return core_->stats(); }
  // Throws std::invalid_argument when nobody has this id.
  Health health(const std::string& id) const { return core_->health(id); }
  // Ids of those that are degraded or saturated.
  std::vector<std::string> unhealthy() const { return core_->unhealthy(); }

 private:
  template <class Make>
  PublishResult publish_made(Make make, std::optional<TimePoint> deadline) {
    struct Context {
      Make& make;
      const Bus& self;
    } context{make, *this};
    const auto call = [](void* opaque) {
      auto& given = *static_cast<Context*>(opaque);
      FrameRef<Frame> frame = given.make();
      if (given.self.frame_bytes_) frame.node_->set_size(given.self.frame_bytes_(*frame));
      return std::exchange(frame.node_, nullptr);
    };
    return core_->publish({call, &context}, deadline);
  }

  std::shared_ptr<bus::BusCore> core_;
  std::function<std::size_t(const Frame&)> frame_bytes_;
};

}  // namespace ordo

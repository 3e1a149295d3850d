// Pull: messages of a subscription, once: those that there are, or the first that come.
//
//   ordo::Result<ordo::Pull> pull = broker.start_pull(subscription, {.messages_max = 10},
//       [](ordo::Result<std::vector<ordo::ReceivedMessage>> got) { send(got); });
//   ...
//   pull->cancel();            // whoever asked has gone
//
// It ends when it has messages_max, when there are some and no partition is about to deliver
// more, or when its time is over; then the callback is called. Destroying a Pull changes nothing.
//
// Threads: any, all calls. The callback is called once, by a thread of the broker or by this one,
//          perhaps before start_pull() returns; it must be short.
// Bounds:  PullOptions.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "ordo/broker/consumer_desk.h"
#include "ordo/broker/received_message.h"
#include "ordo/core/clock.h"
#include "ordo/core/result.h"
#include "ordo/runtime/timer.h"

namespace ordo {

struct PullOptions {
  std::size_t messages_max = 100;
  std::size_t bytes_max = 8u << 20;  // One message may overshoot.
  // How long it waits for the first message. Zero: it takes what there is.
  std::chrono::nanoseconds wait = std::chrono::seconds(90);
};

// Errors: data_loss: all it would have got is not what was published; it is kept back, and the next
// pull gets others. cancelled: by cancel(). Else why the subscription cannot be consumed any more.
using OnPulled = std::function<void(Result<std::vector<ReceivedMessage>>)>;

namespace broker {

// What a pull has got so far.
class PullDesk : public std::enable_shared_from_this<PullDesk> {
 public:
  PullDesk(const PullOptions& options, OnPulled on_pulled, Timer& timer)
      : messages_max_(options.messages_max),
        is_patient_(options.wait > std::chrono::nanoseconds(0)),
        timer_(timer),
        on_pulled_(std::move(on_pulled)) {}
  PullDesk(const PullDesk&) = delete;
  PullDesk& operator=(const PullDesk&) = delete;

  // Of its consumer, which is handed over when it is there; they may come before.
  ConsumerEvents events();
  void begin(std::shared_ptr<ConsumerDesk> consumer, TimePoint deadline);

  void cancel();

 private:
  void deliver(std::vector<Delivery>&& deliveries);
  // REQUIRES: mutex_ is held.
  bool is_done() const;
  void end_if_done();
  void finish();

  const std::size_t messages_max_;
  const bool is_patient_;
  Timer& timer_;

  std::mutex mutex_;  // Guards all below.
  OnPulled on_pulled_;
  std::shared_ptr<ConsumerDesk> consumer_;  // From begin() to the end.
  TimerId timer_id_ = TimerId::none;
  std::vector<ReceivedMessage> messages_;
  std::optional<Error> error_;
  std::optional<Error> damage_;  // A message was kept back.
  bool is_quiet_ = false;        // Nobody is about to deliver more.
  bool is_time_up_ = false;
  bool is_cancelled_ = false;
  bool is_ending_ = false;    // The consumer is being closed ...
  bool is_released_ = false;  // ... because of cancel().
};

}  // namespace broker

class Pull {
 public:
  Pull() = default;
  // `broker` is what the consumer needs to be there.
  Pull(std::shared_ptr<broker::PullDesk> desk, std::shared_ptr<const void> broker)
      : broker_(std::move(broker)),
        desk_(std::move(desk)) {}

  // Ends it now. What was delivered is given back, and does not count as failed; the callback gets
  // `cancelled`, unless the pull was about to end by itself.
  void cancel() const {
    if (desk_) desk_->cancel();
  }

 private:
  std::shared_ptr<const void> broker_;
  std::shared_ptr<broker::PullDesk> desk_;
};

}  // namespace ordo

// Stream: an open consumer of a subscription at the lowest level: batches in, answers out.
//
//   ordo::Result<ordo::Stream> stream = broker.open_stream(subscription, {.messages_max = 1000}, {
//       .deliver = [&](std::vector<broker::Delivery>&& batch) { send(batch); },
//       .closed = [&](const Error& why) { end(why); }});
//   stream->acknowledge({ack_id});
//   stream->close(broker::CloseConsumer::How::died);
//
// What a wire front and Subscriber are made of. Destroying it closes it; leases then run on.
//
// Threads: any, all calls. Events come by the partitions' threads, as in consumer_desk.h; none
//          after `after` of close() was called.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "ordo/broker/consumer_desk.h"
#include "ordo/broker/settlement.h"

namespace ordo {

class Stream {
 public:
  Stream() = default;  // No stream: closed already.
  // `broker` is what the consumer needs to be there.
  Stream(std::shared_ptr<broker::ConsumerDesk> consumer, std::shared_ptr<const void> broker)
      : broker_(std::move(broker)),
        consumer_(std::move(consumer)) {}
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&& other) noexcept {
    if (this != &other) {
      close();
      consumer_ = std::move(other.consumer_);
      broker_ = std::move(other.broker_);
    }
    return *this;
  }
  ~Stream() { close(); }

  // With a callback: called when the outcome is durable. Without: nobody waits for it.
  void acknowledge(std::vector<broker::AckId> ids, broker::OnSettled on_settled = {}) const {
    broker::acknowledge(consumer_->hosts(), consumer_->subscription(), std::move(ids),
                        std::move(on_settled));
  }
  void modify_ack_deadline(std::vector<broker::AckId> ids, std::chrono::nanoseconds deadline,
                           broker::OnSettled on_settled = {}) const {
    broker::modify_deadline(consumer_->hosts(), consumer_->subscription(), std::move(ids), deadline,
                            std::move(on_settled));
  }
  // A nack. The last `unseen` were handed to nobody: that is no failed attempt.
  void give_back(std::vector<broker::AckId> ids, std::size_t unseen,
                 broker::OnSettled on_settled = {}) const {
    broker::give_back(consumer_->hosts(), consumer_->subscription(), std::move(ids), unseen,
                      std::move(on_settled));
  }

  // No more deliveries, while acknowledgements still count. What becomes of leases is the
  // caller's choice. `after` is called once no event will come any more. Idempotent.
  void close(broker::CloseConsumer::How how = broker::CloseConsumer::How::keep_leases,
             std::function<void()> after = {}) {
    if (consumer_) {
      consumer_->close(how, std::move(after));
    } else if (after) {
      after();
    }
  }

  // So many messages may be outstanding from now on; 0: none more. What is on its way still comes.
  // REQUIRES: it was opened, with a limit of messages.
  void limit_messages(std::int64_t messages) const { consumer_->limit_messages(messages); }

  // Of what is delivered from now on; leases that there are keep theirs.
  // REQUIRES: it was opened; 1 to 600 seconds.
  void set_ack_deadline(std::chrono::nanoseconds ack_deadline) const {
    consumer_->set_ack_deadline(ack_deadline);
  }

  std::int64_t leased_messages() const { return consumer_ ? consumer_->leased_messages() : 0; }

 private:
  std::shared_ptr<const void> broker_;
  std::shared_ptr<broker::ConsumerDesk> consumer_;
};

}  // namespace ordo

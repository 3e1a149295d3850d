// PullStream: one StreamingPull: what waits to be sent to its client, and what comes of it.
//
//   auto stream = std::make_shared<PullStream>(core, call);
//   if (Status opened = stream->open(first_request); !opened) return call->finish(opened.error());
//   stream->settle(request);           // acks and deadlines of a later request
//   stream->end_round();               // all requests that came together were settled
//   stream->pump();                    // the call can take more
//   stream->leave();                   // the client has gone
//
// Deliveries, confirmations and answers to pings are sent in responses of 1,000 messages or 1 MiB
// at most, in the order in which they came, while the call takes them. Whoever adds something
// sends, unless somebody does already; then that one sends it too. What is added while requests
// that came together are settled is sent when all of them are: clients that answer each response
// by a request would else be given one message at a time. What waits longer than its lease
// is dropped: the broker gives it to somebody else. What waits when the client goes is given back:
// nobody has seen it.
//
// Threads: deliveries, confirmations and end(): any; all else on the call's I/O thread.
// Bounds:  deliveries: the limits that the client has set, and the broker's own of leases; ids that
//          wait to be confirmed, until the call has taken that: kUnconfirmedMax and one request,
//          then no more is read.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/adapters/pubsub_wire/requests.h"
#include "ordo/adapters/pubsub_wire/service_core.h"
#include "ordo/adapters/pubsub_wire/settle.h"

namespace ordo::pubsub_wire {

class PullStream final : public OpenCall, public std::enable_shared_from_this<PullStream> {
 public:
  static constexpr std::size_t kResponseMessagesMax = 1'000;
  static constexpr std::size_t kResponseBytesMax = std::size_t{1} << 20;
  static constexpr std::size_t kResponseConfirmationsMax = 5'000;
  static constexpr std::size_t kUnconfirmedMax = 20'000;

  PullStream(CorePtr core, http2::CallPtr call);
  ~PullStream() override;

  // Once. `request` has been checked.
  Status open(const StreamRequest& request);
  // Error: the stream has to end with it.
  Status settle(const StreamRequest& request);
  // Of what is delivered from now on. REQUIRES: it is open.
  void set_deadline(std::chrono::seconds lease);
  void end_round();
  // Answered by the next response.
  void owe_answer();
  void pump();
  // The consumer is closed; nothing is sent any more.
  void leave();

  // The last word of the call, unless it was said.
  void end(const Error& reason) override;

 private:
  struct Waiting {
    broker::Delivery delivery;
    TimePoint expires;
  };
  struct Confirmation {
    std::string ack_id;
    broker::SettleOutcome outcome;
    bool is_ack = false;

    std::size_t weight() const { return weight_of(ack_id); }
  };
  // What one response takes.
  struct Load {
    std::vector<Waiting> deliveries;
    std::vector<Confirmation> confirmations;
    bool is_answer = false;  // To a ping.

    bool empty() const { return deliveries.empty() && confirmations.empty() && !is_answer; }
  };

  // One for each id; what is longer than any of ours counts by its length.
  static std::size_t weight_of(std::string_view ack_id) { return 1 + ack_id.size() / 64; }

  void begin_round();
  void deliver(std::vector<broker::Delivery>&& deliveries);
  Status acknowledge(const std::vector<std::string_view>& texts, bool is_exactly_once);
  Status modify(const StreamRequest& request, bool is_exactly_once);
  // Calls when the outcome is to be confirmed.
  broker::OnSettled confirm(const ReadIds& read, bool is_ack);
  void hold_input();
  void add_confirmations(std::vector<Confirmation>&& confirmations);

  // REQUIRES: mutex_ is held.
  Load take_load(TimePoint now);
  void put_back(Load&& load);
  void drop_expired(TimePoint now);
  // True: input was held, and no longer has to be.
  bool note_confirmed(const Load& load);
  bool has_output() const {
    return !waiting_.empty() || !confirmations_.empty() || answers_owed_ > 0;
  }

  std::vector<http2::Slice> response_of(const Load& load) const;

  const CorePtr core_;
  const http2::CallPtr call_;

  // The I/O thread's. The name is set before the stream is opened.
  Stream stream_;
  std::string subscription_;

  std::mutex mutex_;  // Guards all below.
  std::chrono::nanoseconds lease_{};
  std::deque<Waiting> waiting_;
  std::deque<Confirmation> confirmations_;
  std::size_t unconfirmed_ = 0;     // The weight of ids whose outcome the call has not taken.
  std::uint64_t answers_owed_ = 0;  // To pings.
  bool is_input_held_ = false;
  bool is_in_round_ = false;  // Nothing is sent before its end.
  bool is_pumping_ = false;
  bool is_ended_ = false;  // Nothing is sent any more.
  bool has_left_ = false;  // Nothing waits any more, either.
};

}  // namespace ordo::pubsub_wire

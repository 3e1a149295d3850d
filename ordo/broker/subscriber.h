// Subscriber: calls a handler for every message of a subscription, and settles what it answers.
//
//   auto subscriber = broker.subscribe("projects/p/subscriptions/s", [](const ReceivedMessage& m) {
//     store(m.key(), m.data());
//     return ordo::HandlerAnswer::ack;          // nack, or an exception: it comes again, in place
//   });
//   ...
//   subscriber->close(ordo::CloseHow::drain, clock.now() + 5s);
//
// Or answered later, from any thread, with a handle; one that is dropped unused is a nack:
//
//   broker.subscribe_async(name, [](const ReceivedMessage& m, ordo::AckHandle handle) {
//     write(m, [handle](bool ok) { ok ? handle.ack() : handle.nack(); });
//   });
//
// Handlers of one ordering key of an ordered subscription run one at a time, in order; others side
// by side on `handlers` threads. While a message is with its handler, or waits here for its turn,
// its deadline is extended, up to extension_max. After a nack, or when a lease is lost, nothing of
// its key that was delivered behind it is handled before it came again (handler_desk.h).
//
// Threads: owns `handlers`. All calls: any thread; close() and the destructor not from a handler.
// Bounds:  outstanding_messages_max and outstanding_bytes_max (one message may overshoot).
// Errors:  a handler's exception is a nack, and counted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "ordo/broker/received_message.h"
#include "ordo/broker/stream.h"
#include "ordo/core/clock.h"
#include "ordo/core/result.h"
#include "ordo/runtime/timer.h"

namespace ordo {

enum class HandlerAnswer : std::uint8_t { ack, nack };

// What becomes of messages that were delivered and not handled when a subscriber closes.
enum class CloseHow : std::uint8_t {
  drain,  // They are handled, until the deadline, and acks that are to be confirmed are.
  nack,   // They are given back at once, which is no failed attempt of those that no handler has
          // seen; handlers that have begun are waited for.
};

struct SubscriberOptions {
  std::size_t handlers = 4;  // Threads; 1 to 256.
  std::size_t outstanding_messages_max = 1'000;
  std::size_t outstanding_bytes_max = 64u << 20;
  std::optional<std::chrono::nanoseconds> ack_deadline{};  // The subscription's, if none.
  // A message is not kept longer than this, however long its handler takes. Zero: no extension.
  std::chrono::nanoseconds extension_max = std::chrono::hours(1);
  bool confirm_acks = false;  // Acknowledgements of handlers are waited for, so that stats() knows
                              // those that did not count.
  std::function<void(const Error&)> on_closed{};  // The subscription was deleted or detached.
};

// invalid_argument naming the field, or nothing.
Status check_options(const SubscriberOptions& options);

struct SubscriberCounts {
  std::uint64_t received = 0;
  std::uint64_t acked = 0;
  std::uint64_t nacked = 0;      // By answers, exceptions, dropped handles, and at the end.
  std::uint64_t threw = 0;       // Of them, exceptions.
  std::uint64_t stale_acks = 0;  // Did not count; all are known with confirm_acks.
  std::uint64_t extensions = 0;  // Deadlines extended.
  std::uint64_t skipped = 0;     // Not handled, since one before it of its key was nacked, or its
                                 // lease was lost: it comes again.
  std::size_t outstanding = 0;   // Received and not settled.
};

namespace broker {
class SubscriberCore;
struct Held;
}  // namespace broker

// Settles one delivery, once; the first call counts. Copies share it.
class AckHandle {
 public:
  AckHandle() = default;
  AckHandle(std::shared_ptr<broker::SubscriberCore> core, std::shared_ptr<broker::Held> held);

  // False: it was settled before, or the subscriber has ended. `done`, if given, hears whether the
  // acknowledgement is durable: failed_precondition if it came too late.
  bool ack(std::function<void(Status)> done = {}) const;
  bool nack() const;

 private:
  struct Hold;
  std::shared_ptr<Hold> hold_;
};

using Handler = std::function<HandlerAnswer(const ReceivedMessage&)>;
using AsyncHandler = std::function<void(const ReceivedMessage&, AckHandle)>;

class Subscriber {
 public:
  explicit Subscriber(std::shared_ptr<broker::SubscriberCore> core) : core_(std::move(core)) {}
  Subscriber(Subscriber&&) noexcept = default;
  Subscriber& operator=(Subscriber&& other) noexcept;
  ~Subscriber();  // close(nack), and waits for handlers that have begun.

  // Ends deliveries, and settles or gives back what is here. False: handlers had not answered by
  // the deadline, and their messages come again; or, with drain, an ack was not confirmed by then
  // (AckHandle::ack(done), confirm_acks). Idempotent.
  bool close(CloseHow how, TimePoint deadline);

  SubscriberCounts stats() const;

 private:
  std::shared_ptr<broker::SubscriberCore> core_;
};

}  // namespace ordo

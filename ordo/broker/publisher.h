// Publisher: gathers messages into batches, one key at a time in order, and waits when there is
// too much under way.
//
//   ordo::Publisher publisher = *broker.publisher("projects/p/topics/t");
//   publisher.publish({.data = "1", .ordering_key = "user-1"}, [](ordo::Result<MessageId>) {...});
//   publisher.publish({.data = "2", .ordering_key = "user-1"});       // -> std::future
//   publisher.flush();
//
// A batch of a key is sent when it is full or old enough, and when the one before it was answered;
// so what is stored of a key is always a beginning of what was published. When a publish of a key
// fails, everything of that key behind it fails too, and so does whatever is published of it until
// resume_publish(key): the caller decides whether to begin again. Messages without a key are
// batched together and do not wait for each other.
//
// Flow control: publish() waits (or, with WhenFull::error, refuses) while as much is under way as
// may be. Who came first goes first, whatever the sizes: a small message never overtakes a large
// one. A refused message with a key pauses its key, like a failed one.
//
// Threads: any, all calls. Callbacks are called by a thread of the broker or by one inside
//          publish(); they must be short, must not throw, and may publish with WhenFull::error
//          only.
// Bounds:  outstanding_messages_max, outstanding_bytes_max; a message that is larger goes alone.
// Errors:  what the broker answers; failed_precondition: its key is paused; resource_exhausted: no
//          room (WhenFull::error); cancelled: closed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "ordo/broker/message_codec.h"
#include "ordo/core/clock.h"
#include "ordo/core/result.h"
#include "ordo/runtime/timer.h"

namespace ordo {

struct PublisherOptions {
  enum class WhenFull : std::uint8_t { block, error };

  std::size_t batch_messages_max = 100;  // 1 to 1,000. 1: no batching.
  std::size_t batch_bytes_max = 1u << 20;
  std::chrono::nanoseconds batch_delay_max = std::chrono::milliseconds(10);
  std::size_t outstanding_messages_max = 10'000;  // Taken in and not answered.
  std::size_t outstanding_bytes_max = 64u << 20;
  WhenFull when_full = WhenFull::block;
};

// invalid_argument naming the field, or nothing.
Status check_options(const PublisherOptions& options);

struct PublisherStats {
  std::uint64_t published = 0;  // Answered with an id.
  std::uint64_t failed = 0;
  std::uint64_t batches = 0;
  std::size_t outstanding_messages = 0;
  std::size_t outstanding_bytes = 0;
  std::size_t paused_keys = 0;
};

class Publisher {
 public:
  using OnPublished = std::function<void(Result<broker::MessageId>)>;
  // Sends one batch; the answer is the id of its first message.
  using SendBatch = std::function<void(std::vector<broker::MessageBody>&&, OnPublished)>;

  // REQUIRES: check_options(options); `timer` outlives it.
  Publisher(const PublisherOptions& options, Clock& clock, Timer& timer, SendBatch send);
  Publisher(Publisher&&) noexcept;
  Publisher& operator=(Publisher&&) noexcept;
  ~Publisher();  // Closes, and waits for the answers.

  void publish(broker::NewMessage message, OnPublished on_published);
  std::future<Result<broker::MessageId>> publish(broker::NewMessage message);

  // Lets a paused key be published again. False: it was not paused.
  bool resume_publish(const std::string& key);

  // Sends everything that waits, without waiting for full batches.
  void flush();
  // Takes no more, sends what waits, and waits for the answers. False: some are missing at the
  // deadline; they come later, or with the end of the broker. Idempotent.
  bool close(TimePoint deadline);

  PublisherStats stats() const;

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace ordo

#include "ordo/broker/publisher.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace ordo {
namespace {

using broker::MessageBody;
using broker::MessageId;

Error closed_error() {
  return {ErrorCode::cancelled, "The publisher is closed."};
}

Error paused_error(const std::string& key) {
  return {ErrorCode::failed_precondition,
          "Ordering key '" + key +
              "' is paused since a publish of it failed; resume_publish() lets it go on."};
}

Error full_error() {
  return {ErrorCode::resource_exhausted, "The publisher has as much under way as it may have."};
}

}  // namespace

Status check_options(const PublisherOptions& options) {
  const auto bad = [](const std::string& text) { return Error{ErrorCode::invalid_argument, text}; };
  if (options.batch_messages_max < 1 ||
      options.batch_messages_max > broker::MessageLimits::kRequestMessagesMax)
    return bad("batch_messages_max must be between 1 and 1000.");
  if (options.batch_bytes_max < 1 ||
      options.batch_bytes_max > broker::MessageLimits::kRequestBytesMax)
    return bad("batch_bytes_max must be between 1 and 10000000.");
  if (options.batch_delay_max < std::chrono::nanoseconds(0) ||
      options.batch_delay_max > std::chrono::minutes(10))
    return bad("batch_delay_max must be between 0 and 10 minutes.");
  if (options.outstanding_messages_max < 1)
    return bad("outstanding_messages_max must be at least 1.");
  if (options.outstanding_bytes_max < 1) return bad("outstanding_bytes_max must be at least 1.");
  return {};
}

class Publisher::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(const PublisherOptions& options, Clock& clock, Timer& timer, SendBatch send)
      : options_(options),
        clock_(clock),
        timer_(timer),
        send_(std::move(send)) {}

  void publish(broker::NewMessage&& message, OnPublished&& on_published);
  bool resume(const std::string& key);
  void flush();
  bool close(TimePoint deadline);
  PublisherStats stats() const;

 private:
  struct Waiting {
    std::uint64_t number = 0;  // In the order in which messages were taken in.
    MessageBody body;
    OnPublished on_published;
  };
  static constexpr std::size_t kNoPlace = std::numeric_limits<std::size_t>::max();

  // The messages of a key that wait for their batch; "" holds those without a key.
  struct Line {
    std::deque<Waiting> waiting;
    std::size_t bytes = 0;
    std::size_t batches_out = 0;
    bool has_timer = false;
    bool is_due = false;  // What waits is to be sent as soon as it may.
    bool is_paused = false;
    std::size_t place = kNoPlace;  // In sendable_.

    bool is_idle() const { return waiting.empty() && batches_out == 0 && !has_timer && !is_paused; }
  };
  struct Batch {
    std::string key;
    std::vector<MessageBody> bodies;
    std::vector<OnPublished> answers;
    std::size_t bytes = 0;
  };
  // What the timer calls for a line. A timer that ends drops it, or does not take it: then the line
  // is due at once. Whoever of the two comes second, the drop or the scheduler, sees to that.
  struct DueCall {
    using Drop = std::shared_ptr<std::atomic<bool>>;

    std::weak_ptr<Core> core;
    std::string key;
    Drop drop;  // Null once it was made.

    DueCall(std::weak_ptr<Core> of, std::string what, Drop is_noted)
        : core(std::move(of)),
          key(std::move(what)),
          drop(std::move(is_noted)) {}
    DueCall(DueCall&&) noexcept = default;
    DueCall& operator=(DueCall&&) = delete;
    ~DueCall() {
      if (drop && drop->exchange(true)) (*this)();
    }
    void operator()() {
      drop.reset();
      if (const auto self = core.lock()) self->on_timer(key);
    }
  };
  using Batches = std::vector<Batch>;
  using Lines = std::unordered_map<std::string, Line>;

  // REQUIRES: mutex_ is held, for these.
  bool has_room(std::size_t bytes) const;
  std::optional<Error> admit(std::unique_lock<std::mutex>& lock, const std::string& key,
                             std::size_t bytes);
  bool is_paused(const std::string& key) const;
  bool wait_for_room(std::unique_lock<std::mutex>& lock, std::size_t bytes);
  void gather(const std::string& key, Line& line, bool all, Batches& batches);
  void gather_or_wait(const std::string& key, Line& line, Batches& batches);
  Batch take_batch(const std::string& key, Line& line);
  void gather_all(Batches& batches);
  void list_if_sendable(const std::string& key, Line& line);
  void set_timer(const std::string& key, Line& line);
  void forget_if_idle(const std::string& key);
  void leave(std::size_t messages, std::size_t bytes, bool ok);

  void send(Batches& batches);
  void answered(Batch& batch, const Result<MessageId>& first_id);
  void on_timer(const std::string& key);

  const PublisherOptions options_;
  Clock& clock_;
  Timer& timer_;
  const SendBatch send_;

  mutable std::mutex mutex_;  // Guards all below.
  std::condition_variable changed_;
  Lines lines_;
  // Lines with something that a flush would send: a flush looks at no others, however many are
  // paused or wait for an answer.
  std::vector<Lines::value_type*> sendable_;
  std::uint64_t last_number_ = 0;  // Of the message taken in last.
  std::uint64_t flushed_ = 0;      // Messages up to this number do not wait for a full batch.
  std::uint64_t next_ticket_ = 0;  // Of those who wait for room; served in order.
  std::uint64_t now_served_ = 0;
  std::size_t unanswered_ = 0;  // Taken in, and its callback has not returned.
  std::size_t paused_ = 0;
  bool is_closed_ = false;
  PublisherStats stats_;
};

void Publisher::Core::publish(broker::NewMessage&& message, OnPublished&& on_published) {
  Result<MessageBody> body = broker::encode_message(message);
  if (!body) return on_published(std::move(body).error());
  const std::string key(body->key());
  const std::size_t bytes = body->bytes.size();
  Batches batches;
  {
    std::unique_lock lock(mutex_);
    if (std::optional<Error> refusal = admit(lock, key, bytes)) {
      ++stats_.failed;
      lock.unlock();
      return on_published(std::move(*refusal));
    }
    ++unanswered_;
    ++stats_.outstanding_messages;
    stats_.outstanding_bytes += bytes;
    Line& line = lines_[key];
    line.bytes += bytes;
    line.waiting.push_back({++last_number_, std::move(*body), std::move(on_published)});
    gather_or_wait(key, line, batches);
  }
  send(batches);
}

// Waits for room. Why the message is not taken, if it is not: then what follows it under its key is
// not taken either.
std::optional<Error> Publisher::Core::admit(std::unique_lock<std::mutex>& lock,
                                            const std::string& key, std::size_t bytes) {
  if (is_closed_) return closed_error();
  if (is_paused(key)) return paused_error(key);
  if (!wait_for_room(lock, bytes)) {
    if (is_closed_) return closed_error();
    if (!key.empty() && !std::exchange(lines_[key].is_paused, true)) ++paused_;
    return full_error();
  }
  if (is_paused(key)) return paused_error(key);
  return std::nullopt;
}

bool Publisher::Core::is_paused(const std::string& key) const {
  const auto found = lines_.find(key);
  return found != lines_.end() && found->second.is_paused;
}

bool Publisher::Core::has_room(std::size_t bytes) const {
  if (stats_.outstanding_messages == 0) return true;
  return stats_.outstanding_messages < options_.outstanding_messages_max &&
         stats_.outstanding_bytes + bytes <= options_.outstanding_bytes_max;
}

// First come, first served. What waits for its batch is sent: nobody could make it full.
bool Publisher::Core::wait_for_room(std::unique_lock<std::mutex>& lock, std::size_t bytes) {
  const bool may_wait = options_.when_full == PublisherOptions::WhenFull::block;
  if (next_ticket_ == now_served_ && has_room(bytes)) return true;
  if (!may_wait) return false;
  const std::uint64_t ticket = next_ticket_++;
  while (!is_closed_ && !(ticket == now_served_ && has_room(bytes))) {
    Batches batches;
    gather_all(batches);
    if (!batches.empty()) {
      lock.unlock();
      send(batches);
      lock.lock();
      continue;
    }
    (void)clock_.wait_until(lock, changed_, TimePoint::max());
  }
  if (is_closed_) return false;
  ++now_served_;
  changed_.notify_all();
  return true;
}

// Moves what may be sent now to `batches`: full ones, and with `all` or once due, the rest.
void Publisher::Core::gather(const std::string& key, Line& line, bool all, Batches& batches) {
  if (all) line.is_due = true;
  while (!line.waiting.empty()) {
    const bool may_go = key.empty() || line.batches_out == 0;
    const bool is_full = line.waiting.size() >= options_.batch_messages_max ||
                         line.bytes >= options_.batch_bytes_max ||
                         options_.batch_delay_max == std::chrono::nanoseconds(0);
    const bool is_due = line.is_due || line.waiting.front().number <= flushed_;
    if (!may_go || !(is_full || is_due)) break;
    batches.push_back(take_batch(key, line));
    ++line.batches_out;
    ++stats_.batches;
  }
  if (line.waiting.empty()) line.is_due = false;
  list_if_sendable(key, line);
}

void Publisher::Core::list_if_sendable(const std::string& key, Line& line) {
  const bool is_sendable = !line.waiting.empty() && (key.empty() || line.batches_out == 0);
  if (is_sendable == (line.place != kNoPlace)) return;
  if (is_sendable) {
    line.place = sendable_.size();
    sendable_.push_back(&*lines_.find(key));
  } else {
    sendable_.back()->second.place = line.place;
    sendable_[std::exchange(line.place, kNoPlace)] = sendable_.back();
    sendable_.pop_back();
  }
}

Publisher::Core::Batch Publisher::Core::take_batch(const std::string& key, Line& line) {
  Batch batch;
  batch.key = key;
  while (!line.waiting.empty() && batch.bodies.size() < options_.batch_messages_max) {
    Waiting& next = line.waiting.front();
    const std::size_t bytes = next.body.bytes.size();
    if (!batch.bodies.empty() && batch.bytes + bytes > options_.batch_bytes_max) break;
    batch.bytes += bytes;
    batch.bodies.push_back(std::move(next.body));
    batch.answers.push_back(std::move(next.on_published));
    line.waiting.pop_front();
  }
  line.bytes -= batch.bytes;
  return batch;
}

// What waits behind a batch that is not answered goes with the answer.
void Publisher::Core::gather_all(Batches& batches) {
  flushed_ = last_number_;
  while (!sendable_.empty()) {
    auto& [key, line] = *sendable_.back();
    gather(key, line, true, batches);
  }
}

void Publisher::Core::gather_or_wait(const std::string& key, Line& line, Batches& batches) {
  gather(key, line, false, batches);
  if (line.waiting.empty() || line.has_timer || line.is_due) return;
  set_timer(key, line);
  if (!line.has_timer) gather(key, line, true, batches);
}

void Publisher::Core::set_timer(const std::string& key, Line& line) {
  const auto drop = std::make_shared<std::atomic<bool>>(false);
  (void)timer_.schedule(clock_.now() + options_.batch_delay_max,
                        DueCall(weak_from_this(), key, drop));
  line.has_timer = !drop->exchange(true);
}

void Publisher::Core::forget_if_idle(const std::string& key) {
  const auto found = lines_.find(key);
  if (found != lines_.end() && found->second.is_idle()) lines_.erase(found);
}

void Publisher::Core::on_timer(const std::string& key) {
  Batches batches;
  {
    const std::lock_guard lock(mutex_);
    const auto found = lines_.find(key);
    if (found == lines_.end()) return;
    found->second.has_timer = false;
    gather(key, found->second, true, batches);
    forget_if_idle(key);
  }
  send(batches);
}

void Publisher::Core::send(Batches& batches) {
  for (Batch& batch : batches) {
    std::vector<MessageBody> bodies = std::move(batch.bodies);
    auto sent = std::make_shared<Batch>(std::move(batch));
    send_(std::move(bodies), [self = shared_from_this(), sent](const Result<MessageId>& first_id) {
      self->answered(*sent, first_id);
    });
  }
}

void Publisher::Core::leave(std::size_t messages, std::size_t bytes, bool ok) {
  stats_.outstanding_messages -= messages;
  stats_.outstanding_bytes -= bytes;
  (ok ? stats_.published : stats_.failed) += messages;
}

void Publisher::Core::answered(Batch& batch, const Result<MessageId>& first_id) {
  Batches batches;
  std::deque<Waiting> given_up;
  {
    const std::lock_guard lock(mutex_);
    Line& line = lines_[batch.key];
    --line.batches_out;
    leave(batch.answers.size(), batch.bytes, first_id.has_value());
    if (!first_id && !batch.key.empty()) {
      if (!std::exchange(line.is_paused, true)) ++paused_;
      given_up.swap(line.waiting);
      leave(given_up.size(), std::exchange(line.bytes, 0), false);
      line.is_due = false;
    }
    gather_or_wait(batch.key, line, batches);
    forget_if_idle(batch.key);
  }
  std::uint64_t index = 0;
  for (const OnPublished& answer : batch.answers)
    answer(first_id ? Result<MessageId>(*first_id + index++) : first_id);
  for (const Waiting& waiting : given_up)
    waiting.on_published(paused_error(batch.key));
  send(batches);
  const std::lock_guard lock(mutex_);
  unanswered_ -= batch.answers.size() + given_up.size();
  changed_.notify_all();
}

bool Publisher::Core::resume(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = lines_.find(key);
  if (found == lines_.end() || !std::exchange(found->second.is_paused, false)) return false;
  --paused_;
  forget_if_idle(key);
  return true;
}

void Publisher::Core::flush() {
  Batches batches;
  {
    const std::lock_guard lock(mutex_);
    gather_all(batches);
  }
  send(batches);
}

bool Publisher::Core::close(TimePoint deadline) {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }
  flush();
  std::unique_lock lock(mutex_);
  while (unanswered_ > 0) {
    if (clock_.wait_until(lock, changed_, deadline)) return unanswered_ == 0;
  }
  return true;
}

PublisherStats Publisher::Core::stats() const {
  const std::lock_guard lock(mutex_);
  PublisherStats stats = stats_;
  stats.paused_keys = paused_;
  return stats;
}

Publisher::Publisher(const PublisherOptions& options, Clock& clock, Timer& timer, SendBatch send)
    : core_(std::make_shared<Core>(options, clock, timer, std::move(send))) {}

Publisher::Publisher(Publisher&&) noexcept = default;

Publisher& Publisher::operator=(Publisher&& other) noexcept {
  if (this != &other) {
    if (core_) core_->close(TimePoint::max());
    core_ = std::move(other.core_);
  }
  return *this;
}

Publisher::~Publisher() {
  if (core_) core_->close(TimePoint::max());
}

void Publisher::publish(broker::NewMessage message, OnPublished on_published) {
  core_->publish(std::move(message), std::move(on_published));
}

std::future<Result<MessageId>> Publisher::publish(broker::NewMessage message) {
  auto promise = std::make_shared<std::promise<Result<MessageId>>>();
  std::future<Result<MessageId>> future = promise->get_future();
  publish(std::move(message),
          [promise](Result<MessageId> id) { promise->set_value(std::move(id)); });
  return future;
}

bool Publisher::resume_publish(const std::string& key) {
  return core_->resume(key);
}

void Publisher::flush() {
  core_->flush();
}

bool Publisher::close(TimePoint deadline) {
  return core_->close(deadline);
}

PublisherStats Publisher::stats() const {
  return core_->stats();
}

}  // namespace ordo

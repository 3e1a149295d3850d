#include "ordo/adapters/pubsub_wire/pull_stream.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "ordo/adapters/pubsub_wire/pull_response.h"

namespace ordo::pubsub_wire {
namespace {

using broker::CloseConsumer;
using broker::SettleOutcome;

// Of StreamingPullResponse.
constexpr std::uint32_t kModifyConfirmation = 3;
constexpr std::uint32_t kProperties = 4;
constexpr std::uint32_t kAckConfirmation = 5;
// Of its SubscriptionProperties.
constexpr std::uint32_t kExactlyOnce = 1;
constexpr std::uint32_t kOrdering = 2;
// Of its confirmations.
constexpr std::uint32_t kDoneIds = 1;
constexpr std::uint32_t kInvalidIds = 2;
constexpr std::uint32_t kModifyFailedIds = 3;
constexpr std::uint32_t kAckFailedIds = 4;

constexpr std::int32_t kModifiedSecondsMax = 600;

std::uint32_t field_of(SettleOutcome outcome, bool is_ack) {
  if (outcome == SettleOutcome::done) return kDoneIds;
  if (outcome == SettleOutcome::stale) return kInvalidIds;
  return is_ack ? kAckFailedIds : kModifyFailedIds;
}

}  // namespace

PullStream::PullStream(CorePtr core, http2::CallPtr call)
    : core_(std::move(core)),
      call_(std::move(call)) {}

PullStream::~PullStream() {
  core_->remove(this);
}

Status PullStream::open(const StreamRequest& request) {
  subscription_ = request.subscription;
  const std::chrono::seconds lease(request.stream_ack_deadline_seconds);
  if (!core_->add(shared_from_this())) return closed_error();
  StreamOptions options;
  options.messages_max = request.max_outstanding_messages;
  options.bytes_max = request.max_outstanding_bytes;
  options.ack_deadline = lease;
  broker::ConsumerEvents events;
  events.deliver = [weak = weak_from_this()](std::vector<broker::Delivery>&& deliveries) {
    if (const auto self = weak.lock()) self->deliver(std::move(deliveries));
  };
  events.closed = [weak = weak_from_this()](const Error& reason) {
    if (const auto self = weak.lock()) self->end(reason);
  };
  {
    const std::lock_guard lock(mutex_);
    lease_ = lease;
    is_pumping_ = true;  // Nobody sends before the headers.
  }
  Result<Stream> stream = core_->broker().open_stream(subscription_, options, std::move(events));
  if (!stream) return std::move(stream).error();
  stream_ = std::move(*stream);
  // The client learns at once that it has a stream, also when there is nothing for it.
  call_->send_headers({});
  {
    const std::lock_guard lock(mutex_);
    is_pumping_ = false;
  }
  pump();
  return {};
}

void PullStream::set_deadline(std::chrono::seconds lease) {
  {
    const std::lock_guard lock(mutex_);
    lease_ = lease;
  }
  stream_.set_ack_deadline(lease);
}

void PullStream::deliver(std::vector<broker::Delivery>&& deliveries) {
  const TimePoint now = core_->clock().now();
  {
    const std::lock_guard lock(mutex_);
    if (has_left_) return;
    const TimePoint expires = now + lease_;
    for (broker::Delivery& delivery : deliveries)
      waiting_.push_back({std::move(delivery), expires});
    drop_expired(now);
  }
  pump();
}

void PullStream::owe_answer() {
  {
    const std::lock_guard lock(mutex_);
    ++answers_owed_;
  }
  pump();
}

// ----------------------------------------------------------------------------------- settling

void PullStream::begin_round() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_in_round_, true)) return;
  }
  call_->ask_round_end();
}

void PullStream::end_round() {
  {
    const std::lock_guard lock(mutex_);
    is_in_round_ = false;
  }
  pump();
}

Status PullStream::settle(const StreamRequest& request) {
  if (!request.ack_ids.empty() || !request.modify_deadline_ack_ids.empty()) begin_round();
  const auto settings = core_->broker().settings_of(subscription_);
  if (!settings) return settings.error();
  const bool is_exactly_once = (*settings)->enable_exactly_once_delivery;
  if (!request.ack_ids.empty()) {
    if (Status done = acknowledge(request.ack_ids, is_exactly_once); !done) return done;
  }
  if (!request.modify_deadline_ack_ids.empty()) return modify(request, is_exactly_once);
  return {};
}

Status PullStream::acknowledge(const std::vector<std::string_view>& texts, bool is_exactly_once) {
  ReadIds read = read_ids(core_->ack_ids(), texts);
  if (!is_exactly_once) {
    if (!read.malformed.empty()) return invalid_ack_id(read.malformed.front());
    stream_.acknowledge(std::move(read.ids));
    return {};
  }
  broker::OnSettled on_settled = confirm(read, true);
  if (!read.ids.empty()) stream_.acknowledge(std::move(read.ids), std::move(on_settled));
  return {};
}

Status PullStream::modify(const StreamRequest& request, bool is_exactly_once) {
  const std::vector<std::string_view>& texts = request.modify_deadline_ack_ids;
  const std::vector<std::int32_t>& deadlines = request.modify_deadline_seconds;
  for (const std::int32_t deadline : deadlines) {
    if (deadline < 0 || deadline > kModifiedSecondsMax)
      return Error{ErrorCode::invalid_argument,
                   "modify_deadline_seconds must be between 0 and 600 seconds."};
  }
  // Neighbours with the same deadline go together.
  for (std::size_t begin = 0; begin < texts.size();) {
    std::size_t end = begin + 1;
    while (end < texts.size() && deadlines[end] == deadlines[begin])
      ++end;
    const auto at = [&](std::size_t index) {
      return texts.begin() + static_cast<std::ptrdiff_t>(index);
    };
    ReadIds read = read_ids(core_->ack_ids(), {at(begin), at(end)});
    const std::chrono::seconds deadline(deadlines[begin]);
    begin = end;
    if (!is_exactly_once && !read.malformed.empty()) return invalid_ack_id(read.malformed.front());
    broker::OnSettled on_settled;
    if (is_exactly_once) on_settled = confirm(read, false);
    if (!read.ids.empty())
      stream_.modify_ack_deadline(std::move(read.ids), deadline, std::move(on_settled));
  }
  return {};
}

broker::OnSettled PullStream::confirm(const ReadIds& read, bool is_ack) {
  std::vector<Confirmation> malformed;
  malformed.reserve(read.malformed.size());
  for (const std::string_view text : read.malformed)
    malformed.push_back({std::string(text), SettleOutcome::stale, is_ack});
  std::size_t weight = 0;
  for (const std::vector<std::string_view>* texts : {&read.texts, &read.malformed}) {
    for (const std::string_view text : *texts)
      weight += weight_of(text);
  }
  bool is_held = false;
  {
    const std::lock_guard lock(mutex_);
    unconfirmed_ += weight;
    is_held = unconfirmed_ > kUnconfirmedMax;
    if (is_held) is_input_held_ = true;
  }
  if (is_held) hold_input();
  if (!malformed.empty()) add_confirmations(std::move(malformed));
  return [weak = weak_from_this(), is_ack,
          texts = std::vector<std::string>(read.texts.begin(), read.texts.end())](
             const std::vector<SettleOutcome>& outcomes) {
    const auto self = weak.lock();
    if (!self) return;
    std::vector<Confirmation> settled;
    settled.reserve(texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i)
      settled.push_back({texts[i], outcomes[i], is_ack});
    self->add_confirmations(std::move(settled));
  };
}

// Whoever has confirmed enough since it was decided has asked for input too early: ask again.
void PullStream::hold_input() {
  call_->hold_input();
  bool is_held = false;
  {
    const std::lock_guard lock(mutex_);
    is_held = is_input_held_;
  }
  if (!is_held) call_->resume_input();
}

void PullStream::add_confirmations(std::vector<Confirmation>&& confirmations) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_ended_)
      std::move(confirmations.begin(), confirmations.end(), std::back_inserter(confirmations_));
  }
  pump();
}

bool PullStream::note_confirmed(const Load& load) {
  for (const Confirmation& confirmation : load.confirmations)
    unconfirmed_ -= confirmation.weight();
  return unconfirmed_ <= kUnconfirmedMax / 2 && std::exchange(is_input_held_, false);
}

// ------------------------------------------------------------------------------------ sending

void PullStream::pump() {
  std::unique_lock lock(mutex_);
  if (std::exchange(is_pumping_, true)) return;  // Whoever does it sees what has been added.
  bool is_resumed = false;
  while (!is_ended_ && !is_in_round_) {
    const TimePoint now = core_->clock().now();
    drop_expired(now);
    if (!has_output() || !call_->wants_more()) break;
    Load load = take_load(now);
    if (load.empty()) continue;
    lock.unlock();
    const bool is_sent = call_->send(response_of(load));
    lock.lock();
    if (is_sent) {
      is_resumed = note_confirmed(load) || is_resumed;
      continue;
    }
    // The client has gone; or others of the connection were faster, and room may have come since.
    is_ended_ = is_ended_ || call_->is_cancelled();
    if (!has_left_) put_back(std::move(load));
  }
  is_pumping_ = false;
  lock.unlock();
  if (is_resumed) call_->resume_input();
}

PullStream::Load PullStream::take_load(TimePoint now) {
  Load load;
  std::size_t bytes = 0;
  while (!waiting_.empty() && load.deliveries.size() < kResponseMessagesMax) {
    if (waiting_.front().expires <= now) {  // Of a shorter lease than those before it.
      waiting_.pop_front();
      continue;
    }
    bytes += waiting_.front().delivery.message.size();
    if (!load.deliveries.empty() && bytes > kResponseBytesMax) break;
    load.deliveries.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  while (!confirmations_.empty() && load.confirmations.size() < kResponseConfirmationsMax) {
    load.confirmations.push_back(std::move(confirmations_.front()));
    confirmations_.pop_front();
  }
  load.is_answer = answers_owed_ > 0;
  if (load.is_answer) --answers_owed_;
  return load;
}

void PullStream::put_back(Load&& load) {
  waiting_.insert(waiting_.begin(), std::make_move_iterator(load.deliveries.begin()),
                  std::make_move_iterator(load.deliveries.end()));
  confirmations_.insert(confirmations_.begin(), std::make_move_iterator(load.confirmations.begin()),
                        std::make_move_iterator(load.confirmations.end()));
  if (load.is_answer) ++answers_owed_;
}

// All leases of a stream are of the same length, unless its client has changed that: the first to
// come is the first to end.
void PullStream::drop_expired(TimePoint now) {
  while (!waiting_.empty() && waiting_.front().expires <= now)
    waiting_.pop_front();
}

std::vector<http2::Slice> PullStream::response_of(const Load& load) const {
  const auto settings = core_->broker().settings_of(subscription_);
  PullResponse response(core_->ack_ids(), settings && broker::shows_fence((*settings)->labels));
  for (const Waiting& waiting : load.deliveries)
    response.add(waiting.delivery);
  std::string acks;
  std::string modifies;
  for (const Confirmation& confirmation : load.confirmations) {
    broker::put_bytes_field(confirmation.is_ack ? acks : modifies,
                            field_of(confirmation.outcome, confirmation.is_ack),
                            confirmation.ack_id);
  }
  if (!modifies.empty()) broker::put_bytes_field(response.text(), kModifyConfirmation, modifies);
  // In every response: some clients take what a response does not say for a no.
  std::string properties;
  if (settings) {
    if ((*settings)->enable_exactly_once_delivery)
      broker::put_varint_field(properties, kExactlyOnce, 1);
    if ((*settings)->enable_message_ordering) broker::put_varint_field(properties, kOrdering, 1);
  }
  broker::put_bytes_field(response.text(), kProperties, properties);
  if (!acks.empty()) broker::put_bytes_field(response.text(), kAckConfirmation, acks);
  return response.take();
}

// ------------------------------------------------------------------------------------ the end

void PullStream::end(const Error& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_ended_, true)) return;
  }
  call_->finish(reason);
}

void PullStream::leave() {
  std::vector<broker::AckId> unsent;
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = has_left_ = true;
    unsent.reserve(waiting_.size());
    for (const Waiting& waiting : waiting_)
      unsent.push_back(waiting.delivery.ack_id);
    waiting_.clear();
    confirmations_.clear();
    answers_owed_ = 0;
  }
  stream_.close(CloseConsumer::How::died);
  // Now that it is closed: before, they would come back to it.
  const std::size_t count = unsent.size();
  if (count > 0) stream_.give_back(std::move(unsent), count);
}

}  // namespace ordo::pubsub_wire

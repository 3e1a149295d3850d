#include "ordo/adapters/http2/conversation.h"

#include <utility>

namespace ordo::http2 {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): each thread's own.
thread_local const Mailbox* this_threads_mailbox = nullptr;

}  // namespace

void Mailbox::make_this_threads_own() {
  this_threads_mailbox = this;
}

void Mailbox::post(Letter&& letter) {
  if (this_threads_mailbox == this) {
    if (is_taking_) {
      own_.push_back(std::move(letter));
      return;
    }
    // What another thread said before comes first.
    if (has_letters_.load(std::memory_order_acquire)) take_all();
    letter.to->deliver(letter);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return;
    letters_.push_back(std::move(letter));
    if (letters_.size() > 1) return;
    has_letters_.store(true, std::memory_order_release);
    ringing_.fetch_add(1, std::memory_order_relaxed);
  }
  // Not under the lock: whom it wakes may take this processor at once, and wants the lock first.
  ring_();
  if (ringing_.fetch_sub(1, std::memory_order_release) == 1) ringing_.notify_all();
}

void Mailbox::take_all() {
  if (std::exchange(is_taking_, true)) return;
  {
    const std::lock_guard lock(mutex_);
    has_letters_.store(false, std::memory_order_relaxed);
    std::swap(letters_, taken_);
  }
  while (!taken_.empty()) {
    for (Letter& letter : taken_)
      letter.to->deliver(letter);
    taken_.clear();
    std::swap(taken_, own_);
  }
  is_taking_ = false;
}

void Mailbox::close() {
  std::vector<Letter> dropped;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    std::swap(dropped, letters_);
    has_letters_.store(false, std::memory_order_relaxed);
  }
  while (const unsigned ringing = ringing_.load(std::memory_order_acquire))
    ringing_.wait(ringing, std::memory_order_acquire);
}

Conversation::Conversation(RequestHead head, std::shared_ptr<Mailbox> mailbox,
                           std::shared_ptr<OutputAccount> account)
    : head_(std::move(head)),
      mailbox_(std::move(mailbox)),
      account_(std::move(account)) {}

// What was queued and never sent is gone, too.
Conversation::~Conversation() {
  if (const std::size_t left = queued_bytes_.load(std::memory_order_relaxed); left > 0)
    account_->remove(left);
}

// Who has something queued is told when that has gone, so nobody waits for others for ever.
bool Conversation::has_room() const {
  const std::size_t queued = queued_bytes_.load();
  if (queued == 0) return true;
  return queued < account_->stream_bytes_max && !account_->is_full() && !account_->is_server_full();
}

bool Conversation::wants_more() {
  if (has_room()) return true;
  // Whoever makes room after this sees that somebody waits; who did it before is seen here.
  is_waiting_.store(true);
  return has_room();
}

bool Conversation::note_sent(std::size_t bytes) {
  const std::size_t left = queued_bytes_.fetch_sub(bytes) - bytes;
  account_->remove(bytes);
  return left <= account_->stream_bytes_max / 2 && is_waiting_.load() &&
         is_waiting_.exchange(false);
}

void Conversation::hold_input() {
  post_letter({.to = shared_from_this(), .kind = Letter::Kind::hold_input});
}

void Conversation::resume_input() {
  post_letter({.to = shared_from_this(), .kind = Letter::Kind::resume_input});
}

void Conversation::post(Part&& part) {
  if (is_cancelled()) return;
  const std::size_t bytes = part.queued_bytes();
  queued_bytes_.fetch_add(bytes);
  account_->add(bytes);
  post_letter({.to = shared_from_this(), .kind = Letter::Kind::part, .part = std::move(part)});
}

void Conversation::post_letter(Letter&& letter) {
  if (!is_cancelled()) mailbox_->post(std::move(letter));
}

void Conversation::deliver(Letter& letter) {
  if (channel_ == nullptr) return;
  if (letter.kind == Letter::Kind::part) {
    channel_->take(std::move(letter.part));
  } else {
    channel_->hold_input(letter.kind == Letter::Kind::hold_input);
  }
}

}  // namespace ordo::http2

#include "ordo/adapters/http2/connection.h"

#include <algorithm>
#include <utility>

#include "ordo/adapters/http2/http1_session.h"
#include "ordo/adapters/http2/http2_session.h"

namespace ordo::http2 {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

}  // namespace

Connection::Connection(SessionContext context, BufferStore& store, TimePoint now)
    : context_(std::move(context)),
      output_(store),
      opened_at_(now),
      heard_at_(now),
      sent_at_(now),
      progress_at_(now) {}

Connection::~Connection() {
  context_.output->remove(counted_bytes_);
}

void Connection::receive(std::string_view bytes, TimePoint now) {
  heard_at_ = now;
  if (session_) {
    session_->receive(bytes, now);
  } else {
    choose(bytes, now);
  }
}

void Connection::choose(std::string_view bytes, TimePoint now) {
  first_bytes_.append(bytes);
  if (first_bytes_.size() < kPreface.size() && kPreface.starts_with(first_bytes_)) return;
  const std::string all = std::exchange(first_bytes_, {});
  std::string_view rest = all;
  if (all.starts_with(kPreface)) {
    rest.remove_prefix(kPreface.size());
    session_ = std::make_unique<Http2Session>(context_, now);
  } else {
    session_ = std::make_unique<Http1Session>(context_, opened_at_);
  }
  if (is_draining_) session_->drain(now);
  if (!rest.empty()) session_->receive(rest, now);
}

void Connection::end_input(TimePoint now) {
  if (session_) {
    session_->end_input(now);
  } else {
    is_dead_ = true;
  }
}

void Connection::fill(TimePoint now) {
  if (!session_) return;
  const bool was_empty = output_.empty();
  session_->fill(output_, now);
  if (was_empty) progress_at_ = now;
}

void Connection::sent(std::size_t count, TimePoint now) {
  output_.sent(count);
  if (count > 0) progress_at_ = sent_at_ = now;
  if (!output_.empty()) output_.tighten();
  // Mostly all of it is taken at once, and nothing has to be counted.
  if (output_.size() > counted_bytes_) context_.output->add(output_.size() - counted_bytes_);
  if (output_.size() < counted_bytes_) context_.output->remove(counted_bytes_ - output_.size());
  counted_bytes_ = output_.size();
}

void Connection::on_time(TimePoint now) {
  const bool is_late = !session_ && now >= opened_at_ + context_.limits.handshake_timeout;
  const bool is_unread = !output_.empty() && now >= progress_at_ + context_.limits.write_timeout;
  if (is_late || is_unread) {
    context_.counters.timed_out.add();
    is_dead_ = true;
  } else if (session_ && now >= session_->next_deadline()) {
    session_->on_time(now);
  }
}

void Connection::end_idle(TimePoint now) {
  if (session_) {
    session_->end_idle(now);
  } else {
    is_dead_ = true;
  }
}

void Connection::drain(TimePoint now) {
  is_draining_ = true;
  if (session_) {
    session_->drain(now);
  } else if (first_bytes_.empty()) {
    is_dead_ = true;
  }
}

bool Connection::wants_input() const {
  if (is_dead_ || output_.size() >= context_.limits.output_pause_bytes) return false;
  return !session_ || session_->wants_input();
}

bool Connection::is_finished() const {
  return is_dead_ || (session_ && session_->is_over() && output_.empty());
}

TimePoint Connection::next_deadline() const {
  TimePoint first =
      session_ ? session_->next_deadline() : opened_at_ + context_.limits.handshake_timeout;
  if (!output_.empty()) first = std::min(first, progress_at_ + context_.limits.write_timeout);
  return first;
}

}  // namespace ordo::http2

#include "ordo/broker/pull.h"

#include <utility>

namespace ordo::broker {

// They keep this alive until the consumer is closed, which every pull comes to.
ConsumerEvents PullDesk::events() {
  ConsumerEvents events;
  events.deliver = [self = shared_from_this()](std::vector<Delivery>&& deliveries) {
    self->deliver(std::move(deliveries));
  };
  events.closed = [self = shared_from_this()](const Error& reason) {
    {
      const std::lock_guard lock(self->mutex_);
      self->error_ = reason;
    }
    self->end_if_done();
  };
  events.kept_back = [self = shared_from_this()](const Error& reason) {
    {
      const std::lock_guard lock(self->mutex_);
      self->damage_ = reason;
    }
    self->end_if_done();
  };
  events.quiet = [self = shared_from_this()] {
    {
      const std::lock_guard lock(self->mutex_);
      self->is_quiet_ = true;
    }
    self->end_if_done();
  };
  return events;
}

void PullDesk::begin(std::shared_ptr<ConsumerDesk> consumer, TimePoint deadline) {
  {
    const std::lock_guard lock(mutex_);
    consumer_ = std::move(consumer);
  }
  end_if_done();
  {
    const std::lock_guard lock(mutex_);
    if (is_ending_) return;
  }
  const TimerId id = timer_.schedule(deadline, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    {
      const std::lock_guard lock(self->mutex_);
      self->is_time_up_ = true;
    }
    self->end_if_done();
  });
  bool is_late = false;
  {
    const std::lock_guard lock(mutex_);
    timer_id_ = id;
    is_late = is_ending_;
  }
  if (is_late) (void)timer_.cancel(id);  // Whoever ended it did not know of the timer.
}

void PullDesk::cancel() {
  {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
  }
  end_if_done();
}

void PullDesk::deliver(std::vector<Delivery>&& deliveries) {
  {
    const std::lock_guard lock(mutex_);
    for (Delivery& delivery : deliveries)
      messages_.emplace_back(std::move(delivery));
  }
  end_if_done();
}

bool PullDesk::is_done() const {
  const bool has_all = messages_.size() >= messages_max_;
  const bool has_some = !messages_.empty() || !is_patient_;
  return error_ || damage_ || is_time_up_ || is_cancelled_ || has_all || (has_some && is_quiet_);
}

void PullDesk::end_if_done() {
  std::shared_ptr<ConsumerDesk> consumer;
  auto how = CloseConsumer::How::keep_leases;
  {
    const std::lock_guard lock(mutex_);
    if (!consumer_ || is_ending_ || !is_done()) return;
    is_ending_ = true;
    consumer = consumer_;
    is_released_ = is_cancelled_;
    if (is_released_) how = CloseConsumer::How::release;
  }
  // What is delivered until every partition has closed it belongs to this pull too.
  consumer->close(how, [self = shared_from_this()] { self->finish(); });
}

void PullDesk::finish() {
  OnPulled on_pulled;
  Result<std::vector<ReceivedMessage>> result = std::vector<ReceivedMessage>();
  std::shared_ptr<ConsumerDesk> consumer;
  TimerId timer_id = TimerId::none;
  {
    const std::lock_guard lock(mutex_);
    on_pulled = std::exchange(on_pulled_, nullptr);
    consumer = std::exchange(consumer_, nullptr);
    timer_id = timer_id_;
    if (is_released_) {
      result = Error{ErrorCode::cancelled, "The pull was cancelled."};
    } else if (error_ && messages_.empty()) {
      result = *error_;
    } else if (damage_ && messages_.empty()) {
      result = *damage_;
    } else {
      result = std::move(messages_);
    }
    messages_.clear();
  }
  if (timer_id != TimerId::none) (void)timer_.cancel(timer_id);
  on_pulled(std::move(result));
}

}  // namespace ordo::broker

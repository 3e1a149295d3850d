#include "ordo/broker/consumer_desk.h"

#include <utility>

#include "ordo/broker/host.h"

namespace ordo::broker {

ConsumerDesk::ConsumerDesk(ConsumerNumber number, CursorNumber subscription, Hosts hosts,
                           const ConsumerSettings& settings, ConsumerEvents events)
    : number_(number),
      subscription_(subscription),
      hosts_(std::move(hosts)),
      ack_deadline_(settings.ack_deadline),
      events_(std::move(events)),
      desk_(settings.limits, static_cast<std::uint32_t>(hosts_.size())),
      unopened_(hosts_.size()),
      is_busy_(hosts_.size(), false) {}

void ConsumerDesk::open() {
  for (const auto& host : hosts_) {
    Posted posted{OpenConsumer{number_, subscription_, ack_deadline_}};
    posted.consumer = shared_from_this();
    if (events_.quiet) posted.after = [self = shared_from_this()] { self->opened(); };
    host->post(std::move(posted));
  }
}

void ConsumerDesk::close(CloseConsumer::How how, std::function<void()> after) {
  if (is_closed_.exchange(true)) {
    if (!after) return;
    how = CloseConsumer::How::keep_leases;
  }
  std::function<void()> one_done;
  if (after) {
    auto left = std::make_shared<std::atomic<std::size_t>>(hosts_.size());
    one_done = [left, after = std::move(after)] {
      if (left->fetch_sub(1) == 1) after();
    };
  }
  for (const auto& host : hosts_) {
    Posted posted{CloseConsumer{number_, how}};
    posted.after = one_done;
    host->post(std::move(posted));
  }
}

std::int64_t ConsumerDesk::leased_messages() const {
  const std::lock_guard lock(mutex_);
  return desk_.leased_messages();
}

void ConsumerDesk::deliver(std::vector<Delivery>&& deliveries) {
  events_.deliver(std::move(deliveries));
  if (events_.quiet) report_if_quiet();
}

void ConsumerDesk::count_delivered(std::uint32_t partition, std::uint64_t messages,
                                   std::uint64_t bytes) {
  change_credit(partition, [&](CreditDesk::Grants& grants) {
    desk_.deliver(partition, messages, bytes, grants);
  });
}

void ConsumerDesk::want_credit(std::uint32_t partition) {
  change_credit(partition, [&](CreditDesk::Grants& grants) { desk_.want(partition, grants); });
}

void ConsumerDesk::return_credit(std::uint32_t partition) {
  change_credit(partition, [&](CreditDesk::Grants& grants) { desk_.give_back(partition, grants); });
  if (events_.quiet) report_if_quiet();
}

void ConsumerDesk::release_credit(std::uint32_t partition, std::uint64_t messages,
                                  std::uint64_t bytes) {
  CreditDesk::Grants grants;
  {
    const std::lock_guard lock(mutex_);
    desk_.release(partition, messages, bytes, grants);
    note_busy(grants);
  }
  send(grants);
}

void ConsumerDesk::closed(const Error& reason) {
  if (is_closed_.exchange(true)) return;
  if (events_.closed) events_.closed(reason);
}

template <class Change>
void ConsumerDesk::change_credit(std::uint32_t partition, const Change& change) {
  CreditDesk::Grants grants;
  {
    const std::lock_guard lock(mutex_);
    if (is_busy_[partition]) --busy_count_;
    is_busy_[partition] = false;
    change(grants);
    note_busy(grants);
  }
  send(grants);
}

void ConsumerDesk::note_busy(const CreditDesk::Grants& grants) {
  for (const CreditDesk::Grant& grant : grants) {
    if (is_busy_[grant.partition]) continue;
    is_busy_[grant.partition] = true;
    ++busy_count_;
  }
}

void ConsumerDesk::send(const CreditDesk::Grants& grants) {
  for (const CreditDesk::Grant& grant : grants) {
    Posted posted{GrantCredit{number_, grant.messages, grant.bytes}};
    if (events_.quiet) posted.after = [self = shared_from_this()] { self->report_if_quiet(); };
    hosts_[grant.partition]->post(std::move(posted));
  }
}

void ConsumerDesk::opened() {
  {
    const std::lock_guard lock(mutex_);
    --unopened_;
  }
  report_if_quiet();
}

void ConsumerDesk::report_if_quiet() {
  {
    const std::lock_guard lock(mutex_);
    if (unopened_ > 0 || busy_count_ > 0) return;
  }
  events_.quiet();
}

}  // namespace ordo::broker

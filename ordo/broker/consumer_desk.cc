#include "ordo/broker/consumer_desk.h"

#include <algorithm>
#include <utility>

#include "ordo/broker/host.h"

namespace ordo::broker {

ConsumerDesk::ConsumerDesk(ConsumerNumber number, CursorNumber subscription, Hosts hosts,
                           const ConsumerSettings& settings, ConsumerEvents events)
    : number_(number),
      subscription_(subscription),
      hosts_(std::move(hosts)),
      ack_deadline_(settings.ack_deadline),
      pushes_(settings.pushes),
      place_(settings.place),
      events_(std::move(events)),
      desk_(settings.limits, static_cast<std::uint32_t>(hosts_.size())),
      unopened_(hosts_.size()),
      unused_(hosts_.size()) {}

void ConsumerDesk::open() {
  for (const auto& host : hosts_) {
    Posted posted{
        OpenConsumer{number_, subscription_, ack_deadline_, events_.quiet != nullptr, pushes_}};
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

void ConsumerDesk::keep_back(const Error& reason) {
  if (events_.kept_back) events_.kept_back(reason);
}

void ConsumerDesk::count_delivered(std::uint32_t partition, std::uint64_t messages,
                                   std::uint64_t bytes) {
  CreditDesk::Grants grants;
  {
    const std::lock_guard lock(mutex_);
    const Unused unused = unused_[partition];
    const bool is_used_up = messages >= unused.messages || bytes >= unused.bytes;
    set_unused(partition,
               is_used_up ? Unused() : Unused{unused.messages - messages, unused.bytes - bytes});
    desk_.deliver(partition, messages, bytes, grants);
    note_grants(grants);
  }
  send(grants);
}

void ConsumerDesk::want_credit(std::uint32_t partition) {
  CreditDesk::Grants grants;
  {
    const std::lock_guard lock(mutex_);
    set_unused(partition, {});
    desk_.want(partition, grants);
    note_grants(grants);
  }
  send(grants);
}

void ConsumerDesk::return_credit(std::uint32_t partition) {
  CreditDesk::Grants grants;
  {
    const std::lock_guard lock(mutex_);
    set_unused(partition, {});
    desk_.give_back(partition, grants);
    note_grants(grants);
  }
  send(grants);
  if (events_.quiet) report_if_quiet();
}

void ConsumerDesk::release_credit(std::uint32_t partition, std::uint64_t messages,
                                  std::uint64_t bytes) {
  CreditDesk::Grants grants;
  {
    const std::lock_guard lock(mutex_);
    desk_.release(partition, messages, bytes, grants);
    note_grants(grants);
  }
  send(grants);
}

void ConsumerDesk::limit_messages(std::int64_t messages) {
  CreditDesk::Grants grants;
  {
    const std::lock_guard lock(mutex_);
    desk_.limit_messages(messages, grants);
    note_grants(grants);
  }
  send(grants);
}

void ConsumerDesk::set_ack_deadline(std::chrono::nanoseconds ack_deadline) {
  for (const auto& host : hosts_)
    host->post(Posted{SetConsumerDeadline{number_, ack_deadline}});
}

void ConsumerDesk::closed(const Error& reason) {
  if (is_closed_.exchange(true)) return;
  if (events_.closed) events_.closed(reason);
}

void ConsumerDesk::set_unused(std::uint32_t partition, Unused unused) {
  const bool was_busy = unused_[partition].messages > 0;
  unused_[partition] = unused;
  const bool is_busy = unused.messages > 0;
  if (was_busy && !is_busy) --busy_count_;
  if (!was_busy && is_busy) ++busy_count_;
}

void ConsumerDesk::note_grants(const CreditDesk::Grants& grants) {
  for (const CreditDesk::Grant& grant : grants)
    set_unused(grant.partition, {grant.messages, grant.bytes});
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

// Not once it is closed: credit that was on its way to another partition may come back late.
void ConsumerDesk::report_if_quiet() {
  if (is_closed_) return;
  {
    const std::lock_guard lock(mutex_);
    if (unopened_ > 0 || busy_count_ > 0) return;
  }
  events_.quiet();
}

}  // namespace ordo::broker

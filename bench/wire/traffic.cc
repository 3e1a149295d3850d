#include "bench/wire/traffic.h"

#include <algorithm>

#include "bench/support/usage.h"

namespace ordo::bench {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kStallNs = 30'000 * kMillisecond;
constexpr std::uint64_t kLookNs = 2 * kMillisecond;  // How late the end of a run may be noticed.

double microseconds(std::uint64_t from_ns, std::uint64_t to_ns) {
  return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) / 1000 : 0;
}

}  // namespace

void Progress::await_received() const {
  std::uint64_t count = received.load();
  while (count < sent.load()) {
    received.wait(count);
    count = received.load();
  }
}

Sender::Sender(Publisher& publisher, const WirePlan& plan, Progress& progress)
    : publisher_(publisher),
      plan_(plan),
      progress_(progress),
      bodies_(plan.batch, std::string(plan.size, 'x')),
      next_number_(std::max<std::size_t>(plan.keys, 1)),
      requests_(kUnderWayMax),
      heard_ns_(now_ns()) {}

void Sender::send_until(std::uint64_t end_ns) {
  while (now_ns() < end_ns)
    send_one(plan_.batch);
}

void Sender::send_count(std::uint64_t count) {
  for (std::uint64_t sent = 0; sent < count;) {
    const std::uint64_t messages = std::min<std::uint64_t>(plan_.batch, count - sent);
    send_one(messages);
    sent += messages;
  }
}

void Sender::send_one(std::size_t messages) {
  await_room();
  send(now_ns(), messages);
}

void Sender::send_paced(std::uint64_t count, double rate) {
  step_ns_ = 1e9 / rate;
  const std::uint64_t begin = now_ns();
  const auto due = [&](std::uint64_t index) {
    return begin + static_cast<std::uint64_t>(static_cast<double>(index) * step_ns_);
  };
  for (std::uint64_t sent = 0; sent < count;) {
    std::uint64_t now = now_ns();
    if (now < due(sent)) {
      receive(due(sent) - now);
      continue;
    }
    std::size_t messages = 1;
    while (messages < plan_.batch && sent + messages < count && due(sent + messages) <= now)
      ++messages;
    send(due(sent), messages);
    sent += messages;
  }
}

bool Sender::is_key_busy() const {
  if (plan_.keys == 0 || requests_sent_ < plan_.keys) return false;
  return requests_[(requests_sent_ - plan_.keys) % kUnderWayMax].is_under_way;
}

void Sender::await_room() {
  while (under_way_ >= plan_.window || is_key_busy())
    receive(kStallNs);
  while (progress_.is_received) {
    const std::uint64_t received = progress_.received.load();
    if (progress_.sent.load() - received < plan_.lag_max) return;
    if (under_way_ > 0) {
      receive(kMillisecond);
    } else {
      progress_.received.wait(received);
    }
  }
}

void Sender::send(std::uint64_t due_ns, std::size_t messages) {
  const std::uint64_t key = plan_.keys == 0 ? 0 : requests_sent_ % plan_.keys;
  bodies_.resize(messages, std::string(plan_.size, 'x'));
  for (std::size_t i = 0; i < messages; ++i) {
    const auto later = static_cast<std::uint64_t>(static_cast<double>(i) * step_ns_);
    Stamp{due_ns + later, next_number_[key]++, key}.write(bodies_[i]);
  }
  Request& sent = request(requests_sent_);
  if (sent.is_under_way) give_up("a request is not answered");
  sent = {due_ns, static_cast<std::uint32_t>(messages), true};
  ++requests_sent_;
  ++under_way_;
  progress_.sent += messages;
  publisher_.send(plan_.keys == 0 ? kNoKey : key, bodies_);
}

void Sender::receive(std::uint64_t wait_ns) {
  answered_.clear();
  publisher_.receive(wait_ns, answered_);
  const std::uint64_t now = now_ns();
  if (!answered_.empty()) heard_ns_ = now;
  if (answered_.empty() && wait_ns >= kStallNs && now - heard_ns_ > kStallNs)
    give_up("no request was answered in 30 s");
  for (const std::uint64_t number : answered_) {
    Request& done = request(number);
    if (!done.is_under_way) give_up("a request was answered twice");
    done.is_under_way = false;
    --under_way_;
    const std::uint32_t counted = step_ns_ > 0 ? done.messages : 1;
    for (std::uint32_t i = 0; i < counted; ++i) {
      const auto later = static_cast<std::uint64_t>(i * step_ns_);
      latencies_.push_back(microseconds(done.due_ns + later, now));
    }
  }
}

void Sender::await_answers() {
  while (under_way_ > 0)
    receive(kStallNs);
}

Receiver::Receiver(Consumer& consumer, const WirePlan& plan, Progress& progress)
    : consumer_(consumer),
      plan_(plan),
      progress_(progress),
      judge_(plan.keys) {}

bool Receiver::is_complete() const {
  // In this order: nothing is sent once it is not sending.
  return !progress_.is_sending.load() && judge_.count() >= progress_.sent.load() &&
         handling_.empty();
}

void Receiver::run() {
  std::uint64_t heard_ns = now_ns();
  std::uint64_t count = 0;
  while (!is_complete()) {
    receive();
    finish_handlers();
    if (judge_.count() != count) {
      count = judge_.count();
      heard_ns = now_ns();
      progress_.received.store(count);
      progress_.received.notify_all();
    } else if (progress_.sent.load() > count && now_ns() - heard_ns > kStallNs) {
      give_up("nothing came in 30 s, after " + std::to_string(count) + " messages");
    }
  }
  consumer_.finish();
}

void Receiver::receive() {
  std::uint64_t wait_ns = kLookNs;
  if (!handling_.empty()) {
    const std::uint64_t now = now_ns();
    wait_ns = handling_.front().end_ns > now ? handling_.front().end_ns - now : 0;
  }
  consumer_.receive(wait_ns, [this](std::string_view body, Receipt receipt) {
    const Stamp stamp = Stamp::read(body);
    judge_.received(stamp);
    const std::uint64_t now = now_ns();
    if (plan_.rate > 0) latencies_.push_back(microseconds(stamp.due_ns, now));
    if (plan_.keys > 0) receipt.key = stamp.key;
    if (plan_.handler_ns > 0) {
      handling_.push_back({now + plan_.handler_ns, std::move(receipt)});
      return;
    }
    judge_.done(stamp.key);
    done_.push_back(std::move(receipt));
  });
}

void Receiver::finish_handlers() {
  const std::uint64_t now = handling_.empty() ? 0 : now_ns();
  while (!handling_.empty() && handling_.front().end_ns <= now) {
    if (plan_.keys > 0) judge_.done(handling_.front().receipt.key);
    done_.push_back(std::move(handling_.front().receipt));
    handling_.pop_front();
  }
  if (done_.empty()) return;
  consumer_.acknowledge(done_);
  done_.clear();
}

}  // namespace ordo::bench

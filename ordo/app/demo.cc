#include "ordo/app/demo.h"

#include <algorithm>
#include <utility>

namespace ordo::app {
namespace {

using pubsub_client::IncomingMessage;
using pubsub_client::OutgoingMessage;

constexpr std::chrono::milliseconds kRoundTime{50};
constexpr std::uint64_t kRoundMessagesMax = 1'000;

std::string key_name(std::uint64_t number) {
  return "customer-" + std::to_string(number);
}

// What is there already is as good.
template <class Made>
Status made_or_there(const Result<Made>& made) {
  if (made || made.error().code == ErrorCode::already_exists) return {};
  return made.error();
}

Status gone_or_deleted(const Status& deleted) {
  if (deleted || deleted.error().code == ErrorCode::not_found) return {};
  return deleted;
}

}  // namespace

Demo::Demo(pubsub_client::Client& client, DemoOptions options)
    : client_(client),
      options_(std::move(options)),
      topic_("projects/" + options_.project + "/topics/ordo-demo"),
      subscription_("projects/" + options_.project + "/subscriptions/ordo-demo") {}

Status Demo::make() {
  if (Status made = made_or_there(client_.create_topic({.name = topic_})); !made) return made;
  pubsub_client::Subscription subscription{.name = subscription_, .topic = topic_};
  subscription.is_ordered = true;
  subscription.retry = pubsub_client::RetryBackoff{};
  return made_or_there(client_.create_subscription(subscription));
}

Status Demo::remove() {
  if (Status done = gone_or_deleted(client_.delete_subscription(subscription_)); !done) return done;
  return gone_or_deleted(client_.delete_topic(topic_));
}

// The bad keys are spread over all.
bool Demo::is_bad(const std::string& key) const {
  for (std::uint64_t bad = 0; bad < options_.bad_keys; ++bad) {
    if (key == key_name(bad * options_.keys / options_.bad_keys)) return true;
  }
  return false;
}

Status Demo::publish_due(TimePoint now) {
  const double seconds = std::chrono::duration<double>(now - began_).count();
  const auto wanted = static_cast<std::uint64_t>(seconds * static_cast<double>(options_.rate));
  const std::uint64_t count =
      std::min(wanted - std::min(wanted, counts_.published), kRoundMessagesMax);
  std::vector<std::vector<OutgoingMessage>> by_key(options_.keys);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = counts_.published + i;
    OutgoingMessage message;
    message.key = key_name(number % options_.keys);
    message.data = "order " + std::to_string(number / options_.keys + 1) + " of " + message.key;
    by_key[number % options_.keys].push_back(std::move(message));
  }
  std::vector<grpc_client::Stream> calls;
  for (const std::vector<OutgoingMessage>& messages : by_key) {
    if (!messages.empty()) calls.push_back(client_.begin_publish(topic_, messages));
  }
  for (grpc_client::Stream& call : calls) {
    const Result<std::vector<std::string>> ids = client_.end_publish(call);
    if (!ids) return ids.error();
  }
  counts_.published += count;
  return {};
}

Status Demo::receive(pubsub_client::PullStream& stream, TimePoint until, int wake_fd) {
  std::vector<std::string> good;
  std::vector<std::string> bad;
  do {
    const Result<std::vector<IncomingMessage>> some = stream.read(until, wake_fd);
    if (!some) return some.error();
    for (const IncomingMessage& message : *some)
      (is_bad(message.key) ? bad : good).push_back(message.ack_id);
    if (some->empty()) break;
  } while (good.size() < kRoundMessagesMax && client_.channel().clock().now() < until);
  if (!good.empty()) {
    if (Status acked = client_.acknowledge(subscription_, good); !acked) return acked;
  }
  if (!bad.empty()) {
    const Status back = client_.modify_deadline(subscription_, bad, std::chrono::seconds(0));
    if (!back) return back;
  }
  counts_.acknowledged += good.size();
  counts_.failed += bad.size();
  return {};
}

Status Demo::run(int wake_fd, const std::function<bool()>& stops,
                 const std::function<void(const DemoCounts&)>& show) {
  const Clock& clock = client_.channel().clock();
  pubsub_client::PullStream stream(client_, subscription_, {.messages_max = 1'000});
  began_ = clock.now();
  TimePoint show_at = began_;
  while (clock.now() - began_ < options_.time && !stops()) {
    const TimePoint now = clock.now();
    if (Status published = publish_due(now); !published) return published;
    if (Status received = receive(stream, now + kRoundTime, wake_fd); !received) return received;
    if (clock.now() < show_at) continue;
    show(counts_);
    show_at = clock.now() + std::chrono::seconds(1);
  }
  show(counts_);
  return {};
}

}  // namespace ordo::app

#include "ordo/app/redrive.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "ordo/adapters/pubsub_client/pull_stream.h"

namespace ordo::app {
namespace {

using pubsub_client::IncomingMessage;
using pubsub_client::OutgoingMessage;

constexpr std::string_view kOriginPrefix = "CloudPubSubDeadLetterSource";
constexpr std::int32_t kPageMax = 500;
constexpr std::size_t kAckIdsMax = 1'000;

std::string origin_of(const IncomingMessage& message) {
  const auto subscription = message.attributes.find("CloudPubSubDeadLetterSourceSubscription");
  const auto project = message.attributes.find("CloudPubSubDeadLetterSourceSubscriptionProject");
  if (subscription == message.attributes.end() || project == message.attributes.end()) return {};
  return "projects/" + project->second + "/subscriptions/" + subscription->second;
}

std::uint64_t number_of(const std::string& id) {
  std::uint64_t number = 0;
  std::from_chars(id.data(), id.data() + id.size(), number);
  return number;
}

OutgoingMessage without_origin(const IncomingMessage& message) {
  OutgoingMessage out{message.data, message.key, message.attributes};
  std::erase_if(out.attributes,
                [](const auto& attribute) { return attribute.first.starts_with(kOriginPrefix); });
  return out;
}

}  // namespace

Status Redrive::look() {
  pubsub_client::OperatorClient operators(client_);
  pubsub_client::PeekQuery query{.key = options_.key, .messages_max = kPageMax};
  do {
    Result<pubsub_client::PeekedRows> page = operators.peek(options_.subscription, query);
    if (!page) return page.error();
    for (const pubsub_client::PeekedRow& row : page->rows) {
      if (!row.is_readable) continue;
      ++groups_[{origin_of(row.message), row.message.key}];
      last_id_ = std::max(last_id_, number_of(row.message.id));
      ++found_;
    }
    query.page_token = page->next_page_token;
  } while (!query.page_token.empty());
  return {};
}

Status Redrive::check_order() {
  if (!options_.keeps_order) return {};
  const bool has_keys = std::any_of(groups_.begin(), groups_.end(),
                                    [](const auto& group) { return !group.first.second.empty(); });
  if (!has_keys) return {};
  const Result<pubsub_client::Subscription> subscription =
      client_.get_subscription(options_.subscription);
  if (!subscription) return subscription.error();
  if (subscription->is_ordered) return {};
  return Error{ErrorCode::failed_precondition,
               options_.subscription +
                   " does not keep the order of keys: use an ordered subscription of its topic, or "
                   "say --any-order"};
}

bool Redrive::is_wanted(const IncomingMessage& message) const {
  if (!options_.key.empty() && message.key != options_.key) return false;
  return number_of(message.id) <= last_id_;
}

// The others are put to those that are held.
Redrive::Messages Redrive::take_wanted(Messages& some, std::vector<std::string>& held) const {
  Messages wanted;
  for (IncomingMessage& message : some) {
    if (is_wanted(message)) {
      wanted.push_back(std::move(message));
    } else {
      held.push_back(std::move(message.ack_id));
    }
  }
  return wanted;
}

Result<std::string> Redrive::target_of(const IncomingMessage& message) {
  if (!options_.to.empty()) return options_.to;
  const std::string origin = origin_of(message);
  if (origin.empty()) {
    return Error{ErrorCode::failed_precondition, "message " + message.id +
                                                     " does not say where it came from: say where "
                                                     "it goes with --to"};
  }
  const auto known = targets_.find(origin);
  if (known != targets_.end()) return known->second;
  const Result<pubsub_client::Subscription> subscription = client_.get_subscription(origin);
  const bool is_gone = !subscription ? subscription.error().code == ErrorCode::not_found
                                     : !subscription->topic.starts_with("projects/");
  if (is_gone) {
    return Error{ErrorCode::failed_precondition,
                 "message " + message.id + " came from " + origin +
                     ", which is gone or has no topic: say where it goes with --to"};
  }
  if (!subscription) return subscription.error();
  return targets_[origin] = subscription->topic;
}

// In the order they came; a request has messages of one key or none.
Status Redrive::put_back(const Messages& messages) {
  struct Request {
    std::string topic;
    std::string key;
    std::vector<OutgoingMessage> messages;
  };
  std::vector<Request> requests;
  for (const IncomingMessage& message : messages) {
    const Result<std::string> topic = target_of(message);
    if (!topic) return topic.error();
    if (requests.empty() || requests.back().topic != *topic || requests.back().key != message.key)
      requests.push_back({*topic, message.key, {}});
    requests.back().messages.push_back(without_origin(message));
  }
  // All are on their way together, but for those of a key that has one under way.
  std::vector<grpc_client::Stream> calls;
  std::vector<std::string> ack_ids;
  std::optional<Error> failed;
  std::size_t ended = 0;
  std::size_t acked = 0;
  const auto end_calls = [&] {
    for (; ended < calls.size(); ++ended) {
      const Result<std::vector<std::string>> ids = client_.end_publish(calls[ended]);
      if (!ids && !failed) failed = ids.error();
      for (std::size_t i = 0; i < requests[ended].messages.size(); ++i, ++acked) {
        if (ids && !failed) ack_ids.push_back(messages[acked].ack_id);
      }
      if (ids) published_[requests[ended].topic] += requests[ended].messages.size();
    }
  };
  for (const Request& request : requests) {
    const bool is_under_way =
        !request.key.empty() &&
        std::any_of(requests.begin() + static_cast<std::ptrdiff_t>(ended),
                    requests.begin() + static_cast<std::ptrdiff_t>(calls.size()),
                    [&](const Request& other) { return other.key == request.key; });
    if (is_under_way) end_calls();
    if (failed) break;
    calls.push_back(client_.begin_publish(request.topic, request.messages));
  }
  end_calls();
  for (std::size_t begin = 0; begin < ack_ids.size(); begin += kAckIdsMax) {
    const std::size_t end = std::min(begin + kAckIdsMax, ack_ids.size());
    const std::vector<std::string> some(ack_ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                        ack_ids.begin() + static_cast<std::ptrdiff_t>(end));
    if (Status done = client_.acknowledge(options_.subscription, some); !done) return done;
    done_ += some.size();
  }
  if (failed) return *failed;
  return {};
}

// As good as it gets: what is not given back comes again when its deadline has passed.
void Redrive::give_back(const std::vector<std::string>& ack_ids) {
  for (std::size_t begin = 0; begin < ack_ids.size(); begin += kAckIdsMax) {
    const std::size_t end = std::min(begin + kAckIdsMax, ack_ids.size());
    const std::vector<std::string> some(ack_ids.begin() + static_cast<std::ptrdiff_t>(begin),
                                        ack_ids.begin() + static_cast<std::ptrdiff_t>(end));
    (void)client_.modify_deadline(options_.subscription, some, std::chrono::seconds(0));
  }
}

Status Redrive::run(int wake_fd, const std::function<bool()>& stops) {
  if (Status ordered = check_order(); !ordered) return ordered;
  const Clock& clock = client_.channel().clock();
  std::vector<std::string> held;
  Status outcome;
  {
    pubsub_client::PullStream stream(client_, options_.subscription,
                                     {.messages_max = kHeldMax + 1'000});
    TimePoint patience_ends = clock.now() + options_.patience;
    while (done_ < found_) {
      Result<Messages> some = stream.read(patience_ends, wake_fd);
      if (!some) {
        outcome = some.error();
        break;
      }
      const Messages wanted = take_wanted(*some, held);
      if (!wanted.empty()) patience_ends = clock.now() + options_.patience;
      outcome = put_back(wanted);
      if (!outcome || stops() || held.size() >= static_cast<std::size_t>(kHeldMax)) break;
      if (clock.now() >= patience_ends) break;
    }
  }
  give_back(held);
  return outcome;
}

}  // namespace ordo::app

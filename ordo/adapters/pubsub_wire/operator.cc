// ordo.operate.v1.Operator, all but Tail: which keys are stuck, what waits, and what to do about a
// key.
#include <algorithm>
#include <string>
#include <utility>

#include <google/protobuf/util/time_util.h>
#include <ordo/operate/v1/operator.pb.h>

#include "ordo/adapters/pubsub_wire/catalog_call.h"
#include "ordo/adapters/pubsub_wire/groups.h"
#include "ordo/broker/message_codec.h"

namespace ordo::pubsub_wire {
namespace {

namespace operate = ordo::operate::v1;
using google::protobuf::util::TimeUtil;

operate::BlockReason reason_of(broker::BlockReason reason) {
  using broker::BlockReason;
  switch (reason) {
    case BlockReason::in_flight:
      return operate::IN_FLIGHT;
    case BlockReason::backoff:
      return operate::BACKOFF;
    case BlockReason::no_consumer:
      return operate::NO_CONSUMER;
    case BlockReason::parked:
      return operate::PARKED;
    case BlockReason::paused:
      return operate::PAUSED;
    case BlockReason::dead_letter_gone:
      return operate::DEAD_LETTER_GONE;
    case BlockReason::storing:
      return operate::STORING;
    case BlockReason::data_loss:
      return operate::DATA_LOSS;
    case BlockReason::no_message:
      return operate::NO_MESSAGE;
  }
  return operate::BLOCK_REASON_UNSPECIFIED;
}

google::protobuf::Timestamp timestamp_of(WallTime time) {
  return TimeUtil::NanosecondsToTimestamp(time.time_since_epoch().count());
}

Error invalid(const char* message) {
  return {ErrorCode::invalid_argument, message};
}

// -------------------------------------------------------------------------------- ListKeys

operate::Key shown(const broker::KeyFacts& facts, TimePoint now, WallTime wall_now) {
  operate::Key key;
  key.set_ordering_key(facts.key);
  key.set_reason(reason_of(facts.reason));
  key.set_is_stuck(facts.is_stuck);
  if (facts.head_id != broker::MessageId())
    key.set_head_message_id(std::to_string(facts.head_id.value()));
  key.set_delivery_attempts(static_cast<std::int32_t>(facts.attempts));
  key.set_last_failure(facts.last_failure);
  const std::chrono::nanoseconds blocked =
      std::max<std::chrono::nanoseconds>(now - facts.blocked_since, std::chrono::nanoseconds(0));
  *key.mutable_blocked_since() = timestamp_of(wall_now - blocked);
  *key.mutable_blocked_time() = TimeUtil::NanosecondsToDuration(blocked.count());
  key.set_waiting(static_cast<std::int64_t>(facts.waiting));
  key.set_stream(static_cast<std::int64_t>(facts.holder.value()));
  key.set_deliveries_per_second(facts.per_second);
  return key;
}

void list_keys(const CorePtr& core, const AnswerPtr& answer, std::string_view bytes) {
  operate::ListKeysRequest request;
  if (!parse(request, bytes)) return answer->fail(malformed_request());
  KeyListOptions options;
  if (request.max_keys() < 0) return answer->fail(invalid("max_keys must be between 1 and 1000."));
  if (request.max_keys() > 0) options.count_max = static_cast<std::size_t>(request.max_keys());
  options.stuck_only = request.stuck_only();
  switch (request.order()) {
    case operate::ListKeysRequest::LONGEST_BLOCKED:
      options.order = broker::KeyOrder::longest_blocked;
      break;
    case operate::ListKeysRequest::DEEPEST:
      options.order = broker::KeyOrder::deepest;
      break;
    case operate::ListKeysRequest::HOTTEST:
      options.order = broker::KeyOrder::hottest;
      break;
    default:
      return answer->fail(invalid("order is none that is known."));
  }
  const Status asked = core->broker().list_keys(
      request.subscription(), options, [core, answer](std::vector<broker::KeyFacts>&& keys) {
        const TimePoint now = core->clock().now();
        const WallTime wall_now = core->clock().wall_now();
        operate::ListKeysResponse response;
        for (const broker::KeyFacts& facts : keys)
          *response.add_keys() = shown(facts, now, wall_now);
        answer->reply(http2::Slice::of(response.SerializeAsString()));
      });
  if (!asked) answer->fail(asked.error());
}

// -------------------------------------------------------------------------------- OperateKey

void operate_key(const CorePtr& core, const AnswerPtr& answer, std::string_view bytes) {
  using Verb = broker::OperateKey::Verb;
  operate::OperateKeyRequest request;
  if (!parse(request, bytes)) return answer->fail(malformed_request());
  Verb verb = Verb::pause;
  switch (request.verb()) {
    case operate::OperateKeyRequest::PAUSE:
      break;
    case operate::OperateKeyRequest::RESUME:
      verb = Verb::resume;
      break;
    case operate::OperateKeyRequest::SKIP:
      verb = Verb::skip_head;
      break;
    case operate::OperateKeyRequest::DEAD_LETTER:
      verb = Verb::dead_letter_head;
      break;
    default:
      return answer->fail(invalid("verb must be PAUSE, RESUME, SKIP or DEAD_LETTER."));
  }
  const Status asked = core->broker().operate_key(
      request.subscription(), request.ordering_key(), verb, [answer](const Status& done) {
        if (!done) return answer->fail(done.error());
        answer->reply(http2::Slice::of(operate::OperateKeyResponse().SerializeAsString()));
      });
  if (!asked) answer->fail(asked.error());
}

// -------------------------------------------------------------------------------- Peek

operate::PeekedMessage::State state_of(broker::PeekState state) {
  switch (state) {
    case broker::PeekState::ready:
      return operate::PeekedMessage::READY;
    case broker::PeekState::in_flight:
      return operate::PeekedMessage::IN_FLIGHT;
    case broker::PeekState::waiting:
      return operate::PeekedMessage::WAITING;
    case broker::PeekState::blocked:
      return operate::PeekedMessage::BLOCKED;
  }
  return operate::PeekedMessage::STATE_UNSPECIFIED;
}

operate::PeekedMessage shown(const broker::PeekedMessage& peeked) {
  operate::PeekedMessage message;
  if (peeked.message) {
    std::string wire;
    broker::append_wire(wire, peeked.message);
    (void)message.mutable_message()->ParseFromString(wire);
  }
  message.set_state(state_of(peeked.state));
  if (peeked.state == broker::PeekState::blocked) message.set_reason(reason_of(peeked.reason));
  message.set_delivery_attempts(static_cast<std::int32_t>(peeked.attempts));
  message.set_stream(static_cast<std::int64_t>(peeked.holder.value()));
  return message;
}

void peek(const CorePtr& core, const AnswerPtr& answer, std::string_view bytes) {
  operate::PeekRequest request;
  if (!parse(request, bytes)) return answer->fail(malformed_request());
  if (request.max_messages() < 0)
    return answer->fail(invalid("max_messages must be between 1 and 1000."));
  if (request.max_bytes() < 0)
    return answer->fail(invalid("max_bytes must be between 1 and 3145728."));
  PeekOptions options;
  options.key = request.ordering_key();
  options.page_token = request.page_token();
  if (request.max_messages() > 0)
    options.messages_max = static_cast<std::size_t>(request.max_messages());
  if (request.max_bytes() > 0) options.bytes_max = static_cast<std::size_t>(request.max_bytes());
  const Status asked =
      core->broker().peek(request.subscription(), options, [answer](Result<PeekPage>&& page) {
        if (!page) return answer->fail(page.error());
        operate::PeekResponse response;
        for (const broker::PeekedMessage& message : page->messages)
          *response.add_messages() = shown(message);
        response.set_next_page_token(page->next_page_token);
        answer->reply(http2::Slice::of(response.SerializeAsString()));
      });
  if (!asked) answer->fail(asked.error());
}

// -------------------------------------------------------------------------------- GetStats

std::int64_t number(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

operate::SubscriptionStats shown(const broker::SubscriptionConfig& config,
                                 const broker::SubscriptionStats& stats) {
  operate::SubscriptionStats out;
  out.set_subscription(config.name);
  out.set_topic(config.topic);
  out.set_backlog(number(stats.waiting + stats.leased + stats.unread));
  out.set_in_flight(number(stats.leased));
  out.set_acknowledged(number(stats.acked));
  out.set_dead_lettered(number(stats.dead_lettered));
  out.set_skipped(number(stats.skipped));
  out.set_deliveries(number(stats.deliveries));
  out.set_redeliveries(number(stats.redeliveries));
  out.set_keys(number(stats.lanes));
  out.set_parked_keys(number(stats.parked_lanes));
  if (stats.oldest_unacked)
    *out.mutable_oldest_unacknowledged() = timestamp_of(*stats.oldest_unacked);
  return out;
}

Result<operate::Stats> get_stats(ServiceCore& core, const operate::GetStatsRequest& request) {
  Broker& broker = core.broker();
  const BrokerStats stats = broker.stats();
  operate::Stats out;
  out.set_topics(number(stats.topics));
  out.set_messages_stored(number(stats.store.messages));
  out.set_messages_published(number(stats.published));
  out.set_publish_failures(number(stats.publish_failures));
  out.set_streams(number(stats.consumers));
  out.set_memory_bytes(number(stats.memory_bytes));
  out.set_disk_bytes(number(stats.store.disk_bytes));
  out.set_disk_free_bytes(number(stats.store.disk_free_bytes));
  out.set_failure(stats.failure.empty() ? stats.store.failure : stats.failure);
  const std::string& wanted = request.subscription();
  for (const broker::SubscriptionConfig& config : broker.subscription_configs()) {
    if (!wanted.empty() && config.name != wanted) continue;
    const Result<broker::SubscriptionStats> of_one = broker.subscription_stats(config.name);
    if (of_one) *out.add_subscriptions() = shown(config, *of_one);
    if (!of_one && !wanted.empty()) return of_one.error();
  }
  if (!wanted.empty() && out.subscriptions().empty())
    return Error{ErrorCode::not_found, "Resource not found (resource=" + wanted + ")."};
  return out;
}

}  // namespace

void add_operator_calls(Methods& methods, const CorePtr& core) {
  const std::string service = "/ordo.operate.v1.Operator/";
  const auto add = [&](const char* name, auto serve) {
    methods.add(service + name, [core, serve](const AnswerPtr& answer, std::string_view bytes) {
      serve(core, answer, bytes);
    });
  };
  add("ListKeys", list_keys);
  add("OperateKey", operate_key);
  add("Peek", peek);
  add_catalog_call(methods, core, service + "GetStats", get_stats);
}

}  // namespace ordo::pubsub_wire

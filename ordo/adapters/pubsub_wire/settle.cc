// Acknowledge and ModifyAckDeadline.
#include "ordo/adapters/pubsub_wire/settle.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>

#include "ordo/adapters/pubsub_wire/catalog_call.h"
#include "ordo/adapters/pubsub_wire/groups.h"
#include "ordo/adapters/pubsub_wire/requests.h"
#include "ordo/broker/resource_name.h"

namespace ordo::pubsub_wire {

using broker::SettleOutcome;

ReadIds read_ids(const broker::AckIdText& codec, const std::vector<std::string_view>& texts) {
  ReadIds read;
  read.ids.reserve(texts.size());
  read.texts.reserve(texts.size());
  for (const std::string_view text : texts) {
    const Result<broker::AckId> id = codec.decode(text);
    if (id) {
      read.ids.push_back(*id);
      read.texts.push_back(text);
    } else {
      read.malformed.push_back(text);
    }
  }
  return read;
}

Error invalid_ack_id(std::string_view text) {
  constexpr std::size_t kShownMax = 200;
  return {ErrorCode::invalid_argument,
          "Invalid ack id (ack_id=" + std::string(text.substr(0, kShownMax)) + ")"};
}

void FailedIds::add(std::string_view text, SettleOutcome outcome) {
  if (outcome == SettleOutcome::stale) permanent.emplace_back(text);
  if (outcome == SettleOutcome::not_now) transient.emplace_back(text);
}

Error error_of(const FailedIds& failed) {
  if (failed.permanent.empty())
    return {ErrorCode::unavailable, "Some acknowledgement ids in the request could not be stored."};
  return {ErrorCode::invalid_argument,
          "Some acknowledgement ids in the request were invalid. This could be because the "
          "acknowledgement ids have expired or the acknowledgement ids were malformed."};
}

std::string details_of(const FailedIds& failed, std::size_t bytes_max) {
  constexpr std::size_t kOtherBytes = 512;  // The status around the ids.
  constexpr std::size_t kEntryBytes = 16;   // Around an id and what became of it.
  std::size_t room = bytes_max - std::min(bytes_max, kOtherBytes);
  const Error error = error_of(failed);
  google::rpc::ErrorInfo info;
  info.set_reason("EXACTLY_ONCE_ACKID_FAILURE");
  info.set_domain("pubsub.googleapis.com");
  const auto name = [&](const std::vector<std::string>& ids, std::string_view fate) {
    for (const std::string& id : ids) {
      const std::size_t bytes = id.size() + fate.size() + kEntryBytes;
      if (bytes > room) continue;  // Of an id that is none of ours, it may be long.
      room -= bytes;
      (*info.mutable_metadata())[id] = fate;
    }
  };
  name(failed.transient, "TRANSIENT_FAILURE_SERVICE_UNAVAILABLE");
  name(failed.permanent, "PERMANENT_FAILURE_INVALID_ACK_ID");
  name(failed.repeatable, "TRANSIENT_FAILURE_OTHERS_FAILED");
  google::rpc::Status status;
  status.set_code(static_cast<std::int32_t>(error.code));
  status.set_message(error.message);
  status.add_details()->PackFrom(info);
  return status.SerializeAsString();
}

namespace {

// One call whose ids are with the broker.
struct Settling {
  CorePtr core;
  AnswerPtr answer;
  bool is_exactly_once = false;
  bool is_repeatable = false;        // To ask again for what counted does no harm.
  std::vector<std::string> texts{};  // Of the ids, for exactly-once.
  FailedIds failed{};

  void finish(const std::vector<SettleOutcome>& outcomes) {
    bool is_stored = true;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (is_exactly_once) failed.add(texts[i], outcomes[i]);
      if (outcomes[i] == SettleOutcome::not_now) is_stored = false;
    }
    if (!failed.empty()) {
      for (std::size_t i = 0; is_repeatable && i < outcomes.size(); ++i) {
        if (outcomes[i] == SettleOutcome::done) failed.repeatable.push_back(std::move(texts[i]));
      }
      return answer->fail(error_of(failed), details_of(failed, answer->details_bytes_max()));
    }
    if (!is_stored)
      return answer->fail({ErrorCode::unavailable, "The acknowledgement could not be stored."});
    answer->reply(http2::Slice{});
  }
};

using SettleCall = Status (*)(Broker&, const SettleRequest&, std::vector<broker::AckId>,
                              broker::OnSettled);

void settle(const CorePtr& core, const AnswerPtr& answer,
            const std::optional<SettleRequest>& request, SettleCall ask) {
  if (!request) return answer->fail(malformed_request());
  const auto name =
      broker::ResourceName::parse(request->subscription, broker::Collection::subscriptions);
  if (!name) return answer->fail(name.error());
  const auto settings = core->broker().settings_of(std::string(request->subscription));
  if (!settings) return answer->fail(settings.error());
  if (request->ack_ids.empty())
    return answer->fail({ErrorCode::invalid_argument, "No ack ids specified."});
  const bool is_exactly_once = (*settings)->enable_exactly_once_delivery;
  ReadIds read = read_ids(core->ack_ids(), request->ack_ids);
  if (!read.malformed.empty() && !is_exactly_once)
    return answer->fail(invalid_ack_id(read.malformed.front()));
  auto settling = std::make_shared<Settling>(Settling{
      core, answer, is_exactly_once, is_exactly_once && request->ack_deadline_seconds > 0});
  if (is_exactly_once) settling->texts.assign(read.texts.begin(), read.texts.end());
  for (const std::string_view text : read.malformed)
    settling->failed.add(text, SettleOutcome::stale);
  if (read.ids.empty()) return settling->finish({});
  const std::size_t count = read.ids.size();
  if (!core->begin_settling(count))
    return answer->fail({ErrorCode::unavailable, "Too many acknowledgements are under way."});
  Status asked = ask(core->broker(), *request, std::move(read.ids),
                     [settling, count](std::vector<SettleOutcome>&& outcomes) {
                       settling->core->end_settling(count);
                       settling->finish(outcomes);
                     });
  if (asked) return;
  core->end_settling(count);
  answer->fail(asked.error());
}

Status ask_acknowledge(Broker& broker, const SettleRequest& request, std::vector<broker::AckId> ids,
                       broker::OnSettled on_settled) {
  return broker.acknowledge(std::string(request.subscription), std::move(ids),
                            std::move(on_settled));
}

Status ask_modify(Broker& broker, const SettleRequest& request, std::vector<broker::AckId> ids,
                  broker::OnSettled on_settled) {
  return broker.modify_ack_deadline(std::string(request.subscription), std::move(ids),
                                    std::chrono::seconds(request.ack_deadline_seconds),
                                    std::move(on_settled));
}

}  // namespace

void add_settle_calls(Methods& methods, const CorePtr& core) {
  methods.add("/google.pubsub.v1.Subscriber/Acknowledge",
              [core](const AnswerPtr& answer, std::string_view bytes) {
                settle(core, answer, read_acknowledge(bytes), ask_acknowledge);
              });
  methods.add("/google.pubsub.v1.Subscriber/ModifyAckDeadline",
              [core](const AnswerPtr& answer, std::string_view bytes) {
                settle(core, answer, read_modify_ack_deadline(bytes), ask_modify);
              });
}

}  // namespace ordo::pubsub_wire

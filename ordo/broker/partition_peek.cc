// Looking at messages without touching them: from memory, or with one read.
#include <algorithm>
#include <utility>

#include "ordo/broker/partition_core.h"

namespace ordo::broker {
namespace {

PeekReply refusal(RequestNumber request, Error why) {
  PeekReply reply;
  reply.request = request;
  reply.error = std::move(why);
  return reply;
}

}  // namespace

void Partition::Core::on(Peek&& input, Step& step) {
  const Subscription* subscription = find(input.subscription);
  if (subscription == nullptr) {
    step.emit(refusal(input.request, {ErrorCode::not_found, "The subscription does not exist"}));
    return;
  }
  std::optional<Offset> missing;
  PeekReply reply = subscription->peek(input, nullptr, missing);
  reply.request = input.request;
  if (!missing || !reply.messages.empty()) {
    step.emit(std::move(reply));
    return;
  }
  input.from = *missing;
  const std::uint64_t serial = ++last_serial_;
  const TicketNumber ticket = common_.tickets.issue(
      {TicketUse::Kind::read_peek, input.subscription, kNoIndex, serial, *missing});
  step.emit(Read{ticket, *missing, std::min(input.offsets_max, common_.options.read_messages_max),
                 common_.options.read_bytes_max});
  pending_peeks_.emplace(serial, std::move(input));
}

void Partition::Core::peek_read(const TicketUse& use, const Result<ReadBatches>& result,
                                Step& step) {
  const auto found = pending_peeks_.find(use.serial);
  const Peek asked = std::move(found->second);
  pending_peeks_.erase(found);
  const Subscription* subscription = find(use.cursor);
  if (subscription == nullptr) {
    step.emit(refusal(asked.request, {ErrorCode::not_found, "The subscription does not exist"}));
    return;
  }
  PeekReply reply;
  if (result && !result->batches.empty()) {
    std::optional<Offset> missing;
    reply = subscription->peek(asked, &*result, missing);
  } else if (!result && result.error().code == ErrorCode::data_loss) {
    const bool is_settled = subscription->acked().contains(use.offset);  // Meanwhile.
    if (asked.key.empty() && !is_settled)
      reply.messages.push_back(subscription->peek_unreadable(use.offset));
    if (use.offset.next() < common_.end) reply.next = use.offset.next();
  } else {
    reply.error =
        result ? Error{ErrorCode::unavailable, "Nothing could be read; try again"} : result.error();
  }
  reply.request = asked.request;
  step.emit(std::move(reply));
}

}  // namespace ordo::broker

#include "ordo/adapters/order_tcp/connection.h"

#include <utility>

#include "ordo/adapters/order_tcp/reply_encoder.h"
#include "ordo/core/check.h"

namespace ordo::order_tcp {

using gateway::Refusal;

Connection::Connection(gateway::ReplyAddress address, const ConnectionLimits& limits,
                       BlockStore& store, ConnectionCounters& counters)
    : address_(address),
      limits_(limits),
      counters_(counters),
      decoder_(limits.request_bytes_max),
      output_(store),
      gaps_(limits.gap_ids_max) {}

void Connection::receive(gateway::TaskPort& port, std::string_view bytes) {
  ORDO_CHECK(wants_input());
  const std::string_view rest = decode(port, bytes);
  held_.assign(rest);
  held_from_ = 0;
}

void Connection::end_input(gateway::TaskPort& port) {
  ORDO_CHECK(wants_input());
  is_end_held_ = true;
  continue_input(port);
}

bool Connection::continue_input(gateway::TaskPort& port) {
  if (!can_continue()) return false;
  const std::string_view rest = decode(port, std::string_view(held_).substr(held_from_));
  held_from_ = held_.size() - rest.size();
  if (!rest.empty()) return true;
  forget_held();
  if (is_end_held_ && may_decode()) take_end();
  return true;
}

void Connection::stop_input() {
  is_input_ended_ = true;
  is_end_held_ = false;
  forget_held();
}

void Connection::answer(const gateway::Reply& reply) {
  ORDO_CHECK(outstanding_ > 0);
  --outstanding_;
  append_reply(output_, encoding(), reply);
}

// Returns what is left when a limit is met, or behind a STATS.
std::string_view Connection::decode(gateway::TaskPort& port, std::string_view bytes) {
  while (may_decode()) {
    const auto incoming = decoder_.next(bytes);
    if (!incoming) return {};
    handle(port, *incoming);
    if (is_input_ended_) return {};
    if (incoming->kind == Incoming::Kind::stats) return bytes;  // Dear: others have their turn.
  }
  return bytes;
}

void Connection::take_end() {
  is_end_held_ = false;
  is_input_ended_ = true;
  const auto incoming = decoder_.finish();
  if (!incoming) return;
  counters_.malformed.add();
  reject(*incoming, incoming->refusal, gateway::kNoPartition, incoming->words);
}

void Connection::handle(gateway::TaskPort& port, const Incoming& incoming) {
  switch (incoming.kind) {
    case Incoming::Kind::task:
      submit(port, incoming);
      return;
    case Incoming::Kind::ping:
      append_pong(output_, encoding());
      return;
    case Incoming::Kind::stats:
      append_stats(output_, encoding(), port.stats_line());
      return;
    case Incoming::Kind::resume:
      gaps_.remove(*incoming.correlation_id);
      append_resumed(output_, encoding(), *incoming.correlation_id);
      return;
    case Incoming::Kind::rejected:
      counters_.malformed.add();
      reject(incoming, incoming.refusal, gateway::kNoPartition, incoming.words);
      note_gap(incoming);
      return;
    case Incoming::Kind::broken:
      counters_.malformed.add();
      reject(incoming, incoming.refusal, gateway::kNoPartition, incoming.words);
      break_off();
      return;
  }
}

void Connection::submit(gateway::TaskPort& port, const Incoming& incoming) {
  counters_.requests.add();
  const std::int64_t id = *incoming.correlation_id;
  if (id > 0 && gaps_.contains(id)) {
    counters_.refused.add();
    reject(incoming, Refusal::gap, gateway::kNoPartition, {});
    return;
  }
  const gateway::Admitted admitted = port.submit({.from = address_,
                                                  .id = incoming.request_id,
                                                  .correlation_id = id,
                                                  .payload = incoming.words});
  if (admitted.refusal == Refusal::none) {
    ++outstanding_;
    return;
  }
  counters_.refused.add();
  reject(incoming, admitted.refusal, admitted.partition, {});
  note_gap(incoming);
}

void Connection::reject(const Incoming& incoming, Refusal refusal, std::int32_t partition,
                        std::string_view detail) {
  append_rejection(output_, encoding(),
                   {.request_id = incoming.request_id,
                    .correlation_id = incoming.correlation_id,
                    .partition = partition,
                    .refusal = refusal,
                    .detail = detail});
}

// A task of this id has been refused: in strict mode its successors are, too.
void Connection::note_gap(const Incoming& incoming) {
  if (!limits_.strict_gaps || incoming.correlation_id.value_or(0) <= 0) return;
  if (gaps_.add(*incoming.correlation_id)) return;
  reject({}, Refusal::gap, gateway::kNoPartition, "too many correlation ids have gaps");
  break_off();
}

void Connection::break_off() {
  stop_input();
  is_broken_ = true;
}

void Connection::forget_held() {
  constexpr std::size_t kCapacityMax = 4096;
  held_.clear();
  held_from_ = 0;
  if (held_.capacity() > kCapacityMax) held_.shrink_to_fit();
}

}  // namespace ordo::order_tcp

// What clients are told of ack ids that did not count, and how ack ids are read.
//
//   ReadIds read = read_ids(core.ack_ids(), request.ack_ids);
//   if (!read.malformed.empty() && !is_exactly_once) return invalid_ack_id(read.malformed.front());
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/broker/ack_id_text.h"
#include "ordo/broker/partition_io.h"
#include "ordo/core/result.h"

namespace ordo::pubsub_wire {

struct ReadIds {
  std::vector<broker::AckId> ids;
  std::vector<std::string_view> texts;      // Of ids, in their order.
  std::vector<std::string_view> malformed;  // What we did not write.
};

ReadIds read_ids(const broker::AckIdText& codec, const std::vector<std::string_view>& texts);

Error invalid_ack_id(std::string_view text);

// Of an exactly-once subscription: the ids that did not count, and why. Ids that are not named did.
struct FailedIds {
  std::vector<std::string> permanent;  // Expired, superseded or malformed.
  std::vector<std::string> transient;  // They could not be stored; to be tried again.
  // They counted, and doing it again changes nothing: named beside those that did not, to be tried
  // again. Most clients take what a failed call does not name for failed, and forget the message.
  std::vector<std::string> repeatable{};

  bool empty() const { return permanent.empty() && transient.empty(); }
  void add(std::string_view text, broker::SettleOutcome outcome);
};

// The status of a call with failed ids.
Error error_of(const FailedIds& failed);
// Its details: a serialised google.rpc.Status with an ErrorInfo, of at most `bytes_max` bytes. When
// not all ids have room, those that could not be stored come first, and those that counted last;
// clients take what is not named for failed, since the call has.
std::string details_of(const FailedIds& failed, std::size_t bytes_max);

}  // namespace ordo::pubsub_wire

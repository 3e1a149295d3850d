// The fence of a delivery as an attribute of its message, for those who get it over a network.
//
//   labels: ordo-fence-attribute=true          // of the subscription
//   message.attributes["ordo-fence"]           // "17": rises with every delivery of its key
//
// Whoever writes elsewhere stores the number beside what he writes and refuses smaller ones: what
// comes late from a consumer that was given up changes nothing.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "ordo/broker/config.h"

namespace ordo::broker {

inline constexpr std::string_view kFenceLabel = "ordo-fence-attribute";
// One that a publisher has set is not shown then.
inline constexpr std::string_view kFenceAttribute = "ordo-fence";

// REQUIRES: the labels were checked.
inline bool shows_fence(const Labels& labels) {
  if (labels.empty()) return false;
  const auto found = labels.find(std::string(kFenceLabel));
  return found != labels.end() && found->second == "true";
}

}  // namespace ordo::broker

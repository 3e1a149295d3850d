// PubsubNames: a topic and a subscription of one run. Other runs have others, so that nothing that
// is left of one, or still being delivered, meets the next.
//
// Threads: a value.
#pragma once

#include <string>
#include <unistd.h>

#include "bench/support/usage.h"

namespace ordo::bench {

struct PubsubNames {
  std::string topic;
  std::string subscription;

  static PubsubNames of_this_run() {
    const std::string tail =
        "wire-" + std::to_string(::getpid()) + "-" + std::to_string(now_ns() % 1'000'000'000);
    return {"projects/bench/topics/" + tail, "projects/bench/subscriptions/" + tail};
  }

  // The ordering key of a number.
  static std::string key(std::uint64_t number) { return "key-" + std::to_string(number); }

  static constexpr int kAckDeadlineSeconds = 600;
};

}  // namespace ordo::bench

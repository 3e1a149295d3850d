// The words at the end of a run: what was done, and with --stats how it went.
//
// Threads: none; pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "ordo/app/delivery.h"
#include "ordo/app/map_options.h"
#include "ordo/pool/options.h"

namespace ordo::app {

struct RunAccount {
  const DeliveryCounts& counts;
  const PoolStats& pool;
  std::uint64_t skipped = 0;
  std::uint64_t left_over = 0;
  std::chrono::nanoseconds elapsed{0};
};

// "12 jobs done, 1 failed, 7 lines taken in and not done (the first is line 14)".
std::string account_line(const RunAccount& account);

// Several lines, each ending with a newline.
std::string stats_text(const RunAccount& account);

}  // namespace ordo::app

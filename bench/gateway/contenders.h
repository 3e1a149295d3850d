// The contenders of bench_gateway: what server each needs, and one run of one of them.
//
//   Measures run = run_contender("redis_set", {.pipelining = 16}, "bin/ordo");
//
// Threads: one.
#pragma once

#include <string>
#include <string_view>

#include "bench/gateway/load.h"
#include "bench/support/measures.h"

namespace ordo::bench {

struct GatewayContender {
  std::string_view name;
  std::string_view title;
  bool own_client = true;  // Driven by our load; else by redis-benchmark, in a closed loop only.
};

inline constexpr GatewayContender kGatewayContenders[] = {
    {"ordo_binary", "Ordo, binary"},
    {"ordo_text", "Ordo, text"},
    {"ordo_two", "Ordo, binary, 2 I/O threads"},
    {"redis_set", "redis, SET"},
    {"redis_get", "redis, GET"},
    {"redis_ping", "redis, PING"},
    {"benchmark_set", "redis, SET (redis-benchmark)", false},
    {"benchmark_get", "redis, GET (redis-benchmark)", false},
    {"echo", "bare epoll echo"},
};

// Where redis is; empty when it is not installed.
std::string find_redis(std::string_view program);

// Starts the server of `name`, drives it as `plan` says (dialect, port and server are filled in)
// and ends it. `ordo` is the path of our program.
Measures run_contender(std::string_view name, LoadPlan plan, const std::string& ordo);

// The memory of our gateway after some ids, and after `count` more that are used once each:
// requests, rss_before_bytes, rss_growth_bytes, errors.
Measures run_ids(double count, const std::string& ordo);

}  // namespace ordo::bench

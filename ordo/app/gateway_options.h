// GatewayOptions: everything that can be said to `ordo gateway`; ClientOptions: to its client.
//
//   Result<GatewayOptions> options = gateway_options(settings);
//   if (!options) return options.error();  // ORDO_GATEWAY_BUDGET: '0' is not a number from ...
//
// Threads: pure functions and plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ordo/app/host_port.h"
#include "ordo/app/settings.h"
#include "ordo/core/result.h"

namespace ordo::app {

struct GatewayOptions {
  HostPort listen{"127.0.0.1", 7070};
  std::optional<HostPort> admin;  // Nothing: no HTTP.
  std::size_t partitions = 4;
  std::size_t budget = 1024;
  std::size_t per_id = 64;
  bool strict_gaps = false;
  bool callers_run = true;
  std::size_t io_threads = 1;
  std::size_t connections_max = 10'000;
  std::chrono::nanoseconds drain = std::chrono::seconds(10);
};

struct ClientOptions {
  std::string connect = "127.0.0.1:7070";
  bool binary = false;
  bool raw = false;
  std::size_t window = 256;  // Requests sent and not yet answered.
};

// The settings of `ordo gateway`, in the order of its help.
const std::vector<SettingRule>& gateway_rules();

// REQUIRES: `settings` has gateway_rules().
Result<GatewayOptions> gateway_options(const Settings& settings);

}  // namespace ordo::app

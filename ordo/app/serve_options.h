// ServeOptions: everything that can be said to `ordo serve`.
//
//   Result<ServeOptions> options = serve_options(settings);
//   if (!options) return options.error();  // --listen: '0.0.0.0:8085' can be reached from ...
//
// Threads: pure functions and plain values.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "ordo/adapters/store_rocksdb/rocksdb_store.h"
#include "ordo/app/host_port.h"
#include "ordo/app/settings.h"
#include "ordo/core/log.h"
#include "ordo/core/result.h"

namespace ordo::app {

struct ServeOptions {
  HostPort listen{"127.0.0.1", 8085};
  std::string data = "ordo-data";
  std::chrono::nanoseconds min_ack_deadline = std::chrono::seconds(10);
  std::size_t ordered_window = 1;
  store_rocksdb::SyncPolicy fsync = store_rocksdb::SyncPolicy::commit;
  std::chrono::nanoseconds fsync_interval = std::chrono::milliseconds(50);
  std::size_t memory_max = std::size_t{2} << 30;
  std::size_t partitions_max = 256;  // Over all topics; a topic has 4 unless it says otherwise.
  std::size_t threads = 2;
  std::size_t io_threads = 1;
  std::size_t connections_max = 10'000;
  std::chrono::nanoseconds notice{};
  std::chrono::nanoseconds drain = std::chrono::seconds(10);
  LogFormat log = LogFormat::text;
};

// The settings of `ordo serve`, in the order of its help.
const std::vector<SettingRule>& serve_rules();

// Files that it has open beside the connections of its clients.
std::size_t serve_own_files();

// REQUIRES: `settings` has serve_rules().
Result<ServeOptions> serve_options(const Settings& settings);

}  // namespace ordo::app

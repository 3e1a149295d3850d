#include "ordo/app/serve_options.h"

#include "ordo/adapters/push_http/poster.h"
#include "ordo/app/setting_reader.h"

namespace ordo::app {

const std::vector<SettingRule>& serve_rules() {
  static const std::vector<SettingRule> rules = {
      {"listen", "ADDR:PORT", "127.0.0.1:8085", "Where everything is; port 0 takes a free one"},
      {"data", "DIR", "ordo-data", "Where messages are kept; made if it does not exist"},
      {"min_ack_deadline", "D", "10s", "Shortest ack deadline that a subscription may have"},
      {"ordered_window", "N", "1", "Messages of a key in flight, of subscriptions that do not say"},
      {"fsync",
       "WHEN",
       "commit",
       "commit: before a publish is answered; interval: soon after; os: when the system likes",
       {"commit", "interval", "os"}},
      {"fsync_interval", "D", "50ms", "How soon, with --fsync interval"},
      {"memory", "SIZE", "2GiB", "What messages and positions may take in memory"},
      {"max_partitions", "N", "256", "Of all topics, 4 for each; more have less memory each"},
      {"threads", "N", "2", "Threads that run partitions"},
      {"io_threads", "N", "1", "Threads that read and write sockets"},
      {"max_connections", "N", "10000", "Clients at the same time; more are refused"},
      {"notice", "D", "0", "How long /readyz says no before new connections are refused"},
      {"drain", "D", "10s", "How long to finish what runs when told to stop"},
      {"log", "FORM", "text", "text, or json: one object for each line", {"text", "json"}},
  };
  return rules;
}

std::size_t serve_own_files() {
  constexpr std::size_t kStore = 512;
  return kStore + push_http::PosterOptions().connections_max;
}

Result<ServeOptions> serve_options(const Settings& settings) {
  using store_rocksdb::SyncPolicy;
  ServeOptions options;
  SettingReader reader(settings);
  reader.address("listen", options.listen);
  if (!options.listen.is_loopback()) {
    reader.refuse("listen",
                  "can be reached from other machines, and the broker knows neither encryption nor "
                  "passwords yet; listen on 127.0.0.1 or [::1], behind a proxy that knows them");
  }
  options.data = settings.at("data").text;
  if (options.data.empty()) reader.refuse("data", "is no directory");
  reader.time("min_ack_deadline", options.min_ack_deadline);
  if (!reader.error() && (options.min_ack_deadline < std::chrono::seconds(1) ||
                          options.min_ack_deadline > std::chrono::seconds(600))) {
    reader.refuse("min_ack_deadline", "is not between 1s and 600s");
  }
  reader.count("ordered_window", {1, 1'000}, options.ordered_window);
  constexpr SyncPolicy kPolicies[] = {SyncPolicy::commit, SyncPolicy::interval, SyncPolicy::os};
  options.fsync = kPolicies[reader.choice("fsync", {"commit", "interval", "os"})];
  reader.time("fsync_interval", options.fsync_interval);
  reader.bytes("memory", options.memory_max);
  if (!reader.error() && options.memory_max < std::size_t{16} << 20)
    reader.refuse("memory", "is less than 16MiB");
  reader.count("threads", {1, 64}, options.threads);
  reader.count("io_threads", {1, 64}, options.io_threads);
  reader.count("max_partitions", {1, 4096}, options.partitions_max);
  reader.count("max_connections", {1, 1'000'000}, options.connections_max);
  reader.time_or_zero("notice", options.notice);
  reader.time("drain", options.drain);
  options.log = reader.choice("log", {"text", "json"}) == 0 ? LogFormat::text : LogFormat::json;
  if (reader.error()) return *reader.error();
  return options;
}

}  // namespace ordo::app

#include "ordo/app/gateway_options.h"

#include "ordo/app/setting_reader.h"

namespace ordo::app {
namespace {

void read_addresses(const Settings& settings, SettingReader& reader, GatewayOptions& options) {
  bool allow_remote = false;
  reader.truth("allow_remote", allow_remote);
  reader.address("listen", options.listen);
  if (settings.at("admin").text != "off") {
    options.admin.emplace();
    reader.address("admin", *options.admin);
  }
  const char* why =
      "can be reached from other machines, and the gateway knows neither encryption nor "
      "passwords; add --allow-remote if the network around it is to be trusted";
  if (!allow_remote && !options.listen.is_loopback()) reader.refuse("listen", why);
  if (!allow_remote && options.admin && !options.admin->is_loopback()) reader.refuse("admin", why);
}

}  // namespace

const std::vector<SettingRule>& gateway_rules() {
  static const std::vector<SettingRule> rules = {
      {"listen", "ADDR:PORT", "127.0.0.1:7070", "Where clients connect; port 0 takes a free one"},
      {"admin", "ADDR:PORT", "127.0.0.1:7071", "Metrics and health over HTTP; off: none"},
      {"partitions", "N", "4", "Sets of ids, each with a ring and a thread of its own"},
      {"budget", "N", "1024", "Tasks of a partition admitted and not finished; above: REJ busy"},
      {"per_id", "N", "64", "The same of one correlation id; above: REJ id-busy"},
      {"strict_gaps", "", "false", "After a refusal refuse what follows of that id, until RESUME"},
      {"run",
       "MODE",
       "inline",
       "inline: a partition that sleeps is run by the thread that has work for it; threads: never",
       {"inline", "threads"}},
      {"io_threads", "N", "1", "Threads that read and write sockets"},
      {"max_connections", "N", "10000", "Clients at the same time; more are refused"},
      {"drain", "D", "10s", "How long to finish what was admitted when told to stop"},
      {"allow_remote", "", "false", "Listen on addresses that other machines can reach"},
  };
  return rules;
}

Result<GatewayOptions> gateway_options(const Settings& settings) {
  GatewayOptions options;
  SettingReader reader(settings);
  read_addresses(settings, reader, options);
  reader.count("partitions", {1, 256}, options.partitions);
  reader.count("budget", {1, 1'048'576}, options.budget);
  reader.count("per_id", {1, 1'048'576}, options.per_id);
  reader.truth("strict_gaps", options.strict_gaps);
  reader.count("io_threads", {1, 64}, options.io_threads);
  reader.count("max_connections", {1, 1'000'000}, options.connections_max);
  reader.time("drain", options.drain);
  options.callers_run = reader.choice("run", {"inline", "threads"}) == 0;
  if (reader.error()) return *reader.error();
  return options;
}

}  // namespace ordo::app

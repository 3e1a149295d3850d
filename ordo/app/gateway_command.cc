#include "ordo/app/gateway_command.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <unistd.h>

#include "ordo/adapters/admin_http/admin_server.h"
#include "ordo/adapters/oms_toml/oms_toml.h"
#include "ordo/adapters/order_tcp/server.h"
#include "ordo/app/config_file.h"
#include "ordo/app/file_limit.h"
#include "ordo/app/gateway_metrics.h"
#include "ordo/app/map_options.h"
#include "ordo/app/service_signals.h"
#include "ordo/app/write_all.h"
#include "ordo/core/clock.h"
#include "ordo/core/log.h"
#include "ordo/gateway/gateway.h"

namespace ordo::app {
namespace {

// Everything that can be said, in force.
struct Plan {
  std::string config;  // The file; empty: none.
  GatewayOptions options;
  gateway::OmsSettings oms;
};

int complain(const std::string& message) {
  log_line("ordo: " + message);
  return kExitError;
}

// Without a file everything is routed, to one venue.
gateway::OmsSettings usual_oms() {
  gateway::OmsSettings settings;
  settings.default_venue = "DEFAULT";
  return settings;
}

Result<gateway::OmsSettings> read_oms(const std::string& config) {
  const Result<std::string> text = read_file(config);
  if (!text) return text.error();
  return oms_toml::parse_oms_toml(*text, config, {"gateway", "serve"});
}

// So that a file that has lost its limits does not pass unnoticed.
std::string summary_of(const gateway::OmsSettings& oms) {
  const gateway::RiskLimits& risk = oms.risk;
  std::size_t limits = risk.collars.size();
  for (const bool is_set :
       {risk.quantity_max.has_value(), risk.notional_max.has_value(),
        risk.open_orders_max.has_value(), risk.symbol_open_orders_max.has_value()}) {
    if (is_set) ++limits;
  }
  return std::to_string(oms.routes.size()) + " routes, " +
         (oms.default_venue.empty() ? "no default venue" : "default venue " + oms.default_venue) +
         ", " + std::to_string(limits) + " risk limits";
}

Result<Plan> make_plan(const CommandWords& words) {
  Plan plan;
  plan.config = config_name(words);
  plan.oms = usual_oms();
  const Result<Settings> settings = gather_settings(gateway_rules(), "gateway", words, plan.config);
  if (!settings) return settings.error();
  if (!plan.config.empty()) {
    Result<gateway::OmsSettings> oms = read_oms(plan.config);
    if (!oms) return oms.error();
    plan.oms = std::move(*oms);
  }
  Result<GatewayOptions> options = gateway_options(*settings);
  if (!options) return options.error();
  plan.options = std::move(*options);
  return plan;
}

order_tcp::ServerOptions server_options(const GatewayOptions& options) {
  order_tcp::ServerOptions server;
  server.address = options.listen.host;
  server.port = options.listen.port;
  server.io_threads = options.io_threads;
  server.strict_gaps = options.strict_gaps;
  server.connections_max = options.connections_max;
  return server;
}

gateway::GatewayOptions product_options(const Plan& plan) {
  gateway::GatewayOptions options;
  options.engine.partitions = plan.options.partitions;
  options.engine.budget = plan.options.budget;
  options.engine.per_id = plan.options.per_id;
  options.engine.callers_run = plan.options.callers_run;
  options.oms = plan.oms;
  return options;
}

// The running gateway: made, started, told what signals say, and ended.
class Run {
 public:
  explicit Run(const Plan& plan)
      : config_(plan.config),
        options_(plan.options),
        server_(server_options(plan.options)),
        gateway_(product_options(plan), server_) {}

  // Nothing, or why not.
  std::string start() {
    if (const Status started = server_.start(gateway_); !started) {
      return cannot_listen(started.error(), options_.listen, "--listen");
    }
    if (options_.admin) {
      const GatewayParts parts{gateway_, server_, ready_, reloads_, failed_reloads_};
      admin_.emplace(
          admin_http::AdminOptions{.address = options_.admin->host, .port = options_.admin->port},
          [parts](std::string_view path) { return gateway_page(parts, path); });
      if (const Status started = admin_->start(); !started) {
        return cannot_listen(started.error(), *options_.admin, "--admin");
      }
    }
    ready_ = true;
    return {};
  }

  void announce() const {
    const HostPort at{options_.listen.host, server_.port()};
    std::string text = "listening " + at.text() + "\n";
    if (options_.admin) {
      const HostPort admin{options_.admin->host, admin_->port()};
      text += "metrics   http://" + admin.text() + "/metrics\n";
    }
    if (!config_.empty()) text += "config    " + config_ + "  (SIGHUP reads it again)\n";
    text += "try       printf 'r1 42 NEW ACME BUY 10 99.5\\n' | nc -N " + at.host + " " +
            std::to_string(at.port) + "\n";
    text += "stop      Ctrl-C drains\n";
    write_all(STDOUT_FILENO, text);
  }

  // A bad file keeps the old settings, and says why.
  void reload() {
    if (config_.empty()) {
      log_line("ordo: SIGHUP, and there is no configuration to read; start with --config FILE");
      return;
    }
    Result<gateway::OmsSettings> oms = read_oms(config_);
    if (!oms) {
      ++failed_reloads_;
      log_line("ordo: not reloaded, the old settings stay: " + oms.error().message);
      return;
    }
    const std::string what = summary_of(*oms);
    gateway_.apply(std::make_shared<const gateway::OmsSettings>(std::move(*oms)));
    ++reloads_;
    log_line("ordo: reloaded " + config_ + ": " + what);
  }

  // Finishes what was admitted, within the time there is. Returns the exit status.
  int stop() {
    ready_ = false;
    const TimePoint deadline = system_clock().now() + options_.drain;
    server_.stop_accepting_and_reading();
    const auto undone = gateway_.drain(options_.drain);
    server_.finish(deadline);
    if (admin_) admin_->stop();
    for (const auto& task : undone) {
      log_line("ordo: not done: request " + std::string(task.id.view()) + ", correlation id " +
               std::to_string(task.correlation_id) + ", partition " +
               std::to_string(task.partition));
    }
    if (undone.empty()) return 0;
    log_line("ordo: " + std::to_string(undone.size()) + " admitted tasks were not done in time");
    return kExitUndone;
  }

 private:
  const std::string config_;
  const GatewayOptions options_;
  order_tcp::Server server_;
  gateway::Gateway gateway_;
  std::atomic<bool> ready_{false};
  std::atomic<std::uint64_t> reloads_{0};
  std::atomic<std::uint64_t> failed_reloads_{0};
  std::optional<admin_http::AdminServer> admin_;
};

}  // namespace

int run_gateway(const CommandWords& words) {
  Result<Plan> plan = make_plan(words);
  if (!plan) return complain(plan.error().message);
  if (words.check_only) {
    write_all(STDOUT_FILENO, "all settings are good\n");
    return 0;
  }
  const ServiceSignals signals;
  constexpr std::size_t kOwnFiles = 128;
  plan->options.connections_max = make_room_for(plan->options.connections_max, kOwnFiles);
  Run run(*plan);
  if (const std::string reason = run.start(); !reason.empty()) return complain(reason);
  run.announce();
  signals.wait_for_stop([&run] { run.reload(); });
  log_line("ordo: stopping; a second signal does not wait for what was admitted");
  return run.stop();
}

}  // namespace ordo::app

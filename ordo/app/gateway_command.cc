#include "ordo/app/gateway_command.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <unistd.h>

#include "ordo/adapters/admin_http/admin_server.h"
#include "ordo/adapters/config_toml/config_table.h"
#include "ordo/adapters/oms_toml/oms_toml.h"
#include "ordo/adapters/order_tcp/server.h"
#include "ordo/app/file_limit.h"
#include "ordo/app/gateway_metrics.h"
#include "ordo/app/map_options.h"
#include "ordo/app/write_all.h"
#include "ordo/core/clock.h"
#include "ordo/core/log.h"
#include "ordo/gateway/gateway.h"

namespace ordo::app {
namespace {

constexpr const char* kUsualConfig = "ordo.toml";

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

Result<std::string> read_file(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  std::ostringstream text;
  if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file.is_open() || file.bad() || text.fail()) {
    return Error{ErrorCode::not_found,
                 "cannot read '" + name + "': " + std::string(::strerrordesc_np(errno))};
  }
  return std::move(text).str();
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
  return oms_toml::parse_oms_toml(*text, config, {"gateway"});
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

// --config, else ORDO_CONFIG, else ordo.toml where it exists.
std::string config_name(const GatewayWords& words) {
  if (!words.config.empty()) return words.config;
  if (const char* name = std::getenv("ORDO_CONFIG")) return name;
  return ::access(kUsualConfig, F_OK) == 0 ? kUsualConfig : "";
}

Result<Plan> make_plan(const GatewayWords& words) {
  Plan plan;
  plan.config = config_name(words);
  plan.oms = usual_oms();
  Settings settings(gateway_rules(), "gateway");
  if (!plan.config.empty()) {
    const Result<std::string> text = read_file(plan.config);
    if (!text) return text.error();
    const auto entries = config_toml::read_table(*text, plan.config, "gateway");
    if (!entries) return entries.error();
    if (const Status taken = settings.take_file(*entries, plan.config); !taken) {
      return taken.error();
    }
    Result<gateway::OmsSettings> oms = read_oms(plan.config);
    if (!oms) return oms.error();
    plan.oms = std::move(*oms);
  }
  settings.take_environment([](const std::string& name) { return std::getenv(name.c_str()); });
  for (const auto& [name, text] : words.flags)
    settings.take_flag(name, text);
  Result<GatewayOptions> options = gateway_options(settings);
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

// What it means when a port cannot be had, and what to do.
std::string explain(const Error& error, const HostPort& at, const char* flag) {
  std::string text = error.message;
  if (const std::string who = at.port == 0 ? "" : listener_of(at.port); !who.empty()) {
    text += "; " + who + " listens there";
  }
  return text + "; choose another with " + flag + " ADDR:PORT";
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
      return explain(started.error(), options_.listen, "--listen");
    }
    if (options_.admin) {
      const GatewayParts parts{gateway_, server_, ready_, reloads_, failed_reloads_};
      admin_.emplace(
          admin_http::AdminOptions{.address = options_.admin->host, .port = options_.admin->port},
          [parts](std::string_view path) { return gateway_page(parts, path); });
      if (const Status started = admin_->start(); !started) {
        return explain(started.error(), *options_.admin, "--admin");
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

// Waits for signals and does what they say until one says stop. A further one ends the process at
// once, whatever is still being finished.
void obey_signals(Run& run, const sigset_t& watched) {
  while (true) {
    int number = 0;
    if (::sigwait(&watched, &number) != 0) continue;
    if (number != SIGHUP) break;
    run.reload();
  }
  ::sigprocmask(SIG_UNBLOCK, &watched, nullptr);
  log_line("ordo: stopping; a second signal does not wait for what was admitted");
}

}  // namespace

int run_gateway(const GatewayWords& words) {
  Result<Plan> plan = make_plan(words);
  if (!plan) return complain(plan.error().message);
  if (words.check_only) {
    write_all(STDOUT_FILENO, "all settings are good\n");
    return 0;
  }
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    sigaddset(&watched, signal);
  ::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): cannot fail for a valid signal.
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);

  constexpr std::size_t kOwnFiles = 128;  // Half of them all, where there are few.
  const std::size_t files = raise_file_limit(plan->options.connections_max + kOwnFiles);
  const std::size_t room = files - std::min(kOwnFiles, files / 2);
  if (room < plan->options.connections_max) {
    plan->options.connections_max = std::max<std::size_t>(room, 1);
    log_line("ordo: the limit of open files leaves room for " +
             std::to_string(plan->options.connections_max) +
             " connections; raise 'ulimit -n' for more");
  }
  Run run(*plan);
  if (const std::string reason = run.start(); !reason.empty()) return complain(reason);
  run.announce();
  obey_signals(run, watched);
  return run.stop();
}

}  // namespace ordo::app

#include "ordo/app/serve_command.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unistd.h>
#include <utility>

#include "ordo/adapters/http2/server.h"
#include "ordo/adapters/pubsub_rest/json_service.h"
#include "ordo/adapters/pubsub_wire/service.h"
#include "ordo/adapters/push_http/courier.h"
#include "ordo/adapters/store_rocksdb/open_broker.h"
#include "ordo/app/config_file.h"
#include "ordo/app/file_limit.h"
#include "ordo/app/gateway_command.h"
#include "ordo/app/map_options.h"
#include "ordo/app/serve_options.h"
#include "ordo/app/serve_pages.h"
#include "ordo/app/service_notify.h"
#include "ordo/app/service_signals.h"
#include "ordo/app/version.h"
#include "ordo/app/write_all.h"
#include "ordo/core/clock.h"
#include "ordo/core/log.h"

namespace ordo::app {
namespace {

using Phase = ServeState::Phase;

int complain(const std::string& message) {
  log_line("ordo: " + message);
  return kExitError;
}

BrokerOptions broker_options(const ServeOptions& options, ServeState& state) {
  BrokerOptions broker;
  broker.threads = options.threads;
  broker.memory_max = options.memory_max;
  broker.partitions_max = options.partitions_max;
  broker.ack_deadline_min = options.min_ack_deadline;
  broker.ordered_window = static_cast<std::uint32_t>(options.ordered_window);
  broker.on_error = [&state](const Error& error) {
    log_line("ordo: " + error.message);
    // What is damaged is kept back, and the rest goes on; everything else is the end of storing.
    if (error.code != ErrorCode::data_loss) state.has_failed.store(true);
  };
  return broker;
}

store_rocksdb::StoreOptions store_options(const ServeOptions& options) {
  store_rocksdb::StoreOptions store;
  store.sync = options.fsync;
  store.sync_interval = options.fsync_interval;
  return store;
}

http2::ServerOptions server_options(const ServeOptions& options) {
  http2::ServerOptions server;
  server.address = options.listen.host;
  server.port = options.listen.port;
  server.io_threads = options.io_threads;
  server.connections_max = options.connections_max;
  return server;
}

std::string counted(std::uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// The running broker and its server: made, started, and ended.
class Run {
 public:
  Run(ServeOptions options, TimePoint started_at)
      : options_(std::move(options)),
        pages_(state_),
        server_(server_options(options_), routes_of_a_start()) {
    state_.started_at = started_at;
    state_.server.store(&server_);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  // The server first: what it runs uses all the rest.
  ~Run() {
    server_.stop();
    pages_.stop();
  }

  // Nothing, or why not. The port comes first: without it nothing of the data is touched.
  std::string start() {
    if (const Status started = server_.start(); !started) {
      return cannot_listen(started.error(), options_.listen, "--listen");
    }
    Result<std::unique_ptr<Broker>> opened =
        open_broker(options_.data, broker_options(options_, state_), store_options(options_));
    if (!opened) {
      const bool is_damaged = opened.error().code == ErrorCode::data_loss;
      return opened.error().message +
             (is_damaged ? "; see 'ordo doctor " + options_.data + "'" : "");
    }
    broker_ = std::move(*opened);
    service_ = std::make_unique<pubsub_wire::Service>(*broker_);
    json_ = std::make_unique<pubsub_rest::JsonService>(*service_);
    courier_ = std::make_unique<push_http::Courier>(*broker_);
    if (const Status started = courier_->start(); !started) return started.error().message;
    state_.courier.store(courier_.get());
    state_.broker.store(broker_.get());
    server_.change_routes(routes_when_ready());
    state_.phase.store(Phase::ready);
    notify_service("READY=1\nSTATUS=ready\nMAINPID=" + std::to_string(::getpid()));
    return {};
  }

  void announce() {
    const std::string at = HostPort{options_.listen.host, server_.port()}.text();
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(system_clock().now() -
                                                                            state_.started_at);
    const BrokerStats stats = broker_->stats();
    const bool is_relative = !options_.data.starts_with('/') && !options_.data.starts_with('.');
    std::string text =
        "  Ordo " + version_number() + "   ready in " + std::to_string(took.count()) + " ms\n";
    text += "  Pub/Sub    " + at + "      export PUBSUB_EMULATOR_HOST=" + at + "\n";
    text += "  Status     http://" + at + "/\n";
    text += "  Data       " + std::string(is_relative ? "./" : "") + printable(options_.data) +
            "  (" + counted(stats.topics, "topic") + ", " +
            counted(stats.store.messages, "message") + ")\n";
    const bool is_usual = at == "127.0.0.1:8085";
    text += "  Try        ordo demo" + (is_usual ? std::string(10, ' ') : " --host " + at + "  ") +
            " publishes ordered traffic with a few bad keys, so there is something to look at\n";
    text += "  Stop       Ctrl-C drains\n";
    write_all(STDOUT_FILENO, text);
  }

  // Not ready, then no new connections; what is in flight goes back, what was published is stored.
  // Returns the exit status.
  int stop() {
    state_.phase.store(Phase::draining);
    notify_service("STOPPING=1\nSTATUS=draining");
    give_notice();
    const TimePoint deadline = system_clock().now() + options_.drain;
    server_.begin_drain();
    service_->close();
    json_->close();
    // What endpoints have not answered by then goes back, and that is to be stored too.
    courier_->close(system_clock().now() + options_.drain / 2);
    const bool is_complete = broker_->close(deadline);
    server_.drain(deadline);
    pages_.stop();
    if (is_complete) return 0;
    log_line("ordo: not all that was under way was stored and answered in time");
    return kExitUndone;
  }

 private:
  // So long others may see that we are not ready, and go elsewhere.
  void give_notice() const {
    std::mutex mutex;
    std::condition_variable nobody;
    std::unique_lock lock(mutex);
    const TimePoint end = system_clock().now() + options_.notice;
    while (!system_clock().wait_until(lock, nobody, end)) {
    }
  }

  http2::Routes routes_of_a_start() {
    http2::Routes routes;
    routes.plain([this](const http2::ExchangePtr& exchange) { pages_.serve(exchange); });
    const Error starting{ErrorCode::unavailable, "the broker is starting"};
    pubsub_rest::add_refusal(routes, starting);
    routes.otherwise(starting);
    return routes;
  }
  http2::Routes routes_when_ready() {
    http2::Routes routes;
    routes.plain([this](const http2::ExchangePtr& exchange) { pages_.serve(exchange); });
    service_->add_to(routes);
    json_->add_to(routes);
    return routes;
  }

  const ServeOptions options_;
  ServeState state_;
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<pubsub_wire::Service> service_;
  std::unique_ptr<pubsub_rest::JsonService> json_;
  std::unique_ptr<push_http::Courier> courier_;
  ServePages pages_;
  http2::Server server_;
};

}  // namespace

int run_serve(const CommandWords& words) {
  const TimePoint started_at = system_clock().now();
  const Result<Settings> settings =
      gather_settings(serve_rules(), "serve", words, config_name(words));
  if (!settings) return complain(settings.error().message);
  Result<ServeOptions> options = serve_options(*settings);
  if (!options) return complain(options.error().message);
  if (words.check_only) {
    write_all(STDOUT_FILENO, "all settings are good\n");
    return 0;
  }
  set_log_format(options->log);
  const ServiceSignals signals;
  options->connections_max = make_room_for(options->connections_max, serve_own_files());
  Run run(std::move(*options), started_at);
  if (const std::string reason = run.start(); !reason.empty()) return complain(reason);
  run.announce();
  signals.wait_for_stop([] { log_line("ordo: SIGHUP: there is nothing to read again"); });
  log_line("ordo: stopping; a second signal does not wait for what runs");
  return run.stop();
}

}  // namespace ordo::app

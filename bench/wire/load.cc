#include "bench/wire/load.h"

#include <cstdio>
#include <fcntl.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "bench/support/usage.h"
#include "bench/wire/process_tree.h"
#include "bench/wire/system.h"
#include "bench/wire/traffic.h"

namespace ordo::bench {
namespace {

constexpr double kWarmShare = 0.15;  // Of the time, before it counts.

std::uint64_t nanoseconds(double seconds) {
  return static_cast<std::uint64_t>(seconds * 1e9);
}

// What client and server used from when it was made until it is asked.
class Meter {
 public:
  explicit Meter(const WirePlan& plan)
      : server_(plan.server),
        server_ns_(tree_cpu_ns(server_)),
        client_ns_(process_cpu_ns()),
        machine_ns_(machine_busy_ns()),
        begin_ns_(now_ns()) {}

  void finish(Measures& measures, std::uint64_t messages) const {
    const std::uint64_t end_ns = now_ns();
    const double client = static_cast<double>(process_cpu_ns() - client_ns_);
    const double machine = static_cast<double>(machine_busy_ns() - machine_ns_);
    const double server = static_cast<double>(tree_cpu_ns(server_) - server_ns_);
    const double wall = static_cast<double>(end_ns - begin_ns_);
    const double count = static_cast<double>(messages);
    constexpr double kStepsNs = 4e7;  // What the counters may be off.
    const double foreign = machine - server - client - kStepsNs;
    measures.set("messages", count);
    measures.set("seconds", wall / 1e9);
    measures.set("messages_per_s", count / wall * 1e9);
    measures.set("us_per_message", wall / count / 1000);
    measures.set("server_us_per_message", server / count / 1000);
    measures.set("client_us_per_message", client / count / 1000);
    measures.set("foreign_share", foreign > 0 ? foreign / wall / machine_processors() : 0);
  }

 private:
  const int server_;
  const std::uint64_t server_ns_;
  const std::uint64_t client_ns_;
  const std::uint64_t machine_ns_;
  const std::uint64_t begin_ns_;
};

void set_percentiles(Measures& measures, const std::string& prefix, std::vector<double>& values) {
  if (values.empty()) return;
  for (const auto& [name, share] : std::vector<std::pair<std::string, double>>{
           {"p10_us", 0.1}, {"p50_us", 0.5}, {"p90_us", 0.9}, {"p99_us", 0.99}, {"p999_us", 0.999}})
    measures.set(prefix + name, percentile(values, share));
}

void set_all(Measures& measures, const Measures& others) {
  for (const auto& [name, value] : others.entries())
    measures.set(name, value);
}

Measures run_publish(const WirePlan& plan, System& system) {
  const auto publisher = system.publisher();
  Progress progress;
  progress.is_received = false;
  Sender sender(*publisher, plan, progress);
  sender.send_until(now_ns() + nanoseconds(plan.seconds * kWarmShare));
  sender.await_answers();
  sender.latencies().clear();
  const std::uint64_t warm = progress.sent.load();
  const Meter meter(plan);
  sender.send_until(now_ns() + nanoseconds(plan.seconds));
  sender.await_answers();
  Measures measures;
  meter.finish(measures, progress.sent.load() - warm);
  set_percentiles(measures, "", sender.latencies());
  measures.set("errors", 0);
  return measures;
}

Measures run_flow(const WirePlan& plan, System& system) {
  const auto consumer = system.consumer();
  const auto publisher = system.publisher();
  Progress progress;
  Sender sender(*publisher, plan, progress);
  Receiver receiver(*consumer, plan, progress);
  std::thread receiving([&receiver] { receiver.run(); });
  sender.send_until(now_ns() + nanoseconds(plan.seconds * kWarmShare));
  sender.await_answers();
  progress.await_received();
  const std::uint64_t warm = progress.sent.load();
  const Meter meter(plan);
  sender.send_until(now_ns() + nanoseconds(plan.seconds));
  sender.await_answers();
  progress.is_sending = false;
  receiving.join();
  Measures measures;
  meter.finish(measures, progress.sent.load() - warm);
  set_all(measures, receiver.judge().errors(progress.sent.load()));
  return measures;
}

Measures run_drain(const WirePlan& plan, System& system) {
  Progress progress;
  progress.is_received = false;
  {
    const auto publisher = system.publisher();
    Sender sender(*publisher, plan, progress);
    sender.send_count(plan.count);
    sender.await_answers();
  }
  progress.is_sending = false;
  const Meter meter(plan);
  const auto consumer = system.consumer();
  Receiver receiver(*consumer, plan, progress);
  receiver.run();
  Measures measures;
  meter.finish(measures, plan.count);
  set_all(measures, receiver.judge().errors(progress.sent.load()));
  return measures;
}

Measures run_sync(const WirePlan& plan, System& system) {
  const auto publisher = system.publisher();
  Progress progress;
  progress.is_received = false;
  Sender sender(*publisher, plan, progress);
  sender.send_count(plan.count / 10);
  sender.await_answers();
  sender.latencies().clear();
  const Meter meter(plan);
  sender.send_count(plan.count);
  sender.await_answers();
  Measures measures;
  meter.finish(measures, plan.count);
  set_percentiles(measures, "", sender.latencies());
  measures.set("errors", 0);
  return measures;
}

Measures run_paced(const WirePlan& plan, System& system) {
  const auto consumer = system.consumer();
  const auto publisher = system.publisher();
  Progress progress;
  Sender sender(*publisher, plan, progress);
  Receiver receiver(*consumer, plan, progress);
  std::thread receiving([&receiver] { receiver.run(); });
  sender.send_paced(plan.count / 10, plan.rate);
  sender.await_answers();
  progress.await_received();
  const std::uint64_t warm = progress.received.load();
  sender.latencies().clear();
  const Meter meter(plan);
  sender.send_paced(plan.count, plan.rate);
  sender.await_answers();
  progress.is_sending = false;
  receiving.join();
  Measures measures;
  meter.finish(measures, plan.count);
  auto& latencies = receiver.latencies();
  latencies.erase(latencies.begin(), latencies.begin() + static_cast<std::ptrdiff_t>(warm));
  set_percentiles(measures, "", latencies);
  set_percentiles(measures, "publish_", sender.latencies());
  set_all(measures, receiver.judge().errors(progress.sent.load()));
  return measures;
}

Measures run_fill(const WirePlan& plan, System& system) {
  const auto publisher = system.publisher();
  Progress progress;
  progress.is_received = false;
  Sender sender(*publisher, plan, progress);
  const Meter meter(plan);
  sender.send_count(plan.count);
  sender.await_answers();
  Measures measures;
  meter.finish(measures, plan.count);
  measures.set("errors", 0);
  return measures;
}

// The floor of every durable publish: the bytes go to a file that has its room, and are synced.
Measures run_fsync(const WirePlan& plan) {
  const std::string path = plan.folder + "/bench_wire_fsync";
  const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) give_up("cannot write " + path);
  const std::string bytes(plan.size, 'x');
  if (::posix_fallocate(file, 0, static_cast<off_t>(plan.size * plan.count)) != 0)
    give_up("no room for " + path);
  std::vector<double> latencies;
  const Meter meter(plan);
  for (std::uint64_t i = 0; i < plan.count; ++i) {
    const std::uint64_t begin = now_ns();
    if (::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
        ::fdatasync(file) != 0)
      give_up("cannot write " + path);
    latencies.push_back(static_cast<double>(now_ns() - begin) / 1000);
  }
  Measures measures;
  meter.finish(measures, plan.count);
  set_percentiles(measures, "", latencies);
  measures.set("errors", 0);
  ::close(file);
  ::unlink(path.c_str());
  return measures;
}

}  // namespace

Measures System::unary(const WirePlan& plan) {
  give_up("no " + plan.mode + " calls in this system");
}

Measures run_load(const WirePlan& plan) {
  if (plan.mode == "fsync") return run_fsync(plan);
  const std::unique_ptr<System> system = make_system(plan);
  if (plan.mode == "unary") {
    const Meter meter(plan);
    Measures measures = system->unary(plan);
    meter.finish(measures, plan.count);
    return measures;
  }
  using Run = Measures (*)(const WirePlan&, System&);
  constexpr std::pair<const char*, Run> kRuns[] = {{"publish", run_publish}, {"flow", run_flow},
                                                   {"drain", run_drain},     {"sync", run_sync},
                                                   {"paced", run_paced},     {"fill", run_fill}};
  for (const auto& [name, run] : kRuns) {
    if (plan.mode != name) continue;
    Measures measures = run(plan, *system);
    if (plan.mode != "fill") system->clear();
    return measures;
  }
  give_up("unknown mode " + plan.mode);
}

int run_driver(int argc, char** argv) {
  const Measures measures = run_load(WirePlan::parse({argv + 1, argv + argc}));
  std::fputs(measures.to_lines().c_str(), stdout);
  std::fflush(stdout);
  // Libraries' threads may still be at work; the process ends under them.
  _exit(measures.get("errors") == 0 ? 0 : 1);
}

}  // namespace ordo::bench

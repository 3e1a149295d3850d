#include "bench/gateway/contenders.h"

#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <unistd.h>
#include <vector>

#include "bench/gateway/dialect.h"
#include "bench/gateway/server_process.h"
#include "bench/support/child.h"

namespace ordo::bench {
namespace {

std::vector<std::string> server_command(std::string_view name, const std::string& ordo) {
  if (name.starts_with("ordo")) {
    const std::string io_threads = name == "ordo_two" ? "2" : "1";
    return {ordo, "gateway",    "--listen",     "127.0.0.1:0", "--partitions",
            "4",  "--no-admin", "--io-threads", io_threads};
  }
  if (name == "echo") return {"/proc/self/exe", "--echo"};
  return {find_redis("redis-server"),
          "--port",
          "@port@",
          "--bind",
          "127.0.0.1",
          "--save",
          "",
          "--appendonly",
          "no",
          "--daemonize",
          "no",
          "--loglevel",
          "warning",
          "--dir",
          std::filesystem::temp_directory_path().string()};
}

Measures failed(const std::string& why) {
  std::fprintf(stderr, "bench_gateway: %s\n", why.c_str());
  Measures measures;
  measures.set("errors", 1);
  return measures;
}

// The fields of the last line of a CSV table, without their quotes.
std::vector<std::string> last_row(std::string_view table) {
  while (table.ends_with('\n') || table.ends_with('\r'))
    table.remove_suffix(1);
  table.remove_prefix(table.rfind('\n') + 1);
  std::vector<std::string> fields(1);
  for (const char c : table) {
    if (c == ',') {
      fields.emplace_back();
    } else if (c != '"') {
      fields.back() += c;
    }
  }
  return fields;
}

double number_of(const std::string& text) {
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// One run of redis-benchmark, whose last test counts (a GET finds what the SETs before it left):
// "test","rps","avg","min","p50","p95","p99","max", times in ms.
Measures run_redis_benchmark(const std::string& test, const LoadPlan& plan) {
  // About as long as our own runs, whatever the pipelining.
  const double per_s = plan.pipelining == 1 ? 1e5 : plan.pipelining <= 16 ? 6e5 : 1e6;
  const auto count = static_cast<long>(per_s * static_cast<double>(plan.measured_ns) * 1e-9) + 1000;
  const ChildResult run =
      run_child({find_redis("redis-benchmark"), "-p", std::to_string(plan.port), "-c",
                 std::to_string(plan.connections), "-P", std::to_string(plan.pipelining), "-n",
                 std::to_string(count), "-r", "1000", "-d", std::to_string(kRedisValue.size()),
                 "-t", test, "--csv"},
                std::chrono::seconds(60));
  const std::vector<std::string> fields = last_row(run.output);
  if (!run.failure.empty() || fields.size() < 8) return failed("redis-benchmark: " + run.failure);
  Measures measures;
  measures.set("requests_per_s", number_of(fields[1]));
  measures.set("requests", static_cast<double>(count));
  measures.set("p50_us", number_of(fields[4]) * 1000);
  measures.set("p99_us", number_of(fields[6]) * 1000);
  measures.set("max_us", number_of(fields[7]) * 1000);
  measures.set("errors", measures.get("requests_per_s") > 0 ? 0 : 1);
  return measures;
}

// The resident size of a process; 0 where the system does not tell.
double rss_bytes_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  double total = 0;
  double resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::string find_redis(std::string_view program) {
  for (const char* folder : {"/usr/bin/", "/usr/local/bin/"}) {
    std::string path = std::string(folder) + std::string(program);
    if (std::filesystem::exists(path)) return path;
  }
  return {};
}

Measures run_contender(std::string_view name, LoadPlan plan, const std::string& ordo) {
  const std::vector<std::string> command = server_command(name, ordo);
  if (command[0].empty()) return failed("redis is not installed (package redis-server)");
  const ServerProcess server(command);
  if (server.port() == 0) return failed(server.failure());
  plan.port = server.port();
  plan.server = server.pid();
  plan.dialect = name == "ordo_two" ? "ordo_binary" : name;
  if (name.starts_with("benchmark_"))
    return run_redis_benchmark(name == "benchmark_get" ? "set,get" : "set", plan);
  if (name == "redis_get") {  // Something has to be there to get.
    LoadPlan filling = plan;
    filling.dialect = "redis_set";
    filling.rate = 0;
    filling.pipelining = kIdsPerConnection;
    filling.warm_ns = 0;
    filling.measured_ns = 20'000'000;
    const Measures filled = run_load(filling);
    if (filled.get("errors") != 0) return filled;
  }
  return run_load(plan);
}

Measures run_ids(double count, const std::string& ordo) {
  const ServerProcess server(server_command("ordo_once", ordo));
  if (server.port() == 0) return failed(server.failure());
  LoadPlan plan{.dialect = "ordo_once", .port = server.port(), .pipelining = 64, .warm_ns = 0};
  plan.server = server.pid();
  plan.measured_ns = 100'000'000;
  Measures measures = run_load(plan);  // Buffers and tables have their size now.
  const double before = rss_bytes_of(server.pid());
  double requests = 0;
  while (requests < count && measures.get("errors") == 0) {
    plan.first_connection += plan.connections;
    const Measures part = run_load(plan);
    requests += part.get("requests");
    measures.set("errors", part.get("errors"));
  }
  Measures result;
  result.set("requests", requests);
  result.set("rss_before_bytes", before);
  result.set("rss_growth_bytes", rss_bytes_of(server.pid()) - before);
  result.set("errors", measures.get("errors"));
  return result;
}

}  // namespace ordo::bench

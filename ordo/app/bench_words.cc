// ordo bench: a quick look at what this machine does.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

#include "ordo/app/commands.h"
#include "ordo/app/interrupt_fd.h"
#include "ordo/app/json_text.h"
#include "ordo/app/map_options.h"
#include "ordo/app/message_format.h"
#include "ordo/app/operator_examples.h"
#include "ordo/app/option_values.h"
#include "ordo/app/resource_text.h"
#include "ordo/app/self_bench.h"
#include "ordo/core/log.h"

namespace ordo::app {
namespace {

struct Typed {
  std::string seconds = "3", size = "100", folder;
  bool json = false;
};

constexpr std::pair<const char*, double> kQuantiles[] = {
    {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}};

// With commas: 1,234,567.
std::string number_text(double value) {
  const std::string digits = std::to_string(std::llround(value));
  std::string text;
  for (std::size_t at = 0; at < digits.size(); ++at) {
    if (at > 0 && (digits.size() - at) % 3 == 0) text += ',';
    text += digits[at];
  }
  return text;
}

std::string json_of(const BenchReport& report) {
  std::string object = "{";
  for (const auto& [name, quantile] : kQuantiles) {
    append_number_field(object, std::string("publish_ns_") + name,
                        static_cast<long long>(report.publish_latency.quantile(quantile)));
  }
  append_field(object, "publishes_per_second", std::to_string(report.publishes_per_second));
  append_field(object, "batched_publishes_per_second", std::to_string(report.batched_per_second));
  append_field(object, "consumed_per_second", std::to_string(report.consumed_per_second));
  append_number_field(object, "misordered", static_cast<long long>(report.misordered));
  return object + "}\n";
}

std::string text_of(const BenchReport& report, std::size_t message_bytes) {
  std::string text = "  one durable publish of ";
  text.append(std::to_string(message_bytes)).append(" bytes, ");
  text.append(number_text(report.publishes_per_second)).append(" a second\n   ");
  for (const auto& [name, quantile] : kQuantiles) {
    char part[64];
    (void)std::snprintf(part, sizeof part, " %s %.0f us", name,
                        static_cast<double>(report.publish_latency.quantile(quantile)) / 1e3);
    text.append(part);
  }
  text.append("\n").append(bench_picture(report.publish_latency));
  text.append("  published in batches of 100   ").append(number_text(report.batched_per_second));
  text.append(" messages/s\n  consumed and acknowledged     ");
  text.append(number_text(report.consumed_per_second)).append(" messages/s, 1,000 keys, ");
  if (report.misordered == 0) return text.append("all in order\n");
  return text.append(std::to_string(report.misordered)).append(" OUT OF ORDER\n");
}

int complain(const std::string& message, int status) {
  log_line("ordo: " + message);
  return status;
}

int run_bench(const Typed& typed) {
  const Result<std::uint64_t> seconds = parse_count("--seconds", typed.seconds, {1, 5});
  if (!seconds) return complain(seconds.error().message, kExitError);
  const Result<std::uint64_t> size = parse_bytes("--size", typed.size);
  if (!size) return complain(size.error().message, kExitError);
  if (*size > (std::uint64_t{1} << 20)) return complain("--size: at most 1MiB", kExitError);
  BenchOptions options;
  options.part_time = std::chrono::seconds(*seconds);
  options.message_bytes = static_cast<std::size_t>(*size);
  options.folder = typed.folder;
  InterruptFd interrupt;
  options.stops = [&] { return interrupt.is_raised(); };
  const Result<BenchReport> report = run_self_bench(options);
  if (!report) {
    return complain(report.error().message,
                    interrupt.is_raised() ? kExitInterrupted : kExitRefused);
  }
  const bool json = typed.json || ::isatty(STDOUT_FILENO) == 0;
  const Status printed = print_text(json ? json_of(*report) : text_of(*report, *size));
  if (!printed) return complain(printed.error().message, kExitRefused);
  return 0;
}

}  // namespace

Command bench_command() {
  auto typed = std::make_shared<Typed>();
  Command command{.name = "bench", .help = "Measure this machine with a broker of its own"};
  command.usage = "ordo bench [OPTIONS]";
  command.footer = kBenchExamples;
  command.options = {
      {.names = "--seconds",
       .type = "N",
       .help = "For each of the parts, 1 to 5 (default 3)",
       .take = into(typed->seconds)},
      {.names = "--size",
       .type = "SIZE",
       .help = "Of a message (default 100)",
       .take = into(typed->size)},
      {.names = "--dir",
       .type = "DIR",
       .help = "Where the temporary data lie: which disk is measured",
       .take = into(typed->folder),
       .is_file = true},
      {.names = "--json", .help = "Print JSON, one object", .take = into(typed->json)}};
  command.run = [typed] { return run_bench(*typed); };
  return command;
}

}  // namespace ordo::app

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ordo/app/command_examples.h"
#include "ordo/app/commands.h"
#include "ordo/app/option_values.h"

namespace ordo::app {
namespace {

using Options = std::vector<CommandOption>;

constexpr std::uint64_t kWorkersMax = 4096;

// The options as typed; built() turns them into MapOptions.
struct Typed {
  std::string workers, autoscale, window, key, key_separator, key_regex;
  std::string retries = "0", backoff = "0", timeout, kill_grace = "2s", flush_wait = "3s";
  std::string halt = "never", line_max = "128MiB", output_max = "64MiB";
  std::string joblog, dead_letters, output;
  std::vector<std::string> command;
  bool ordered = false, unordered = false, server = false, shell = false, on_stdin = false;
  bool null_separated = false, resume = false, resume_failed = false;
  bool dry_run = false, progress = false, stats = false;
};

void add_order_options(Options& options, Typed& typed) {
  const char* group = "How much at once, in which order";
  options.push_back({.names = "-j,--workers",
                     .type = "N",
                     .help = "Jobs at a time (default: one per processor)",
                     .take = into(typed.workers),
                     .group = group});
  options.push_back({.names = "--autoscale",
                     .type = "MIN..MAX",
                     .help = "Between MIN and MAX jobs, as there is demand",
                     .take = into(typed.autoscale),
                     .group = group});
  options.push_back({.names = "-k,--ordered",
                     .help = "Outputs in the order of the input (default)",
                     .take = into(typed.ordered),
                     .group = group});
  options.push_back({.names = "--unordered",
                     .help = "Outputs as soon as they are there",
                     .take = into(typed.unordered),
                     .group = group});
  options.push_back({.names = "--key",
                     .type = "N",
                     .help = "Keep order only among lines with the same field N",
                     .take = into(typed.key),
                     .group = group});
  options.push_back({.names = "-t,--field-separator",
                     .type = "CHAR",
                     .help = "What separates fields (default: blanks)",
                     .take = into(typed.key_separator),
                     .group = group});
  options.push_back({.names = "--key-regex",
                     .type = "RE",
                     .help = "Keep order only among lines whose first group is the same",
                     .take = into(typed.key_regex),
                     .group = group});
  options.push_back({.names = "--window",
                     .type = "N",
                     .help = "Lines taken in and not yet printed",
                     .take = into(typed.window),
                     .group = group});
}

void add_run_options(Options& options, Typed& typed) {
  const char* group = "How a line is given to COMMAND";
  options.push_back({.names = "--shell",
                     .help = "COMMAND is a script for sh; {} is its first parameter",
                     .take = into(typed.shell),
                     .group = group});
  options.push_back({.names = "--stdin",
                     .help = "The line is the standard input of COMMAND",
                     .take = into(typed.on_stdin),
                     .group = group});
  options.push_back({.names = "--server",
                     .help = "Keep COMMAND running: it answers each line with a line",
                     .take = into(typed.server),
                     .group = group});
  options.push_back({.names = "-0,--null",
                     .help = "Lines end with NUL instead of newline",
                     .take = into(typed.null_separated),
                     .group = group});
  options.push_back({.names = "--max-line",
                     .type = "SIZE",
                     .help = "Longest line (default 128MiB); longer ones fail",
                     .take = into(typed.line_max),
                     .group = group});
  options.push_back({.names = "--flush-wait",
                     .type = "D",
                     .help = "When to suspect that a server does not flush (default 3s)",
                     .take = into(typed.flush_wait),
                     .group = group});
  options.push_back({.names = "--dry-run",
                     .help = "Print the commands and run nothing",
                     .take = into(typed.dry_run),
                     .group = group});
}

void add_failure_options(Options& options, Typed& typed) {
  const char* group = "When something fails";
  options.push_back({.names = "--retries",
                     .type = "N",
                     .help = "Further attempts for a job that fails (default 0)",
                     .take = into(typed.retries),
                     .group = group});
  options.push_back({.names = "--backoff",
                     .type = "D",
                     .help = "Wait before a retry, doubled for each (default 0)",
                     .take = into(typed.backoff),
                     .group = group});
  options.push_back({.names = "--timeout",
                     .type = "D",
                     .help = "End an attempt that takes longer",
                     .take = into(typed.timeout),
                     .group = group});
  options.push_back({.names = "--kill-after",
                     .type = "D",
                     .help = "From SIGTERM to SIGKILL (default 2s)",
                     .take = into(typed.kill_grace),
                     .group = group});
  options.push_back({.names = "--max-output",
                     .type = "SIZE",
                     .help = "Most output of one job (default 64MiB)",
                     .take = into(typed.output_max),
                     .group = group});
  options.push_back({.names = "--halt",
                     .type = "WHEN",
                     .help = "on-error: stop at the first failure; never (default)",
                     .take = into(typed.halt),
                     .group = group,
                     .choices = {"on-error", "never"}});
  options.push_back({.names = "--dlq",
                     .type = "FILE",
                     .help = "Add the lines that failed, with the reason, as JSON",
                     .take = into(typed.dead_letters),
                     .group = group,
                     .is_file = true});
}

void add_record_options(Options& options, Typed& typed) {
  const char* group = "What is kept and shown";
  options.push_back({.names = "--joblog",
                     .type = "FILE",
                     .help = "Record the finished jobs",
                     .take = into(typed.joblog),
                     .group = group,
                     .is_file = true});
  options.push_back({.names = "--resume",
                     .help = "Skip the jobs that --joblog has recorded",
                     .take = into(typed.resume),
                     .group = group});
  options.push_back({.names = "--resume-failed",
                     .help = "As --resume, but run failed jobs again",
                     .take = into(typed.resume_failed),
                     .group = group});
  options.push_back({.names = "-o,--output",
                     .type = "FILE",
                     .help = "Write there; exact also when resumed after a crash",
                     .take = into(typed.output),
                     .group = group,
                     .is_file = true});
  options.push_back({.names = "--progress",
                     .help = "Show progress on a terminal",
                     .take = into(typed.progress),
                     .group = group});
  options.push_back({.names = "--stats",
                     .help = "Print a summary to standard error at the end",
                     .take = into(typed.stats),
                     .group = group});
}

// Collects values; the first error wins.
class Checked {
 public:
  template <class T, class To>
  void take(Result<T> value, To& to) {
    if (value) {
      to = static_cast<To>(*value);
    } else if (error_.empty()) {
      error_ = value.error().message;
    }
  }
  void require(bool holds, const char* message) {
    if (!holds && error_.empty()) error_ = message;
  }
  const std::string& error() const { return error_; }

 private:
  std::string error_;
};

void build_values(const Typed& typed, MapOptions& map, Checked& checked) {
  const CountRange workers{1, kWorkersMax};
  if (!typed.workers.empty()) {
    checked.take(parse_count("--workers", typed.workers, workers), map.workers);
  }
  if (!typed.autoscale.empty()) {
    CountRange range;
    checked.take(parse_range("--autoscale", typed.autoscale, kWorkersMax), range);
    map.workers = range.min;
    map.autoscale_max = range.max;
  }
  if (!typed.window.empty()) {
    checked.take(parse_count("--window", typed.window, {1, 10'000'000}), map.window);
  }
  if (!typed.key.empty())
    checked.take(parse_count("--key", typed.key, {1, 1'000'000}), map.key_field);
  if (!typed.key_separator.empty()) {
    checked.take(parse_character("--field-separator", typed.key_separator), map.key_separator);
  }
  checked.take(parse_count("--retries", typed.retries, {0, 1'000'000}), map.retries);
  checked.take(parse_time("--backoff", typed.backoff, false), map.backoff);
  if (!typed.timeout.empty())
    checked.take(parse_time("--timeout", typed.timeout, true), map.timeout);
  checked.take(parse_time("--kill-after", typed.kill_grace, false), map.kill_grace);
  checked.take(parse_time("--flush-wait", typed.flush_wait, true), map.flush_wait);
  checked.take(parse_bytes("--max-line", typed.line_max), map.line_bytes_max);
  checked.take(parse_bytes("--max-output", typed.output_max), map.output_bytes_max);
}

void check_together(const Typed& typed, Checked& checked) {
  const bool keyed = !typed.key.empty() || !typed.key_regex.empty();
  checked.require(typed.workers.empty() || typed.autoscale.empty(),
                  "--workers and --autoscale exclude each other; --autoscale sets the least too");
  checked.require(!(typed.ordered && typed.unordered),
                  "--ordered and --unordered exclude each other");
  checked.require(!(typed.unordered && keyed),
                  "--unordered and --key exclude each other; --key alone orders per key only");
  checked.require(typed.key.empty() || typed.key_regex.empty(),
                  "--key and --key-regex exclude each other");
  checked.require(typed.key_separator.empty() || !typed.key.empty(),
                  "--field-separator needs --key N, the number of the field");
  checked.require(!(typed.server && typed.on_stdin),
                  "--server and --stdin exclude each other; a server reads every line itself");
  checked.require(!(typed.resume || typed.resume_failed) || !typed.joblog.empty(),
                  "--resume needs --joblog FILE, the journal to continue");
}

Result<MapOptions> built(const Typed& typed) {
  MapOptions map;
  map.command = typed.command;
  map.ordered = !typed.unordered && typed.key.empty() && typed.key_regex.empty();
  map.key_regex = typed.key_regex;
  map.server = typed.server;
  map.shell = typed.shell;
  map.line_on_stdin = typed.on_stdin;
  map.null_separated = typed.null_separated;
  map.halt_on_error = typed.halt == "on-error";
  map.journal = typed.joblog;
  map.resume = typed.resume;
  map.resume_failed = typed.resume_failed;
  map.dead_letters = typed.dead_letters;
  map.output = typed.output;
  map.dry_run = typed.dry_run;
  map.progress = typed.progress;
  map.stats = typed.stats;
  Checked checked;
  build_values(typed, map, checked);
  check_together(typed, checked);
  checked.require(!map.command.empty(),
                  "COMMAND is missing; name the command to run for each line");
  if (!checked.error().empty()) return Error{ErrorCode::invalid_argument, checked.error()};
  return map;
}

}  // namespace

Command map_command(std::function<int(MapOptions)> run) {
  auto typed = std::make_shared<Typed>();
  auto options = std::make_shared<MapOptions>();
  Command command{.name = "map",
                  .help = "Run a command for each line in parallel, outputs in order"};
  command.usage = "ordo map [OPTIONS] [--] COMMAND [ARGUMENT...] < LINES";
  command.footer = kMapExamples;
  add_order_options(command.options, *typed);
  add_run_options(command.options, *typed);
  add_failure_options(command.options, *typed);
  add_record_options(command.options, *typed);
  command.take_command = [typed](std::vector<std::string> words) {
    typed->command = std::move(words);
  };
  command.check = [typed, options]() -> Status {
    Result<MapOptions> made = built(*typed);
    if (!made) return made.error();
    *options = std::move(*made);
    return {};
  };
  command.run = [options, run = std::move(run)] { return run(std::move(*options)); };
  return command;
}

}  // namespace ordo::app

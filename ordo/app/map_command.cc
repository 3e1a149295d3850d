#include "ordo/app/map_command.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <sched.h>
#include <unistd.h>
#include <utility>

#include <sys/stat.h>

#include "ordo/app/command_template.h"
#include "ordo/app/file_limit.h"
#include "ordo/app/find_program.h"
#include "ordo/app/job_runner.h"
#include "ordo/app/map_run.h"
#include "ordo/app/server_runner.h"
#include "ordo/app/summary.h"
#include "ordo/core/log.h"

namespace ordo::app {
namespace {

// Files and their like that a run keeps open.
struct Files {
  std::optional<LineKey> key;
  std::optional<Journal> journal;
  std::optional<DeadLetters> dead_letters;
  UniqueFd output;
  std::uint64_t output_end = 0;
};

std::size_t processor_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
}

void fill_in_defaults(MapOptions& options) {
  if (options.workers == 0) options.workers = processor_count();
  if (options.window == 0) {
    const std::size_t workers = options.autoscale_max.value_or(options.workers);
    options.window = std::min<std::size_t>(workers * (options.server ? 1024 : 8), 1 << 20);
  }
}

int complain(const std::string& message, int status) {
  log_line("ordo: " + message);
  return status;
}

// Returns nothing, or why the limit of open files is too low.
std::string check_file_limit(const MapOptions& options) {
  const std::size_t need = 8 * options.autoscale_max.value_or(options.workers) + 32;
  const std::size_t limit = raise_file_limit(need);
  if (limit >= need) return {};
  return "this many workers need " + std::to_string(need) + " open files, and the limit is " +
         std::to_string(limit) + "; use fewer --workers or raise 'ulimit -n'";
}

CommandTemplate make_template(const MapOptions& options) {
  if (options.server) return CommandTemplate::literal(options.command, options.shell);
  return options.shell ? CommandTemplate::shell(options.command, !options.line_on_stdin)
                       : CommandTemplate::plain(options.command, !options.line_on_stdin);
}

// What a journal is about: another command, or another way to feed it, is another journal.
std::string identity_of(const MapOptions& options, const CommandTemplate& command) {
  std::string identity = command.identity();
  for (const bool flag :
       {options.server, options.line_on_stdin, options.null_separated, !options.output.empty()}) {
    identity += flag ? '1' : '0';
  }
  return identity;
}

std::string open_output(const MapOptions& options, Files& files) {
  const std::string name = "the output file '" + options.output + "'";
  const bool resumed = options.resume || options.resume_failed;
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (resumed ? 0 : O_TRUNC);
  files.output = UniqueFd(::open(options.output.c_str(), flags, 0666));
  if (!files.output) return "cannot open " + name + ": " + ::strerrordesc_np(errno);
  if (!resumed) return {};
  struct stat info {};
  const std::uint64_t end = files.journal->output_end();
  if (::fstat(files.output.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return name + " is not a regular file; a resumed run needs one";
  }
  if (static_cast<std::uint64_t>(info.st_size) < end) {
    return name + " is shorter than the journal says; restore it, or begin again without --resume";
  }
  // What stands behind the last record was written and not recorded: its jobs run again.
  if (::ftruncate(files.output.get(), static_cast<off_t>(end)) != 0 ||
      ::lseek(files.output.get(), 0, SEEK_END) < 0) {
    return "cannot continue " + name + ": " + ::strerrordesc_np(errno);
  }
  files.output_end = end;
  return {};
}

// Returns nothing, or what is wrong.
std::string open_files(const MapOptions& options, const CommandTemplate& command, Files& files) {
  if (!options.key_regex.empty()) {
    Result<LineKey> key = LineKey::regex(options.key_regex);
    if (!key) return "--key-regex: " + key.error().message;
    files.key = std::move(*key);
  } else if (options.key_field > 0) {
    files.key = LineKey::field(options.key_field, options.key_separator);
  }
  if (!options.journal.empty()) {
    const JournalMode mode = options.resume_failed ? JournalMode::resume_failed
                             : options.resume      ? JournalMode::resume
                                                   : JournalMode::fresh;
    Result<Journal> journal = Journal::open(
        options.journal,
        {.mode = mode, .command = identity_of(options, command), .read_only = options.dry_run});
    if (!journal) return journal.error().message;
    files.journal = std::move(*journal);
  }
  if (options.dry_run) return {};
  if (!options.dead_letters.empty()) {
    Result<DeadLetters> letters = DeadLetters::open(options.dead_letters);
    if (!letters) return letters.error().message;
    files.dead_letters = std::move(*letters);
  }
  return options.output.empty() ? std::string() : open_output(options, files);
}

std::unique_ptr<JobRunner> make_runner(RunContext& context) {
  if (context.options.dry_run) return std::make_unique<DryRunner>(context);
  if (context.options.server) return std::make_unique<ServerRunner>(context);
  return std::make_unique<ProcessRunner>(context);
}

// Blocks what run() watches for; the mask before that is the one for children.
sigset_t block_signals(sigset_t& watched) {
  sigset_t before;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    sigaddset(&watched, signal);
  ::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): cannot fail for a valid signal.
  ::sigprocmask(SIG_BLOCK, &watched, &before);
  return before;
}

// The last words, and the exit status.
int conclude(const MapOptions& options, const Verdict& verdict, const RunAccount& account) {
  const Verdict::Reason reason = verdict.reason();
  if (reason != Verdict::Reason::none && reason != Verdict::Reason::closed_output) {
    std::string text = "ordo: " + verdict.message();
    text += "; " + account_line(account);
    if (!options.journal.empty() && reason == Verdict::Reason::interrupted) {
      text += "; add --resume to continue";
    }
    log_line(text);
  }
  if (options.stats) {
    const std::string text = stats_text(account);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      log_line(std::string_view(text).substr(at, end - at));
      at = end + 1;
    }
  }
  return verdict.exit_status(account.counts.failed);
}

int run_with(const MapOptions& options, const CommandTemplate& command, const std::string& file,
             Files& files) {
  sigset_t watched;
  const sigset_t children = block_signals(watched);
  const Spawner spawner(children);
  Clock& clock = system_clock();
  StopSignal stop;
  Verdict verdict(stop);
  Progress progress(options.progress, STDERR_FILENO, clock);
  RunContext context{options, command, file, spawner, stop, clock, verdict};
  const std::unique_ptr<JobRunner> runner = make_runner(context);
  OutputWriter out(files.output ? files.output.get() : STDOUT_FILENO, stop);
  OutputWriter err(STDERR_FILENO, stop);
  Journal* journal = files.journal ? &*files.journal : nullptr;

  DeliveryParts parts;
  parts.out = &out;
  parts.err = &err;
  parts.journal = options.dry_run ? nullptr : journal;
  parts.dead_letters = files.dead_letters ? &*files.dead_letters : nullptr;
  parts.progress = &progress;
  parts.ordered = options.ordered;
  parts.halt_on_error = options.halt_on_error;
  parts.output_end = files.output_end;

  MapRun run({.options = options,
              .runner = *runner,
              .verdict = verdict,
              .clock = clock,
              .key = files.key ? &*files.key : nullptr,
              .past = journal,
              .progress = progress,
              .signals = watched,
              .input = STDIN_FILENO},
             std::move(parts));
  run.go();
  const std::string errors = runner->finish();
  err.write(errors);
  if (journal != nullptr && !options.dry_run) journal->sync();
  return conclude(options, verdict,
                  {run.counts(), run.pool_stats(), run.skipped(), run.left_over(), run.elapsed()});
}

}  // namespace

int run_map(MapOptions options) {
  fill_in_defaults(options);
  if (const std::string reason = check_file_limit(options); !reason.empty()) {
    return complain(reason, kExitError);
  }
  const CommandTemplate command = make_template(options);
  Result<std::string> file = find_program(command.program(), std::getenv("PATH"));
  if (!file) {
    const bool missing = file.error().code == ErrorCode::not_found;
    return complain(file.error().message, missing ? kExitNoCommand : kExitNotExecutable);
  }
  Files files;
  if (const std::string reason = open_files(options, command, files); !reason.empty()) {
    return complain(reason, kExitError);
  }
  return run_with(options, command, *file, files);
}

}  // namespace ordo::app

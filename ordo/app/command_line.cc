#include "ordo/app/command_line.h"

#include <algorithm>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>

#include "ordo/app/command_examples.h"
#include "ordo/app/completion.h"
#include "ordo/app/join.h"
#include "ordo/app/option_values.h"
#include "ordo/app/serve_options.h"
#include "ordo/app/settings.h"
#include "ordo/app/version.h"
#include "ordo/core/nearest.h"

namespace ordo::app {
namespace {

constexpr std::uint64_t kWorkersMax = 4096;

const std::vector<std::string> kCommands = {"serve",  "map",    "gateway",   "gateway-client",
                                            "doctor", "repair", "completion"};

// The options as typed; build_map() turns them into MapOptions.
struct Typed {
  std::string workers, autoscale, window, key, key_separator, key_regex;
  std::string retries = "0", backoff = "0", timeout, kill_grace = "2s", flush_wait = "3s";
  std::string halt = "never", line_max = "128MiB", output_max = "64MiB";
  std::string joblog, dead_letters, output;
  bool ordered = false, unordered = false, server = false, shell = false, on_stdin = false;
  bool null_separated = false, resume = false, resume_failed = false;
  bool dry_run = false, progress = false, stats = false;
};

void add_order_options(CLI::App& map, Typed& typed) {
  const char* group = "How much at once, in which order";
  map.add_option("-j,--workers", typed.workers, "Jobs at a time (default: one per processor)")
      ->type_name("N")
      ->group(group);
  map.add_option("--autoscale", typed.autoscale, "Between MIN and MAX jobs, as there is demand")
      ->type_name("MIN..MAX")
      ->group(group);
  map.add_flag("-k,--ordered", typed.ordered, "Outputs in the order of the input (default)")
      ->group(group);
  map.add_flag("--unordered", typed.unordered, "Outputs as soon as they are there")->group(group);
  map.add_option("--key", typed.key, "Keep order only among lines with the same field N")
      ->type_name("N")
      ->group(group);
  map.add_option("-t,--field-separator", typed.key_separator,
                 "What separates fields (default: blanks)")
      ->type_name("CHAR")
      ->group(group);
  map.add_option("--key-regex", typed.key_regex,
                 "Keep order only among lines whose first group is the same")
      ->type_name("RE")
      ->group(group);
  map.add_option("--window", typed.window, "Lines taken in and not yet printed")
      ->type_name("N")
      ->group(group);
}

void add_run_options(CLI::App& map, Typed& typed) {
  const char* group = "How a line is given to COMMAND";
  map.add_flag("--shell", typed.shell, "COMMAND is a script for sh; {} is its first parameter")
      ->group(group);
  map.add_flag("--stdin", typed.on_stdin, "The line is the standard input of COMMAND")
      ->group(group);
  map.add_flag("--server", typed.server, "Keep COMMAND running: it answers each line with a line")
      ->group(group);
  map.add_flag("-0,--null", typed.null_separated, "Lines end with NUL instead of newline")
      ->group(group);
  map.add_option("--max-line", typed.line_max, "Longest line (default 128MiB); longer ones fail")
      ->type_name("SIZE")
      ->group(group);
  map.add_option("--flush-wait", typed.flush_wait,
                 "When to suspect that a server does not flush (default 3s)")
      ->type_name("D")
      ->group(group);
  map.add_flag("--dry-run", typed.dry_run, "Print the commands and run nothing")->group(group);
}

void add_failure_options(CLI::App& map, Typed& typed) {
  const char* group = "When something fails";
  map.add_option("--retries", typed.retries, "Further attempts for a job that fails (default 0)")
      ->type_name("N")
      ->group(group);
  map.add_option("--backoff", typed.backoff, "Wait before a retry, doubled for each (default 0)")
      ->type_name("D")
      ->group(group);
  map.add_option("--timeout", typed.timeout, "End an attempt that takes longer")
      ->type_name("D")
      ->group(group);
  map.add_option("--kill-after", typed.kill_grace, "From SIGTERM to SIGKILL (default 2s)")
      ->type_name("D")
      ->group(group);
  map.add_option("--max-output", typed.output_max, "Most output of one job (default 64MiB)")
      ->type_name("SIZE")
      ->group(group);
  map.add_option("--halt", typed.halt, "on-error: stop at the first failure; never (default)")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"on-error", "never"}))
      ->group(group);
  map.add_option("--dlq", typed.dead_letters, "Add the lines that failed, with the reason, as JSON")
      ->type_name("FILE")
      ->group(group);
}

void add_record_options(CLI::App& map, Typed& typed) {
  const char* group = "What is kept and shown";
  map.add_option("--joblog", typed.joblog, "Record the finished jobs")
      ->type_name("FILE")
      ->group(group);
  map.add_flag("--resume", typed.resume, "Skip the jobs that --joblog has recorded")->group(group);
  map.add_flag("--resume-failed", typed.resume_failed, "As --resume, but run failed jobs again")
      ->group(group);
  map.add_option("-o,--output", typed.output, "Write there; exact also when resumed after a crash")
      ->type_name("FILE")
      ->group(group);
  map.add_flag("--progress", typed.progress, "Show progress on a terminal")->group(group);
  map.add_flag("--stats", typed.stats, "Print a summary to standard error at the end")
      ->group(group);
}

// A command that has settings: a flag for each, --config and --check.
void add_setting_options(CLI::App& command, const std::vector<SettingRule>& rules,
                         const std::string& config_help, CommandWords& words) {
  for (const SettingRule& rule : rules) {
    const bool is_switch = rule.type.empty();
    const std::string help = rule.help + (is_switch ? "" : " (default " + rule.initial + ")");
    if (is_switch) {
      command.add_flag(flag_of(rule.name), help);
    } else {
      command.add_option(flag_of(rule.name), help)->type_name(rule.type);
    }
  }
  command.add_option("--config", words.config, config_help)->type_name("FILE");
  command.add_flag("--check", words.check_only, "Say whether all settings are good, and exit");
}

// The settings that were typed.
void keep_flags(const CLI::App& command, const std::vector<SettingRule>& rules,
                CommandWords& words) {
  for (const SettingRule& rule : rules) {
    const CLI::Option* option = command.get_option(flag_of(rule.name));
    if (option->count() == 0) continue;
    words.flags.emplace_back(rule.name, rule.type.empty() ? "true" : option->as<std::string>());
  }
}

void add_client_options(CLI::App& client, ClientOptions& options) {
  client.add_option("--connect", options.connect, "The gateway (default 127.0.0.1:7070)")
      ->type_name("ADDR:PORT");
  client.add_flag("--binary", options.binary, "Speak the binary protocol");
  client.add_flag("--raw", options.raw, "Lines have their own request ids; text only");
  client.add_option("--window", options.window, "Requests sent and not yet answered (default 256)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'024));  // More, and both ends might wait to be read.
}

void add_store_options(CLI::App& command, StoreWords& words) {
  command.add_option("DIRECTORY", words.directory, "Where a broker keeps its data")->required();
  command.add_option("--witness", words.witness, "The file beside it (default: DIRECTORY.witness)")
      ->type_name("FILE");
  command.footer(kStoreExamples);
}

// Says how a command is called, where the library would leave out what comes before and after.
class UsageFormatter : public CLI::Formatter {
 public:
  explicit UsageFormatter(std::string usage) : usage_(std::move(usage)) {}

  std::string make_usage(const CLI::App*, std::string) const override {
    return "\nUsage: " + usage_ + "\n";
  }

 private:
  std::string usage_;
};

struct Program {
  CLI::App app{"Ordo keeps things in order while they run in parallel.", "ordo"};
  CLI::App* serve = nullptr;
  CLI::App* map = nullptr;
  CLI::App* gateway = nullptr;
  CLI::App* client = nullptr;
  CLI::App* doctor = nullptr;
  CLI::App* repair = nullptr;
  CLI::App* completion = nullptr;
  Typed typed;
  CommandWords serve_words;
  CommandWords gateway_words;
  ClientOptions client_options;
  StoreWords store_words;
  std::string shell;

  Program() {
    app.set_version_flag("--version", version_text());
    app.set_help_flag("-h,--help", "Print this help and exit");
    app.footer(kExamples);
    app.require_subcommand(0, 1);
    serve = app.add_subcommand("serve", "Keep messages and deliver them, in order per key");
    serve->formatter(std::make_shared<UsageFormatter>("ordo serve [OPTIONS]"));
    serve->footer(kServeExamples);
    add_setting_options(*serve, serve_rules(), "Settings", serve_words);
    map = app.add_subcommand("map", "Run a command for each line in parallel, outputs in order");
    map->formatter(
        std::make_shared<UsageFormatter>("ordo map [OPTIONS] [--] COMMAND [ARGUMENT...] < LINES"));
    map->footer(kMapExamples);
    add_order_options(*map, typed);
    add_run_options(*map, typed);
    add_failure_options(*map, typed);
    add_record_options(*map, typed);
    gateway = app.add_subcommand("gateway", "Serve orders over TCP, in order per correlation id");
    gateway->formatter(std::make_shared<UsageFormatter>("ordo gateway [OPTIONS]"));
    gateway->footer(kGatewayExamples);
    add_setting_options(*gateway, gateway_rules(), "Settings, routes and risk limits",
                        gateway_words);
    const std::string no_admin = "No HTTP server; as --admin off";
    gateway->add_flag("--no-admin", no_admin);
    client = app.add_subcommand("gateway-client", "Send lines to a gateway and print the replies");
    client->formatter(std::make_shared<UsageFormatter>("ordo gateway-client [OPTIONS] < LINES"));
    client->footer(kClientExamples);
    add_client_options(*client, client_options);
    doctor = app.add_subcommand("doctor", "Say whether all data of a broker is there");
    add_store_options(*doctor, store_words);
    repair = app.add_subcommand("repair", "Make damaged data of a broker usable again");
    add_store_options(*repair, store_words);
    repair->add_flag("--accept-loss", store_words.accept_loss, "Go on without what is missing");
    completion = app.add_subcommand("completion", "Print a completion script for bash or zsh");
    completion->add_option("SHELL", shell, "bash or zsh")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh"}));
    completion->footer(
        "\nExamples:\n  source <(ordo completion bash)\n"
        "  ordo completion bash > /etc/bash_completion.d/ordo\n"
        "  ordo completion zsh > ~/.zfunc/_ordo\n");
  }

  // The subcommand that was named, or the program as a whole.
  const CLI::App& asked() const {
    for (const CLI::App* command : {serve, map, gateway, client, doctor, repair, completion}) {
      if (command->parsed()) return *command;
    }
    return app;
  }
  std::string asked_name() const {
    return &asked() == &app ? "ordo" : "ordo " + asked().get_name();
  }
};

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_min() > 0;
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      names.push_back("--" + name);
    for (const std::string& name : option->get_snames())
      names.push_back("-" + name);
  }
  return names;
}

Invocation complain(const std::string& message, const std::string& help) {
  Invocation wanted;
  wanted.what = Invocation::What::complain;
  wanted.text = "ordo: " + message + "\nTry '" + help + " --help'.";
  return wanted;
}

// How many words the option at words[at] takes, itself included; 0 when there is no such option.
// `-j4`, `-j 4`, `-0j4`, `--workers 4` and `--workers=4` are all known.
std::size_t option_words(const CLI::App& map, const std::string& word) {
  if (word.starts_with("--")) {
    const std::size_t equals = word.find('=');
    const CLI::Option* option = map.get_option_no_throw(word.substr(0, equals));
    if (option == nullptr) return 0;
    return takes_value(*option) && equals == std::string::npos ? 2 : 1;
  }
  for (std::size_t i = 1; i < word.size(); ++i) {
    const CLI::Option* option = map.get_option_no_throw(std::string("-") + word[i]);
    if (option == nullptr) return 0;
    if (takes_value(*option)) return i + 1 == word.size() ? 2 : 1;
  }
  return 1;
}

// Cuts `words` (behind "map") where COMMAND begins. Returns the option nobody knows, if any.
std::string split_command(const CLI::App& map, std::vector<std::string>& words,
                          std::vector<std::string>& command) {
  std::size_t at = 0;
  while (at < words.size() && words[at].size() > 1 && words[at][0] == '-' && words[at] != "--") {
    const std::size_t count = option_words(map, words[at]);
    if (count == 0) return words[at].substr(0, words[at].find('='));
    at += count;
  }
  at = std::min(at, words.size());
  const bool marked = at < words.size() && words[at] == "--";
  command.assign(words.begin() + static_cast<std::ptrdiff_t>(at + (marked ? 1 : 0)), words.end());
  words.resize(at);
  return {};
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

Invocation build_map(const Typed& typed, std::vector<std::string> command) {
  Invocation wanted;
  wanted.what = Invocation::What::map;
  MapOptions& map = wanted.map;
  map.command = std::move(command);
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
  return checked.error().empty() ? wanted : complain(checked.error(), "ordo map");
}

CompletionOption completion_option(const CLI::Option& option) {
  static const std::set<std::string> kFiles{"joblog", "dlq", "output", "config", "witness", "data"};
  CompletionOption described;
  for (const std::string& name : option.get_snames())
    described.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) {
    described.names.push_back("--" + name);
    described.takes_file = described.takes_file || kFiles.count(name) > 0;
    if (name == "halt") described.values = {"on-error", "never"};
    if (name == "run") described.values = {"inline", "threads"};
    if (name == "fsync") described.values = {"commit", "interval", "os"};
    if (name == "log") described.values = {"text", "json"};
  }
  described.text = option.get_description();
  described.takes_value = takes_value(option);
  return described;
}

std::string completion_script(const Program& program) {
  std::vector<CompletionCommand> commands;
  for (const CLI::App* app : program.app.get_subcommands({})) {
    CompletionCommand command{app->get_name(), app->get_description(), {}, {}, false};
    for (const CLI::Option* option : app->get_options()) {
      if (!option->get_positional()) command.options.push_back(completion_option(*option));
    }
    command.runs_a_command = app == program.map;
    if (app == program.completion) command.words = {"bash", "zsh"};
    commands.push_back(std::move(command));
  }
  return program.shell == "bash" ? bash_completion(commands) : zsh_completion(commands);
}

Invocation print(std::string text) {
  Invocation wanted;
  wanted.text = std::move(text);
  return wanted;
}

std::string unknown(const std::string& kind, const std::string& word,
                    const std::vector<std::string>& known) {
  const std::string meant = nearest(word, known);
  return "unknown " + kind + " '" + word + "'" +
         (meant.empty() ? "" : "; did you mean '" + meant + "'?");
}

// What is wrong with words the library had no use for: an option nobody knows, or a word too many.
std::string stranger_among(const CLI::App& command, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (word.starts_with("-") && command.get_option_no_throw(name) == nullptr) {
      return unknown("option", name, names_of(command));
    }
  }
  return "'" + words.back() + "' is one word too many";
}

}  // namespace

Invocation parse_command_line(const std::vector<std::string>& arguments) {
  Program program;
  if (arguments.empty()) {
    return complain("say what to do; commands: " + join(kCommands, ", "), "ordo");
  }
  std::vector<std::string> words = arguments;
  std::vector<std::string> command;
  const std::string& first = words[0];
  const bool is_map = first == "map";
  if (is_map) {
    std::vector<std::string> rest(words.begin() + 1, words.end());
    const std::string stranger = split_command(*program.map, rest, command);
    if (!stranger.empty()) {
      return complain(unknown("option", stranger, names_of(*program.map)), "ordo map");
    }
    words.resize(1);
    words.insert(words.end(), rest.begin(), rest.end());
  } else if (first[0] != '-' && std::ranges::find(kCommands, first) == kCommands.end()) {
    return complain(unknown("command", first, kCommands), "ordo");
  }
  try {
    std::reverse(words.begin(), words.end());  // As the library takes them.
    program.app.parse(words);
  } catch (const CLI::CallForHelp&) {
    return print(program.asked().help());
  } catch (const CLI::CallForVersion&) {
    return print(version_text() + "\n");
  } catch (const CLI::ExtrasError&) {
    return complain(stranger_among(program.asked(), arguments), program.asked_name());
  } catch (const CLI::ParseError& error) {
    return complain(error.what(), program.asked_name());
  }
  if (is_map) return build_map(program.typed, std::move(command));
  Invocation wanted;
  if (program.serve->parsed()) {
    wanted.what = Invocation::What::serve;
    keep_flags(*program.serve, serve_rules(), program.serve_words);
    wanted.serve = std::move(program.serve_words);
    return wanted;
  }
  if (program.gateway->parsed()) {
    wanted.what = Invocation::What::gateway;
    keep_flags(*program.gateway, gateway_rules(), program.gateway_words);
    if (program.gateway->get_option("--no-admin")->count() > 0)
      program.gateway_words.flags.emplace_back("admin", "off");
    wanted.gateway = std::move(program.gateway_words);
    return wanted;
  }
  if (program.client->parsed()) {
    wanted.what = Invocation::What::gateway_client;
    wanted.client = std::move(program.client_options);
    return wanted;
  }
  if (program.doctor->parsed() || program.repair->parsed()) {
    wanted.what = program.doctor->parsed() ? Invocation::What::doctor : Invocation::What::repair;
    wanted.store = std::move(program.store_words);
    return wanted;
  }
  return print(completion_script(program));
}

}  // namespace ordo::app

#include "ordo/app/command_line.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "ordo/app/command_examples.h"
#include "ordo/app/join.h"
#include "ordo/app/version.h"
#include "ordo/core/nearest.h"

namespace ordo::app {
namespace {

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

Invocation complain(const std::string& message, const std::string& help) {
  return {Invocation::What::complain, "ordo: " + message + "\nTry '" + help + " --help'.", {}};
}

Invocation print(std::string text) {
  return {Invocation::What::print, std::move(text), {}};
}

std::string unknown(const std::string& kind, const std::string& word,
                    const std::vector<std::string>& known) {
  const std::string meant = nearest(word, known);
  return "unknown " + kind + " '" + word + "'" +
         (meant.empty() ? "" : "; did you mean '" + meant + "'?");
}

// The library's idea of a command, for as long as its words are read.
class Reading {
 public:
  explicit Reading(const Command& command)
      : command_(command),
        app_(command.help, "ordo " + command.name) {
    app_.formatter(std::make_shared<UsageFormatter>(command.usage));
    app_.set_help_flag("-h,--help", "Print this help and exit");
    app_.footer(command.footer);
    for (const CommandOption& option : command.options)
      options_.push_back(add(option));
  }

  Invocation read(std::vector<std::string> words) {
    if (command_.take_command) {
      std::vector<std::string> rest;
      if (const std::string stranger = split_command(words, rest); !stranger.empty())
        return refuse(unknown("option", stranger, names()));
      command_.take_command(std::move(rest));
    }
    const std::vector<std::string> typed = words;
    try {
      std::reverse(words.begin(), words.end());  // As the library takes them.
      app_.parse(words);
    } catch (const CLI::CallForHelp&) {
      return print(app_.help());
    } catch (const CLI::ExtrasError&) {
      return refuse(stranger_among(typed));
    } catch (const CLI::ParseError& error) {
      return refuse(error.what());
    }
    if (const std::string wrong = hand_out(); !wrong.empty()) return refuse(wrong);
    if (command_.check) {
      if (const Status good = command_.check(); !good) return refuse(good.error().message);
    }
    return {Invocation::What::run, {}, command_.run};
  }

 private:
  Invocation refuse(const std::string& message) const {
    return complain(message, "ordo " + command_.name);
  }

  CLI::Option* add(const CommandOption& option) {
    CLI::Option* added = nullptr;
    if (option.is_switch()) {
      added = app_.add_flag(option.names, option.help);
      added->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    } else {
      added = app_.add_option(option.names, option.help);
      if (!option.type.empty()) added->type_name(option.type);
      if (option.is_repeatable) {
        added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        if (option.is_word()) added->expected(-1);
        added->allow_extra_args(option.is_word());
      }
    }
    if (!option.group.empty()) added->group(option.group);
    return added->required(option.is_required);
  }

  // Gives each option its values. Returns what is wrong with one of them, if anything is.
  std::string hand_out() const {
    for (std::size_t i = 0; i < options_.size(); ++i) {
      const CommandOption& option = command_.options[i];
      if (options_[i]->count() == 0) continue;
      if (option.is_switch()) {
        option.take(options_[i]->as<bool>() ? "true" : "false");
        continue;
      }
      for (const std::string& value : options_[i]->reduced_results()) {
        if (!option.choices.empty() &&
            std::ranges::find(option.choices, value) == option.choices.end()) {
          return options_[i]->get_name() + ": '" + value + "' is none of " +
                 join(option.choices, ", ");
        }
        option.take(value);
      }
    }
    return {};
  }

  static bool takes_value(const CLI::Option& option) { return option.get_items_expected_min() > 0; }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const CLI::Option* option : app_.get_options()) {
      for (const std::string& name : option->get_lnames())
        names.push_back("--" + name);
      for (const std::string& name : option->get_snames())
        names.push_back("-" + name);
    }
    return names;
  }

  // How many words the option `word` takes, itself included; 0 when there is no such option.
  // `-j4`, `-j 4`, `-0j4`, `--workers 4` and `--workers=4` are all known.
  std::size_t option_words(const std::string& word) const {
    if (word.starts_with("--")) {
      const std::size_t equals = word.find('=');
      const CLI::Option* option = app_.get_option_no_throw(word.substr(0, equals));
      if (option == nullptr) return 0;
      return takes_value(*option) && equals == std::string::npos ? 2 : 1;
    }
    for (std::size_t i = 1; i < word.size(); ++i) {
      const CLI::Option* option = app_.get_option_no_throw(std::string("-") + word[i]);
      if (option == nullptr) return 0;
      if (takes_value(*option)) return i + 1 == word.size() ? 2 : 1;
    }
    return 1;
  }

  // Cuts `words` where the user's command begins. Returns the option nobody knows, if any.
  std::string split_command(std::vector<std::string>& words,
                            std::vector<std::string>& command) const {
    std::size_t at = 0;
    while (at < words.size() && words[at].size() > 1 && words[at][0] == '-' && words[at] != "--") {
      const std::size_t count = option_words(words[at]);
      if (count == 0) return words[at].substr(0, words[at].find('='));
      at += count;
    }
    at = std::min(at, words.size());
    const bool marked = at < words.size() && words[at] == "--";
    command.assign(words.begin() + static_cast<std::ptrdiff_t>(at + (marked ? 1 : 0)), words.end());
    words.resize(at);
    return {};
  }

  // What is wrong with words the library had no use for: an unknown option, or a word too many.
  std::string stranger_among(const std::vector<std::string>& words) const {
    for (const std::string& word : words) {
      const std::string name = word.substr(0, word.find('='));
      if (word.starts_with("-") && app_.get_option_no_throw(name) == nullptr)
        return unknown("option", name, names());
    }
    return "'" + words.back() + "' is one word too many";
  }

  const Command& command_;
  CLI::App app_;
  std::vector<CLI::Option*> options_;  // In the order of the command's.
};

// A list of commands with a line for each: the help of the program, or of a group.
std::string listed(CLI::App& app, const CommandTable& table, const std::string& group) {
  for (const std::string& word : group.empty() ? table.first_words() : table.verbs(group)) {
    std::string name = group;
    if (!group.empty()) name += ' ';
    name += word;
    const Command* command = table.command(name);
    app.add_subcommand(word, command != nullptr ? command->help : table.group(word)->help);
  }
  return app.help();
}

Invocation program_alone(const std::vector<std::string>& arguments, const CommandTable& table) {
  const std::string& first = arguments[0];
  if (first == "--version") return print(version_text() + "\n");
  CLI::App app{"Ordo keeps things in order while they run in parallel.", "ordo"};
  app.set_version_flag("--version", version_text());
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.footer(kExamples);
  if (first == "-h" || first == "--help") return print(listed(app, table, {}));
  return complain(unknown("option", first, {"--help", "--version", "-h"}), "ordo");
}

Invocation group_alone(const CommandGroup& group, const CommandTable& table) {
  CLI::App app{group.help, "ordo " + group.name};
  app.formatter(std::make_shared<UsageFormatter>("ordo " + group.name + " VERB [OPTIONS]"));
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.footer(group.footer);
  return print(listed(app, table, group.name));
}

}  // namespace

Invocation parse_command_line(const std::vector<std::string>& arguments,
                              const CommandTable& table) {
  if (arguments.empty())
    return complain("say what to do; commands: " + join(table.first_words(), ", "), "ordo");
  const std::string& first = arguments[0];
  if (first.starts_with('-')) return program_alone(arguments, table);
  const CommandGroup* group = table.group(first);
  const std::size_t name_words = group == nullptr ? 1 : 2;
  if (group != nullptr) {
    const std::vector<std::string> verbs = table.verbs(first);
    if (arguments.size() == 1)
      return complain("say what to do with " + first + ": " + join(verbs, ", "), "ordo " + first);
    if (arguments[1] == "-h" || arguments[1] == "--help") return group_alone(*group, table);
    if (std::ranges::find(verbs, arguments[1]) == verbs.end())
      return complain(unknown("verb", arguments[1], verbs), "ordo " + first);
  }
  const Command* command = table.command(group == nullptr ? first : first + " " + arguments[1]);
  if (command == nullptr) return complain(unknown("command", first, table.first_words()), "ordo");
  return Reading(*command).read(
      {arguments.begin() + static_cast<std::ptrdiff_t>(name_words), arguments.end()});
}

}  // namespace ordo::app

#include "ordo/app/command_line.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/app/commands.h"

namespace ordo::app {
namespace {

using What = Invocation::What;
using Words = std::vector<std::string>;

// What was understood, and what the command would have been run with.
struct Parsed : Invocation {
  MapOptions map;
  StoreWords store;
  std::string ran;
};

// All commands; those that are looked at keep what they get.
Parsed parse(const Words& words) {
  Parsed parsed;
  CommandTable table = all_commands();
  const auto replace = [&](Command command) {
    *std::ranges::find(table.commands, command.name, &Command::name) = std::move(command);
  };
  const auto keep = [&](const char* name) {
    return [&parsed, name](const StoreWords& store) {
      parsed.ran = name;
      parsed.store = store;
      return 0;
    };
  };
  replace(map_command([&](MapOptions options) {
    parsed.ran = "map";
    parsed.map = std::move(options);
    return 0;
  }));
  replace(doctor_command(keep("doctor")));
  replace(repair_command(keep("repair")));
  static_cast<Invocation&>(parsed) = parse_command_line(words, table);
  const bool is_kept =
      !words.empty() && (words[0] == "map" || words[0] == "doctor" || words[0] == "repair");
  if (parsed.what == What::run && is_kept) {
    EXPECT_EQ(parsed.run(), 0);
  }
  return parsed;
}

std::string complaint(const Words& words) {
  const Parsed wanted = parse(words);
  EXPECT_EQ(wanted.what, What::complain);
  return wanted.what == What::complain ? wanted.text : "no complaint";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(CommandLineTest, TheCommandBeginsAtTheFirstWordThatIsNoOption) {
  const Parsed wanted = parse({"map", "-j2", "sh", "-c", "echo {}", "-j9"});
  ASSERT_EQ(wanted.ran, "map") << wanted.text;
  EXPECT_EQ(wanted.map.workers, 2u);
  EXPECT_EQ(wanted.map.command, (Words{"sh", "-c", "echo {}", "-j9"}));
}

TEST(CommandLineTest, TwoDashesEndTheOptionsOnce) {
  const Parsed wanted = parse({"map", "--workers", "3", "--", "--odd", "--", "{}"});
  ASSERT_EQ(wanted.ran, "map") << wanted.text;
  EXPECT_EQ(wanted.map.workers, 3u);
  EXPECT_EQ(wanted.map.command, (Words{"--odd", "--", "{}"}));
}

TEST(CommandLineTest, ShortOptionsMayBeJoined) {
  const Parsed wanted = parse({"map", "-0j4", "-k", "--window=5", "cat"});
  ASSERT_EQ(wanted.ran, "map") << wanted.text;
  EXPECT_TRUE(wanted.map.null_separated);
  EXPECT_EQ(wanted.map.workers, 4u);
  EXPECT_EQ(wanted.map.window, 5u);
}

TEST(CommandLineTest, ValuesHaveUnits) {
  const Parsed wanted = parse({"map", "--timeout", "250ms", "--max-line", "1MiB", "--retries", "3",
                               "--backoff", "1s", "--autoscale", "2..6", "cat"});
  ASSERT_EQ(wanted.ran, "map") << wanted.text;
  EXPECT_EQ(wanted.map.timeout, std::chrono::milliseconds(250));
  EXPECT_EQ(wanted.map.line_bytes_max, 1u << 20);
  EXPECT_EQ(wanted.map.retries, 3u);
  EXPECT_EQ(wanted.map.backoff, std::chrono::seconds(1));
  EXPECT_EQ(wanted.map.workers, 2u);
  EXPECT_EQ(wanted.map.autoscale_max, 6u);
}

TEST(CommandLineTest, AWrongValueIsRefusedWithTheNameOfItsOption) {
  EXPECT_TRUE(has(complaint({"map", "-j", "0", "cat"}), "--workers: '0'"));
  EXPECT_TRUE(has(complaint({"map", "-j", "-1", "cat"}), "--workers: '-1'"));
  EXPECT_TRUE(has(complaint({"map", "--window", "0", "cat"}), "--window: '0'"));
  EXPECT_TRUE(has(complaint({"map", "--timeout", "5", "cat"}), "--timeout"));
  EXPECT_TRUE(has(complaint({"map", "--timeout", "0", "cat"}), "--timeout"));
  EXPECT_TRUE(has(complaint({"map", "--autoscale", "5..2", "cat"}), "--autoscale"));
  EXPECT_TRUE(has(complaint({"map", "--halt", "now", "cat"}), "--halt"));
  EXPECT_TRUE(has(complaint({"map", "--key", "0", "cat"}), "--key"));
}

TEST(CommandLineTest, ContradictionsAreRefused) {
  EXPECT_TRUE(has(complaint({"map", "--ordered", "--unordered", "cat"}), "exclude"));
  EXPECT_TRUE(has(complaint({"map", "--key", "1", "--unordered", "cat"}), "exclude"));
  EXPECT_TRUE(has(complaint({"map", "-j2", "--autoscale", "1..2", "cat"}), "exclude"));
  EXPECT_TRUE(has(complaint({"map", "--resume", "cat"}), "--joblog"));
}

TEST(CommandLineTest, AMissingCommandOrValueIsNamed) {
  EXPECT_TRUE(has(complaint({"map", "-j2"}), "COMMAND is missing"));
  EXPECT_TRUE(has(complaint({"map", "-j"}), "workers"));
}

TEST(CommandLineTest, SomethingUnknownSuggestsTheNearest) {
  EXPECT_TRUE(has(complaint({"mpa"}), "did you mean 'map'"));
  EXPECT_TRUE(has(complaint({"map", "--wrokers", "2", "cat"}), "did you mean '--workers'"));
  EXPECT_TRUE(has(complaint({"map", "--timout=2s", "cat"}), "did you mean '--timeout'"));
  EXPECT_TRUE(has(complaint({"completion", "fish"}), "fish"));
}

TEST(CommandLineTest, HelpHasThreeExamplesAndTheExitStatus) {
  const Parsed wanted = parse({"map", "--help"});
  EXPECT_EQ(wanted.what, What::print);
  EXPECT_TRUE(has(wanted.text, "Usage: ordo map"));
  EXPECT_TRUE(has(wanted.text, "Examples:"));
  EXPECT_TRUE(has(wanted.text, "Exit status:"));
  EXPECT_TRUE(has(wanted.text, "--joblog"));
  EXPECT_TRUE(has(parse({"--help"}).text, "completion"));
  EXPECT_TRUE(has(parse({"completion", "--help"}).text, "bash"));
}

TEST(CommandLineTest, TheVersionNamesCompilerAndBuild) {
  const Parsed wanted = parse({"--version"});
  EXPECT_EQ(wanted.what, What::print);
  EXPECT_TRUE(wanted.text.starts_with("ordo 0.")) << wanted.text;
  EXPECT_TRUE(has(wanted.text, "("));
}

TEST(CommandLineTest, DoctorAndRepairTakeADirectory) {
  const Parsed doctor = parse({"doctor", "/data", "--witness", "/other/data.witness"});
  EXPECT_EQ(doctor.ran, "doctor");
  EXPECT_EQ(doctor.store.directory, "/data");
  EXPECT_EQ(doctor.store.witness, "/other/data.witness");
  const Parsed repair = parse({"repair", "--accept-loss", "/data"});
  EXPECT_EQ(repair.ran, "repair");
  EXPECT_TRUE(repair.store.accept_loss);
  EXPECT_FALSE(parse({"repair", "/data"}).store.accept_loss);
  EXPECT_TRUE(has(complaint({"repair"}), "DIRECTORY"));
  EXPECT_EQ(parse({"doctor"}).store.directory, "");
  EXPECT_TRUE(has(complaint({"doctor", "--witness", "/w"}), "DIRECTORY"));
  EXPECT_TRUE(has(complaint({"doctor", "/data", "--accept-loss"}), "--accept-loss"));
}

TEST(CommandLineTest, ACommandMayHaveTwoWords) {
  std::string name;
  std::vector<std::string> labels;
  Command create{.name = "topics create", .help = "Make one"};
  create.usage = "ordo topics create TOPIC";
  create.options = {
      {.names = "TOPIC", .help = "Its name", .take = into(name), .is_required = true},
      {.names = "--label",
       .type = "NAME=VALUE",
       .help = "A label",
       .take = into(labels),
       .is_repeatable = true},
  };
  create.run = [] { return 7; };
  Command remove{.name = "topics delete", .help = "Delete one"};
  const CommandTable table{.groups = {{"topics", "All about topics", "the end"}},
                           .commands = {create, remove}};
  const auto text = [&](const Words& words) { return parse_command_line(words, table).text; };

  const Invocation wanted =
      parse_command_line({"topics", "create", "--label", "a=b", "orders", "--label=c=d"}, table);
  ASSERT_EQ(wanted.what, What::run) << wanted.text;
  EXPECT_EQ(wanted.run(), 7);
  EXPECT_EQ(name, "orders");
  EXPECT_EQ(labels, (Words{"a=b", "c=d"}));
  EXPECT_TRUE(has(text({"topics"}), "say what to do with topics: create, delete"));
  EXPECT_TRUE(has(text({"topics", "craete"}), "did you mean 'create'"));
  EXPECT_TRUE(has(text({"topics", "--help"}), "Delete one"));
  EXPECT_TRUE(has(text({"topics", "create", "--help"}), "Usage: ordo topics create TOPIC"));
  EXPECT_TRUE(has(text({"topics", "create"}), "TOPIC is required"));
  EXPECT_TRUE(has(text({"--help"}), "All about topics"));
  EXPECT_TRUE(has(text({"topcis"}), "did you mean 'topics'"));
}

}  // namespace
}  // namespace ordo::app

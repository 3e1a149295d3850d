#include "ordo/app/command_template.h"

#include <gtest/gtest.h>

#include "ordo/app/shell_words.h"

namespace ordo::app {
namespace {

using Words = std::vector<std::string>;

Words fill(const CommandTemplate& command, std::string_view line) {
  FilledCommand filled;
  EXPECT_EQ(command.fill({.line = line, .number = 7, .slot = 3}, filled), "");
  return filled.words();
}

TEST(CommandTemplateTest, PlaceholdersAreReplacedAnywhereInAnArgument) {
  const auto command = CommandTemplate::plain({"cp", "in/{}.x", "{#}-{%}-{}{}"}, true);
  EXPECT_EQ(fill(command, "a b"), (Words{"cp", "in/a b.x", "7-3-a ba b"}));
}

TEST(CommandTemplateTest, TheLineIsAppendedWhenNothingAsksForIt) {
  EXPECT_EQ(fill(CommandTemplate::plain({"echo", "x"}, true), "a"), (Words{"echo", "x", "a"}));
  EXPECT_EQ(fill(CommandTemplate::plain({"echo", "{#}"}, true), "a"), (Words{"echo", "7"}));
  EXPECT_EQ(fill(CommandTemplate::plain({"cat"}, false), "a"), (Words{"cat"}));
}

TEST(CommandTemplateTest, WhatALineContainsIsNeverLookedAtAgain) {
  const auto command = CommandTemplate::plain({"echo", "{} {#}"}, true);
  EXPECT_EQ(fill(command, "{#}{}$(x)"), (Words{"echo", "{#}{}$(x) 7"}));
}

TEST(CommandTemplateTest, AnEmptyLineIsAnEmptyArgument) {
  EXPECT_EQ(fill(CommandTemplate::plain({"echo"}, true), ""), (Words{"echo", ""}));
}

TEST(CommandTemplateTest, ANulOrAnArgumentTooLongIsExplained) {
  const auto command = CommandTemplate::plain({"echo"}, true);
  FilledCommand filled;
  EXPECT_NE(command.fill({.line = std::string_view("a\0b", 3)}, filled).find("NUL"),
            std::string::npos);
  EXPECT_NE(command.fill({.line = std::string(131'072, 'x')}, filled).find("131071"),
            std::string::npos);
  EXPECT_EQ(command.fill({.line = std::string(131'071, 'x')}, filled), "");
}

TEST(CommandTemplateTest, AScriptGetsTheLineAsAParameterAndNotAsText) {
  const auto command = CommandTemplate::shell({"echo", "{}", "|", "wc"}, true);
  const Words words = fill(command, "; rm -rf /");
  EXPECT_EQ(words, (Words{"sh", "-c", "echo \"${1}\" | wc", "ordo", "; rm -rf /", "7", "3"}));
}

TEST(CommandTemplateTest, AScriptThatTakesItsParameterItselfGetsNothingAppended) {
  EXPECT_EQ(fill(CommandTemplate::shell({"echo $1"}, true), "a")[2], "echo $1");
  EXPECT_EQ(fill(CommandTemplate::shell({"echo"}, true), "a")[2], "echo \"${1}\"");
}

TEST(CommandTemplateTest, TheCommandIsShownAsItCouldBeTyped) {
  const auto command = CommandTemplate::plain({"echo", "{}"}, true);
  EXPECT_EQ(command.show({.line = "it's $HOME"}), "echo 'it'\\''s $HOME'");
}

TEST(CommandTemplateTest, DifferentCommandsHaveDifferentIdentities) {
  EXPECT_NE(CommandTemplate::plain({"a", "b c"}, true).identity(),
            CommandTemplate::plain({"a", "b", "c"}, true).identity());
  EXPECT_NE(CommandTemplate::plain({"a"}, true).identity(),
            CommandTemplate::plain({"a"}, false).identity());
}

TEST(ShellWordsTest, PlaceholdersKeepToTheQuotesAroundThem) {
  EXPECT_EQ(placeholders_as_parameters("a {} b"), "a \"${1}\" b");
  EXPECT_EQ(placeholders_as_parameters("\"x {} y\""), "\"x ${1} y\"");
  EXPECT_EQ(placeholders_as_parameters("'x {} y'"), "'x '\"${1}\"' y'");
  EXPECT_EQ(placeholders_as_parameters("{#}{%}"), "\"${2}\"\"${3}\"");
  EXPECT_EQ(placeholders_as_parameters("\\' {}"), "\\' \"${1}\"");
}

TEST(ShellWordsTest, OnlyHarmlessWordsStayUnquoted) {
  EXPECT_EQ(quote_for_shell("a-b_c.d/e"), "a-b_c.d/e");
  EXPECT_EQ(quote_for_shell(""), "''");
  EXPECT_EQ(quote_for_shell("a b"), "'a b'");
  EXPECT_EQ(quote_for_shell("$x"), "'$x'");
  EXPECT_EQ(quote_for_shell("~"), "'~'");
}

}  // namespace
}  // namespace ordo::app

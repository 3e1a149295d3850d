#include "ordo/app/settings.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ordo::app {
namespace {

const std::vector<SettingRule> kRules = {{"budget", "N", "1024", "How many"},
                                         {"strict_gaps", "", "false", "Whether"}};

const char* nothing(const std::string&) {
  return nullptr;
}

TEST(SettingsTest, WithoutAnythingTheDefaultHolds) {
  Settings settings(kRules, "gateway");
  settings.take_environment(nothing);
  EXPECT_EQ(settings.at("budget").text, "1024");
  EXPECT_EQ(settings.at("budget").origin, "default");
}

TEST(SettingsTest, AFlagBeatsTheEnvironmentWhichBeatsTheFileInAnyOrderOfTaking) {
  const auto environment = [](const std::string& name) -> const char* {
    return name == "ORDO_GATEWAY_BUDGET" ? "2" : nullptr;
  };
  Settings settings(kRules, "gateway");
  ASSERT_TRUE(settings.take_file({{"budget", "1", 3}, {"strict_gaps", "true", 4}}, "o.toml"));
  EXPECT_EQ(settings.at("budget").text, "1");
  EXPECT_EQ(settings.at("budget").origin, "o.toml:3: budget");
  settings.take_environment(environment);
  EXPECT_EQ(settings.at("budget").text, "2");
  EXPECT_EQ(settings.at("budget").origin, "ORDO_GATEWAY_BUDGET");
  settings.take_flag("budget", "3");
  EXPECT_EQ(settings.at("budget").origin, "--budget");
  settings.take_environment(environment);
  ASSERT_TRUE(settings.take_file({{"budget", "1", 3}}, "o.toml"));
  EXPECT_EQ(settings.at("budget").text, "3");
  EXPECT_EQ(settings.at("strict_gaps").text, "true");
}

TEST(SettingsTest, AnUnknownKeyOfAFileIsAnErrorThatSuggests) {
  Settings settings(kRules, "gateway");
  const Status taken = settings.take_file({{"budgte", "1", 7}}, "o.toml");
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().message,
            "o.toml:7: budgte: [gateway] has no such setting; did you mean 'budget'?");
}

TEST(SettingsTest, FlagsAreWrittenWithDashes) {
  EXPECT_EQ(flag_of("strict_gaps"), "--strict-gaps");
}

TEST(SettingsTest, VariablesOfOthersAreWeakerThanOurs) {
  const std::vector<SettingRule> rules = {
      {"project", "NAME", "ordo", "Which project", {}, {"CLOUD_PROJECT", "PUBSUB_PROJECT"}}};
  std::map<std::string, std::string> given = {{"CLOUD_PROJECT", "a"}, {"PUBSUB_PROJECT", ""}};
  const auto environment = [&](const std::string& name) {
    const auto found = given.find(name);
    return found == given.end() ? nullptr : found->second.c_str();
  };
  const auto project = [&] {
    Settings settings(rules, "client");
    settings.take_environment(environment);
    return settings.at("project");
  };
  EXPECT_EQ(project().text, "a");
  EXPECT_EQ(project().origin, "CLOUD_PROJECT");
  given["PUBSUB_PROJECT"] = "b";
  EXPECT_EQ(project().text, "b");
  given["ORDO_CLIENT_PROJECT"] = "c";
  EXPECT_EQ(project().origin, "ORDO_CLIENT_PROJECT");
}

}  // namespace
}  // namespace ordo::app

#include "ordo/adapters/config_toml/config_table.h"

#include <gtest/gtest.h>

namespace ordo::config_toml {
namespace {

TEST(ConfigTableTest, GivesEachSettingAsTextWithItsLine) {
  const auto entries = read_table(
      "[other]\nx = 1\n[gateway]\nlisten = \"127.0.0.1:1\"\nbudget = 64\nstrict_gaps = true\n",
      "a.toml", "gateway");
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), 3U);
  EXPECT_EQ((*entries)[0].key, "listen");
  EXPECT_EQ((*entries)[0].text, "127.0.0.1:1");
  EXPECT_EQ((*entries)[0].line, 4U);
  EXPECT_EQ((*entries)[1].text, "64");
  EXPECT_EQ((*entries)[2].text, "true");
}

TEST(ConfigTableTest, ATableThatIsNotThereHasNoSettings) {
  const auto entries = read_table("", "a.toml", "gateway");
  ASSERT_TRUE(entries);
  EXPECT_TRUE(entries->empty());
}

TEST(ConfigTableTest, ATableThatNobodyKnowsIsAnErrorWithWhatWasMeant) {
  const auto misspelt = read_table("[oms]\n[gatway]\n", "a.toml", "gateway", {"oms"});
  ASSERT_FALSE(misspelt);
  EXPECT_EQ(misspelt.error().message,
            "a.toml:2: table 'gatway' is unknown; did you mean 'gateway'?");
  const auto bare = read_table("\nbudget = 3\n[gateway]\n", "a.toml", "gateway", {"oms"});
  ASSERT_FALSE(bare);
  EXPECT_TRUE(bare.error().message.starts_with("a.toml:2: 'budget' is unknown"));
  EXPECT_TRUE(read_table("[oms]\n[gateway]\n", "a.toml", "gateway", {"oms"}));
}

TEST(ConfigTableTest, WhatIsNotTomlIsAnErrorWithFileAndLine) {
  const auto entries = read_table("[gateway]\nbudget = = 3\n", "a.toml", "gateway");
  ASSERT_FALSE(entries);
  EXPECT_TRUE(entries.error().message.starts_with("a.toml:2: ")) << entries.error().message;
}

TEST(ConfigTableTest, AValueOfAnotherKindIsAnErrorThatNamesIt) {
  for (const char* value : {"1.5", "[1]", "{ a = 1 }", "2020-01-01"}) {
    const auto entries =
        read_table("[gateway]\nbudget = " + std::string(value) + "\n", "a.toml", "gateway");
    ASSERT_FALSE(entries) << value;
    EXPECT_NE(entries.error().message.find("a.toml:2: budget must be"), std::string::npos)
        << entries.error().message;
  }
  EXPECT_FALSE(read_table("gateway = 3\n", "a.toml", "gateway"));
}

}  // namespace
}  // namespace ordo::config_toml

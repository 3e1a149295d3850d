#include "ordo/adapters/config_toml/table_headers.h"

#include <gtest/gtest.h>

#include "ordo/adapters/config_toml/config_table.h"

namespace ordo::config_toml {
namespace {

TEST(TableHeadersTest, NamesAreFine) {
  for (const char* text : {"", "\n", "[a]", "[[a]]", " [ \"a b\" ]\n", "[[ 'x' ]]", "[a.b]\nx = 1",
                           "x = [1,\n[2],\n]", "# [.", "x = \"[.\"", "[]", "\xef\xbb\xbf[a]"}) {
    EXPECT_EQ(broken_header(text), 0U) << text;
  }
}

TEST(TableHeadersTest, ABracketWithoutANameIsFoundWithItsLine) {
  EXPECT_EQ(broken_header("[.]"), 1U);
  EXPECT_EQ(broken_header("[a]\n\n  [[ .b]]\n"), 3U);
  EXPECT_EQ(broken_header("[\n"), 1U);
  EXPECT_EQ(broken_header("x = 1\r\n[\r\n"), 2U);
  EXPECT_EQ(broken_header("[[[a]]]"), 1U);
  EXPECT_EQ(broken_header("\xef\xbb\xbf[%]"), 1U);
}

TEST(TableHeadersTest, AFileWithOneIsRefused) {
  const auto entries = read_table("[gateway]\nx = 1\n[.\n", "g.toml", "gateway");
  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().message, "g.toml:3: " + std::string(kTableHeaderRule));
}

}  // namespace
}  // namespace ordo::config_toml

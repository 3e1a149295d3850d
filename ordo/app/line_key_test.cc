#include "ordo/app/line_key.h"

#include <gtest/gtest.h>

namespace ordo::app {
namespace {

TEST(LineKeyTest, AFieldIsCountedFromOneBetweenBlanks) {
  const LineKey key = LineKey::field(2, 0);
  EXPECT_EQ(key.of("a b c"), "b");
  EXPECT_EQ(key.of("  a \t b"), "b");
  EXPECT_EQ(key.of("a"), std::nullopt);
  EXPECT_EQ(key.of(""), std::nullopt);
}

TEST(LineKeyTest, ASeparatorMakesEmptyFields) {
  const LineKey key = LineKey::field(2, ',');
  EXPECT_EQ(key.of("a,,c"), "");
  EXPECT_EQ(key.of("a,b"), "b");
  EXPECT_EQ(key.of("a b"), std::nullopt);
}

TEST(LineKeyTest, ARegexGivesItsFirstGroupOrTheMatch) {
  Result<LineKey> group = LineKey::regex("user=([0-9]+)");
  ASSERT_TRUE(group);
  EXPECT_EQ(group->of("x user=17 y"), "17");
  EXPECT_EQ(group->of("x"), std::nullopt);
  Result<LineKey> whole = LineKey::regex("[a-z]+$");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->of("12 ab"), "ab");
}

TEST(LineKeyTest, AGroupThatTookNoPartIsNoKey) {
  Result<LineKey> key = LineKey::regex("a|(b)");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->of("a"), std::nullopt);
  EXPECT_EQ(key->of("b"), "b");
}

TEST(LineKeyTest, ABadRegexIsAnErrorThatShowsIt) {
  Result<LineKey> key = LineKey::regex("a(");
  ASSERT_FALSE(key);
  EXPECT_NE(key.error().message.find("'a('"), std::string::npos);
}

TEST(LineKeyTest, ALongLineDoesNotOverflowTheStack) {
  Result<LineKey> key = LineKey::regex("(k[0-9]+)$");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->of(std::string(300'000, 'x') + "k1"), "k1");
}

}  // namespace
}  // namespace ordo::app

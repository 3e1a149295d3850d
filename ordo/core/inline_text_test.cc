#include "ordo/core/inline_text.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace ordo {
namespace {

using Text = InlineText<11>;

TEST(InlineTextTest, KeepsTextOfEveryLength) {
  for (std::size_t length = 0; length < 40; ++length) {
    const std::string text(length, 'x');
    const Text kept{std::string_view(text)};
    EXPECT_EQ(kept, text);
    EXPECT_EQ(kept.size(), length);
    EXPECT_EQ(kept.empty(), length == 0);
  }
}

TEST(InlineTextTest, KeepsBytesThatAreNoCharacters) {
  const std::string bytes("a\0b\xff\n", 5);
  EXPECT_EQ(Text(std::string_view(bytes)), bytes);
}

TEST(InlineTextTest, CopiesAreIndependent) {
  for (const std::size_t length : {3U, 11U, 12U, 30U}) {
    const std::string text(length, 'c');
    Text first{std::string_view(text)};
    Text second(first);
    Text third;
    third = second;
    first = Text("gone");
    EXPECT_EQ(second, text);
    EXPECT_EQ(third, text);
  }
}

TEST(InlineTextTest, AMovedFromTextIsEmptyAndUsable) {
  for (const std::size_t length : {3U, 11U, 12U, 30U}) {
    const std::string text(length, 'm');
    Text from{std::string_view(text)};
    Text to(std::move(from));
    EXPECT_EQ(to, text);
    EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move): that is the promise.
    from = std::move(to);
    EXPECT_EQ(from, text);
  }
}

TEST(InlineTextTest, AssigningOneToItselfKeepsIt) {
  Text text("a text that is not short");
  const Text& same = text;
  text = same;
  EXPECT_EQ(text, "a text that is not short");
}

}  // namespace
}  // namespace ordo

#include "ordo/core/utf8.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace ordo {
namespace {

TEST(Utf8Test, CharactersOfEveryLengthAreText) {
  for (const std::string_view good : {"", "a", "\xc2\x80", "\xe2\x82\xac", "\xed\x9f\xbf",
                                      "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf", "caf\xc3\xa9"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
    EXPECT_TRUE(is_utf8(std::string("12345678") + std::string(good) + "12345678")) << good;
  }
  EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
}

TEST(Utf8Test, OverlongCutSurrogateAndTooLargeFormsAreNot) {
  for (const std::string_view bad :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xe0\x9f\xbf", "\xe2\x82", "\xed\xa0\x80",
        "\xf0\x8f\xbf\xbf", "\xf0\x9f\x98", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_FALSE(is_utf8(bad));
    for (std::size_t before = 0; before <= 9; ++before) {
      EXPECT_FALSE(is_utf8(std::string(before, 'a') + std::string(bad) + "12345678"));
    }
  }
}

}  // namespace
}  // namespace ordo

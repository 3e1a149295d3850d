#include "ordo/adapters/order_tcp/characters.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace ordo::order_tcp {
namespace {

// What the table of RFC 3629 says, character by character, without any short cut.
bool is_payload_by_the_book(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const auto byte = [&](std::size_t i) {
      return at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u;
    };
    const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
    unsigned long code = byte(0);
    std::size_t length = 1;
    if (code >= 0xf0 && code < 0xf8 && follows(1) && follows(2) && follows(3)) {
      code = (code & 7) << 18 | (byte(1) & 63) << 12 | (byte(2) & 63) << 6 | (byte(3) & 63);
      length = code >= 0x10000 && code <= 0x10ffff ? 4 : 0;
    } else if (code >= 0xe0 && code < 0xf0 && follows(1) && follows(2)) {
      code = (code & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63);
      length = code >= 0x800 && (code < 0xd800 || code > 0xdfff) ? 3 : 0;
    } else if (code >= 0xc0 && code < 0xe0 && follows(1)) {
      code = (code & 31) << 6 | (byte(1) & 63);
      length = code >= 0x80 ? 2 : 0;
    } else if (code >= 0x80) {
      length = 0;
    }
    if (length == 0 || code < 0x20 || (code >= 0x7f && code <= 0x9f)) return false;
    at += length;
  }
  return !bytes.empty();
}

TEST(Characters, AgreeWithTheBookForAllPairsOfBytes) {
  for (unsigned first = 0; first < 256; ++first) {
    for (unsigned second = 0; second < 256; ++second) {
      const std::string pair{static_cast<char>(first), static_cast<char>(second)};
      for (const std::string& text : {pair, pair + "\x80", pair + "\x80\xbf", "seven b" + pair}) {
        EXPECT_EQ(is_payload(text), is_payload_by_the_book(text)) << first << ' ' << second;
      }
    }
  }
}

TEST(Characters, FindAControlCharacterAtEveryPlace) {
  for (std::size_t length = 1; length < 40; ++length) {
    for (std::size_t at = 0; at < length; ++at) {
      for (const char bad : {'\0', '\n', '\x1f', '\x7f', '\x80', '\xff'}) {
        std::string text(length, '~');
        EXPECT_TRUE(is_payload(text));
        text[at] = bad;
        EXPECT_FALSE(is_payload(text)) << length << ' ' << at;
        EXPECT_FALSE(is_plain(text));
      }
    }
  }
}

TEST(Characters, ARequestIdIsOneTo64VisibleBytes) {
  EXPECT_TRUE(is_request_id("r"));
  EXPECT_TRUE(is_request_id("Größe-1"));
  EXPECT_TRUE(is_request_id(std::string(64, 'x')));
  EXPECT_FALSE(is_request_id(""));
  EXPECT_FALSE(is_request_id(std::string(65, 'x')));
  EXPECT_FALSE(is_request_id("a b"));
  EXPECT_FALSE(is_request_id("a\xc2\x85"));  // A control character of two bytes.
  EXPECT_FALSE(is_request_id("a\xc3"));      // Half a character.
}

TEST(Characters, APayloadMayHaveSpacesAndAnyLanguage) {
  EXPECT_TRUE(is_payload(" a  b "));
  EXPECT_TRUE(is_payload("価格 \xf0\x9f\x93\x88 100 €"));
  EXPECT_FALSE(is_payload(""));
  EXPECT_FALSE(is_payload("tab\there"));
}

}  // namespace
}  // namespace ordo::order_tcp

#include "ordo/broker/ack_id_text.h"

#include <random>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ordo::broker {
namespace {

using testing::HasSubstr;

const AckId kId{CursorNumber(7), 3, Offset(123'456'789), Fence((std::uint64_t{5} << 40) | 42)};

TEST(AckIdTextTest, WhatIsWrittenIsReadBack) {
  const AckIdText codec;
  std::mt19937_64 random(3);
  for (int i = 0; i < 10'000; ++i) {
    const AckId id{CursorNumber(static_cast<std::uint32_t>(random())),
                   static_cast<std::uint32_t>(random()), Offset(random()), Fence(random())};
    const Result<AckId> back = codec.decode(codec.encode(id));
    ASSERT_TRUE(back);
    ASSERT_EQ(*back, id);
  }
}

TEST(AckIdTextTest, TheTextIsSafeInAUrlAndShort) {
  const std::string text = AckIdText().encode(kId);
  EXPECT_EQ(text.size(), 55u);
  EXPECT_EQ(
      text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
      std::string::npos);
}

TEST(AckIdTextTest, EachDeliveryHasATextOfItsOwn) {
  const AckIdText codec;
  AckId other = kId;
  other.fence = kId.fence.next();
  EXPECT_NE(codec.encode(kId), codec.encode(other));
}

TEST(AckIdTextTest, AnyOtherTextIsMalformed) {
  const AckIdText codec;
  const std::string good = codec.encode(kId);
  for (const std::string& bad :
       {std::string(), std::string("x"), good + "A", good.substr(1), std::string(55, 'A'),
        std::string(55, '!'), std::string(1'000'000, 'A')}) {
    const Result<AckId> id = codec.decode(bad);
    ASSERT_FALSE(id);
    EXPECT_EQ(id.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(id.error().message, HasSubstr("Invalid ack id (ack_id="));
    EXPECT_LT(id.error().message.size(), 200u);
  }
}

TEST(AckIdTextTest, NoChangeOfOneCharacterGoesUnnoticed) {
  const AckIdText codec;
  const std::string good = codec.encode(kId);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int c = 0; c < 256; ++c) {
      std::string text = good;
      text[at] = static_cast<char>(c);
      EXPECT_EQ(codec.decode(text).has_value(), text == good);
    }
  }
}

TEST(AckIdTextTest, ATextOfAnotherKeyIsMalformed) {
  const AckIdText ours("key of ours"), theirs("key of theirs");
  EXPECT_FALSE(ours.decode(theirs.encode(kId)));
  EXPECT_TRUE(ours.decode(ours.encode(kId)));
}

TEST(AckIdTextTest, TheCheckFunctionCanBeAMessageAuthenticationCode) {
  const auto check = [](std::string_view key, std::string_view bytes) {
    return AckIdText::CheckValue{key.size(), bytes.size()};
  };
  const AckIdText codec("key", check);
  EXPECT_EQ(*codec.decode(codec.encode(kId)), kId);
  EXPECT_FALSE(AckIdText("key").decode(codec.encode(kId)));
}

}  // namespace
}  // namespace ordo::broker

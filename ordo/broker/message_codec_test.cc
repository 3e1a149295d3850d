#include "ordo/broker/message_codec.h"

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/broker/wire_bytes.h"

namespace ordo::broker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string entry(std::string_view key, std::string_view value) {
  std::string bytes;
  put_bytes_field(bytes, 1, key);
  put_bytes_field(bytes, 2, value);
  return bytes;
}

std::vector<Attribute> attributes_of(std::string_view body) {
  const AttributeRange range(body);
  return {range.begin(), range.end()};
}

std::string refusal(const Result<MessageBody>& body) {
  if (body) return "it was accepted";
  EXPECT_EQ(body.error().code, ErrorCode::invalid_argument);
  return body.error().message;
}

MessageBody body_with_key(std::string key) {
  NewMessage message{.data = "d"};
  if (!key.empty()) message.ordering_key = std::move(key);
  return *encode_message(message);
}

TEST(MessageCodecTest, AMessageIsTheWireFormOfAPubsubMessage) {
  const Result<MessageBody> body =
      encode_message({.data = "hi", .attributes = {{"a", "1"}}, .ordering_key = "k1"});
  ASSERT_TRUE(body);
  EXPECT_EQ(body->bytes,
            "\x0a\x02hi\x12\x06\x0a\x01"
            "a\x12\x01"
            "1\x2a\x02k1");
  EXPECT_EQ(body->key(), "k1");
}

TEST(MessageCodecTest, WhatWasEncodedIsDecoded) {
  const NewMessage message{.data = std::string("\0\xff", 2),
                           .attributes = {{"colour", "red"}, {"empty", ""}},
                           .ordering_key = "caf\xc3\xa9"};
  const Result<MessageBody> body = encode_message(message);
  ASSERT_TRUE(body);
  const Result<MessageView> view = decode_message(body->bytes);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->data, message.data);
  EXPECT_EQ(view->ordering_key, "caf\xc3\xa9");
  EXPECT_EQ(body->key(), "caf\xc3\xa9");
  EXPECT_THAT(attributes_of(body->bytes),
              ElementsAre(Attribute{"colour", "red"}, Attribute{"empty", ""}));
  EXPECT_EQ(view->attribute("colour"), "red");
  EXPECT_EQ(view->attribute("empty"), "");
  EXPECT_EQ(view->attribute("size"), std::nullopt);
}

TEST(MessageCodecTest, AMessageWithoutDataAndAttributesIsEmptyEvenWithAKey) {
  EXPECT_EQ(refusal(encode_message({})), "Some messages are empty");
  EXPECT_EQ(refusal(encode_message({.ordering_key = "k"})), "Some messages are empty");
  EXPECT_EQ(refusal(body_from_wire("")), "Some messages are empty");
  EXPECT_TRUE(encode_message({.attributes = {{"a", ""}}}));
}

TEST(MessageCodecTest, AKeyThatIsGivenMustNotBeEmpty) {
  EXPECT_EQ(refusal(encode_message({.data = "d", .ordering_key = ""})),
            "Ordering key cannot be empty");
}

TEST(MessageCodecTest, OnTheWireAnEmptyKeyIsNone) {
  const Result<MessageBody> body = body_from_wire(std::string_view("\x0a\x01x\x2a\x00", 5));
  ASSERT_TRUE(body);
  EXPECT_EQ(body->key(), "");
  EXPECT_EQ(body->key_size, 0u);
}

TEST(MessageCodecTest, AKeyHasUpTo1024BytesNotCharacters) {
  std::string key;
  for (int i = 0; i < 512; ++i)
    key += "\xc3\xa9";
  EXPECT_TRUE(encode_message({.data = "d", .ordering_key = key}));
  key += "\xc3\xa9";
  EXPECT_EQ(refusal(encode_message({.data = "d", .ordering_key = key})),
            "Ordering key exceeds maximum length of 1024 bytes");
  EXPECT_TRUE(encode_message({.data = "d", .ordering_key = std::string(1'024, 'k')}));
  EXPECT_EQ(refusal(encode_message({.data = "d", .ordering_key = std::string(1'025, 'k')})),
            "Ordering key exceeds maximum length of 1024 bytes");
}

TEST(MessageCodecTest, KeysAndAttributesAreText) {
  EXPECT_EQ(refusal(encode_message({.data = "d", .ordering_key = "\xff"})),
            "Ordering key is not valid UTF-8");
  EXPECT_THAT(refusal(encode_message({.attributes = {{"\xff", "v"}}})), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal(encode_message({.attributes = {{"a", "\xff"}}})), HasSubstr("'a'"));
}

TEST(MessageCodecTest, AttributesHaveTheirLimits) {
  EXPECT_TRUE(encode_message({.attributes = {{std::string(256, 'k'), std::string(1'024, 'v')}}}));
  EXPECT_THAT(refusal(encode_message({.attributes = {{std::string(257, 'k'), "v"}}})),
              HasSubstr("256"));
  EXPECT_THAT(refusal(encode_message({.attributes = {{"k", std::string(1'025, 'v')}}})),
              HasSubstr("1024"));
  EXPECT_THAT(refusal(encode_message({.attributes = {{"", "v"}}})), HasSubstr("empty"));
  EXPECT_THAT(refusal(encode_message({.attributes = {{"a", "1"}, {"a", "2"}}})),
              HasSubstr("twice"));
  NewMessage message;
  for (int i = 0; i < 100; ++i)
    message.attributes.emplace_back(std::to_string(i), "v");
  EXPECT_TRUE(encode_message(message));
  message.attributes.emplace_back("one", "more");
  EXPECT_THAT(refusal(encode_message(message)), HasSubstr("100"));
}

TEST(MessageCodecTest, AttributeKeysOfTheServiceAreReservedButTraceContextIsNot) {
  EXPECT_THAT(refusal(encode_message({.attributes = {{"goog_x", "v"}}})), HasSubstr("goog_x"));
  EXPECT_THAT(refusal(encode_message({.attributes = {{"googclient", "v"}}})), HasSubstr("goog"));
  EXPECT_TRUE(encode_message({.attributes = {{"googclient_traceparent", "v"}}}));
  EXPECT_TRUE(encode_message({.attributes = {{"Goog", "v"}}}));
}

TEST(MessageCodecTest, ARequestHasOneToAThousandMessages) {
  EXPECT_EQ(check_publish({}).error().message, "No messages to publish");
  EXPECT_TRUE(check_publish(std::vector<MessageBody>(1'000, body_with_key(""))));
  const Status many = check_publish(std::vector<MessageBody>(1'100, body_with_key("")));
  EXPECT_EQ(many.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(many.error().message,
            "The value for 1100 is too large. You passed message_count in the request, but the "
            "maximum value is 1000.");
}

TEST(MessageCodecTest, ARequestHasUpToTenMillionBytes) {
  const MessageBody half = *encode_message({.data = std::string(4'999'990, 'x')});
  EXPECT_TRUE(check_publish({half, half}));
  const Status large = check_publish({half, half, body_with_key("")});
  EXPECT_EQ(large.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(large.error().message,
              HasSubstr("You passed request_size in the request, but the maximum value is "
                        "10000000."));
  EXPECT_EQ(check_publish({half}, 10'159'812).error().message,
            "The value for 10159812 is too large. You passed request_size in the request, but the "
            "maximum value is 10000000.");
  EXPECT_TRUE(check_publish({half}, 10'000'000));
}

TEST(MessageCodecTest, AMessageBeyondAnyRequestIsRefusedBeforeItIsCopied) {
  EXPECT_THAT(refusal(encode_message({.data = std::string(10'000'001, 'x')})),
              HasSubstr("request_size"));
}

TEST(MessageCodecTest, MixedKeysInOneRequestAreRefused) {
  EXPECT_TRUE(check_publish({body_with_key("a"), body_with_key("a")}));
  EXPECT_EQ(check_publish({body_with_key("a"), body_with_key("b")}).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(check_publish({body_with_key("a"), body_with_key("")}).error().code,
            ErrorCode::invalid_argument);
}

TEST(MessageCodecTest, PlainWireBytesAreStoredAsTheyCame) {
  std::string wire;
  put_bytes_field(wire, 5, "key");
  put_bytes_field(wire, 2, entry("a", "1"));
  put_bytes_field(wire, 1, "data");
  const Result<MessageBody> body = body_from_wire(wire);
  ASSERT_TRUE(body);
  EXPECT_EQ(body->bytes, wire);
  EXPECT_EQ(body->key(), "key");
}

TEST(MessageCodecTest, AnIdAndATimeSetByTheClientAreDropped) {
  std::string wire;
  put_bytes_field(wire, 1, "data");
  put_bytes_field(wire, 3, "my-own-id");
  put_bytes_field(wire, 4, "\x08\x01");
  put_bytes_field(wire, 5, "key");
  put_varint_field(wire, 77, 1);
  const Result<MessageBody> body = body_from_wire(wire);
  ASSERT_TRUE(body);
  EXPECT_EQ(body->bytes, encode_message({.data = "data", .ordering_key = "key"})->bytes);
  EXPECT_EQ(body->key(), "key");
}

TEST(MessageCodecTest, OfWhatIsGivenTwiceTheLastCounts) {
  std::string wire;
  put_bytes_field(wire, 1, "first");
  put_bytes_field(wire, 1, "second");
  put_bytes_field(wire, 2, entry("a", "1"));
  put_bytes_field(wire, 2, entry("b", "2"));
  put_bytes_field(wire, 2, entry("a", "3"));
  put_bytes_field(wire, 5, "key 1");
  put_bytes_field(wire, 5, "key 2");
  const Result<MessageBody> body = body_from_wire(wire);
  ASSERT_TRUE(body);
  EXPECT_EQ(decode_message(body->bytes)->data, "second");
  EXPECT_EQ(body->key(), "key 2");
  EXPECT_THAT(attributes_of(body->bytes), ElementsAre(Attribute{"a", "3"}, Attribute{"b", "2"}));
}

TEST(MessageCodecTest, TooManyAttributesOnTheWireAreRefusedQuickly) {
  std::string wire;
  for (int i = 0; i < 500'000; ++i)
    put_bytes_field(wire, 2, entry("a", "1"));
  EXPECT_THAT(refusal(body_from_wire(wire)), HasSubstr("100"));
  wire.clear();
  for (int i = 0; i < 101; ++i)
    put_bytes_field(wire, 2, entry(std::to_string(i), "1"));
  EXPECT_THAT(refusal(body_from_wire(wire)), HasSubstr("100"));
}

TEST(MessageCodecTest, TheRulesHoldForWireBytesToo) {
  std::string wire;
  put_bytes_field(wire, 1, "data");
  put_bytes_field(wire, 5, std::string(1'025, 'k'));
  EXPECT_EQ(refusal(body_from_wire(wire)), "Ordering key exceeds maximum length of 1024 bytes");
  wire.clear();
  put_bytes_field(wire, 2, entry("goog", "1"));
  EXPECT_THAT(refusal(body_from_wire(wire)), HasSubstr("reserved"));
}

TEST(MessageCodecTest, BytesThatAreNoMessageAreRefused) {
  using namespace std::string_view_literals;  // NOLINT(google-build-using-namespace): literals.
  for (const std::string_view bad :
       {"\x0a"sv, "\x0a\x05x"sv, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"sv, "\x00"sv,
        "\x0b\x0c"sv, "\x0f"sv, "\x09\x01"sv, "\x0d\x01\x02"sv,
        "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"sv, "\x12\x02\x0a\x05"sv,
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"sv}) {
    EXPECT_THAT(refusal(body_from_wire(bad)), HasSubstr("well-formed"));
  }
}

// Whatever comes in, nothing is read beyond its end (the sanitizers look), and what is accepted is
// valid: reading it again changes nothing.
TEST(MessageCodecTest, RandomBytesAreRefusedOrBecomeAValidBody) {
  std::mt19937_64 random(7);
  std::string good = encode_message({.data = "data",
                                     .attributes = {{"colour", "red"}, {"size", "large"}},
                                     .ordering_key = "key"})
                         ->bytes;
  put_bytes_field(good, 3, "id");
  int accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string wire = good;
    for (auto changes = random() % 4; changes > 0; --changes)
      wire[random() % wire.size()] = static_cast<char>(random());
    if (random() % 4 == 0) wire.resize(random() % wire.size());
    if (random() % 4 == 0)
      wire.insert(random() % (wire.size() + 1), 1, static_cast<char>(random()));
    const Result<MessageBody> body = body_from_wire(wire);
    (void)find_attribute(wire, "colour");
    (void)dead_letter_body(wire, {"projects/p/subscriptions/s", 1, {}});
    if (!body) continue;
    ++accepted;
    const Result<MessageBody> again = body_from_wire(body->bytes);
    ASSERT_TRUE(again);
    ASSERT_EQ(again->bytes, body->bytes);
    ASSERT_EQ(again->key(), body->key());
    ASSERT_EQ(decode_message(body->bytes)->ordering_key, body->key());
  }
  EXPECT_GT(accepted, 1'000);
}

TEST(MessageCodecTest, ADeadLetterKeepsEverythingAndNamesItsOrigin) {
  const MessageBody body =
      *encode_message({.data = "data", .attributes = {{"a", "1"}}, .ordering_key = "key"});
  const WallTime time = WallTime{} + std::chrono::milliseconds(1'785'501'296'789);
  const MessageBody letter =
      dead_letter_body(body.bytes, {"projects/my-project/subscriptions/my-sub", 5, time});
  const Result<MessageView> view = decode_message(letter.bytes);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->data, "data");
  EXPECT_EQ(view->ordering_key, "key");
  EXPECT_EQ(letter.key(), "key");
  EXPECT_THAT(
      attributes_of(letter.bytes),
      ElementsAre(Attribute{"a", "1"}, Attribute{"CloudPubSubDeadLetterSourceDeliveryCount", "5"},
                  Attribute{"CloudPubSubDeadLetterSourceSubscription", "my-sub"},
                  Attribute{"CloudPubSubDeadLetterSourceSubscriptionProject", "my-project"},
                  Attribute{"CloudPubSubDeadLetterSourceTopicPublishTime",
                            "2026-07-31T12:34:56.789+00:00"}));
}

TEST(MessageCodecTest, ASecondDeadLetteringReplacesTheFirstOrigin) {
  const MessageBody body = body_with_key("key");
  const MessageBody once = dead_letter_body(body.bytes, {"projects/p/subscriptions/one", 5, {}});
  const MessageBody twice = dead_letter_body(once.bytes, {"projects/p/subscriptions/two", 9, {}});
  EXPECT_EQ(attributes_of(twice.bytes).size(), 4u);
  EXPECT_EQ(find_attribute(twice.bytes, "CloudPubSubDeadLetterSourceSubscription"), "two");
  EXPECT_EQ(find_attribute(twice.bytes, "CloudPubSubDeadLetterSourceDeliveryCount"), "9");
  EXPECT_EQ(twice.key(), "key");
}

TEST(MessageCodecTest, ASentMessageCarriesItsIdAndItsTimeWithNanosEvenIfZero) {
  auto batch = MessageBatch::make({body_with_key("k"), body_with_key("k")}, Offset(1),
                                  WallTime{} + std::chrono::seconds(300));
  batch->first_id = MessageId(41);
  const Message message(batch, 1);
  std::string out;
  append_wire(out, message);
  std::string expected(message.body());
  expected += "\x1a\x02";
  expected += "42";
  expected += std::string_view("\x22\x05\x08\xac\x02\x10\x00", 7);
  EXPECT_EQ(out, expected);
  EXPECT_EQ(wire_size(message), out.size());
}

}  // namespace
}  // namespace ordo::broker

#include "ordo/broker/catalog_codec.h"

#include <chrono>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/broker/wire_bytes.h"
#include "tests/support/catalog_probe.h"

namespace ordo::broker {
namespace {

using testing::HasSubstr;

class CatalogCodecTest : public testing::Test, protected CatalogProbe {
 protected:
  CatalogSubscription full() const {
    CatalogSubscription entry{CursorNumber(7), TopicNumber(3), full_subscription(), now_};
    entry.config.detached = true;
    entry.config.failure_policy = FailurePolicy::skip_after;
    return entry;
  }
};

TEST_F(CatalogCodecTest, ATopicIsReadAsItWasWritten) {
  const CatalogTopic written{TopicNumber(3),
                             {.name = topic("orders"),
                              .labels = {{"a", "1"}, {"", ""}},
                              .partitions = 9,
                              .retention = std::chrono::hours(5),
                              .strict_keys = true}};
  const Result<CatalogTopic> read = decode_topic(topic("orders"), encode_row(written));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->number, written.number);
  EXPECT_EQ(read->config.name, written.config.name);
  EXPECT_EQ(read->config.labels, written.config.labels);
  EXPECT_EQ(read->config.partitions, 9u);
  EXPECT_EQ(read->config.retention, std::chrono::hours(5));
  EXPECT_TRUE(read->config.strict_keys);
  EXPECT_FALSE(read->is_deleted);
}

TEST_F(CatalogCodecTest, ADeletedTopicIsKeptByItsNumber) {
  const CatalogTopic written{TopicNumber(3), {.name = topic("orders")}, true};
  EXPECT_EQ(key_of(written), (CatalogKey{kDeletedTopicKind, "3"}));
  const Result<CatalogTopic> read = decode_deleted_topic("3", encode_row(written));
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->is_deleted);
  EXPECT_EQ(read->config.name, topic("orders"));
}

TEST_F(CatalogCodecTest, ASubscriptionIsReadAsItWasWritten) {
  const CatalogSubscription written = full();
  const Result<CatalogSubscription> read =
      decode_subscription(subscription("full"), encode_row(written));
  ASSERT_TRUE(read) << read.error().message;
  const SubscriptionConfig& config = read->config;
  EXPECT_EQ(read->number, CursorNumber(7));
  EXPECT_EQ(read->topic, TopicNumber(3));
  EXPECT_EQ(read->last_active, now_);
  EXPECT_NE(read->filter, nullptr);
  EXPECT_EQ(config.name, subscription("full"));
  EXPECT_EQ(config.topic, topic("orders"));
  EXPECT_EQ(config.labels, written.config.labels);
  EXPECT_EQ(config.ack_deadline, written.config.ack_deadline);
  EXPECT_TRUE(config.enable_message_ordering && config.enable_exactly_once_delivery &&
              config.retain_acked_messages && config.detached);
  EXPECT_EQ(config.message_retention, written.config.message_retention);
  EXPECT_EQ(config.expiration_ttl, std::nullopt);
  EXPECT_EQ(config.filter, written.config.filter);
  EXPECT_EQ(config.retry_policy->minimum_backoff, std::chrono::seconds(0));
  EXPECT_EQ(config.retry_policy->maximum_backoff, std::chrono::seconds(7));
  EXPECT_EQ(config.dead_letter_policy->topic, topic("letters"));
  EXPECT_EQ(config.dead_letter_policy->max_delivery_attempts, 9u);
  EXPECT_EQ(config.ordered_window, written.config.ordered_window);
  EXPECT_EQ(config.failure_policy, FailurePolicy::skip_after);
  EXPECT_EQ(config.park_attempts, 3u);
  EXPECT_EQ(config.skip_after, std::chrono::milliseconds(1500));
  EXPECT_EQ(config.push, std::nullopt);
}

TEST_F(CatalogCodecTest, WhereASubscriptionIsPushedIsReadAsItWasWritten) {
  for (const PushForm form : {PushForm::wrapped, PushForm::bare, PushForm::bare_with_head}) {
    CatalogSubscription written = full();
    written.config.push = PushConfig{"http://localhost:1/x", {{"x-goog-version", "v1"}}, form};
    const Result<CatalogSubscription> read =
        decode_subscription(subscription("full"), encode_row(written));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->config.push, written.config.push);
  }
}

TEST_F(CatalogCodecTest, AFormOfPushesThatIsNotKnownIsAnError) {
  std::string push;
  put_bytes_field(push, 1, "http://localhost/");
  put_varint_field(push, 3, 3);
  std::string row = encode_row(full());
  put_bytes_field(row, 20, push);
  const Result<CatalogSubscription> read = decode_subscription(subscription("full"), row);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("field 20"));
}

TEST_F(CatalogCodecTest, ASnapshotAndTheCountersAreReadAsTheyWereWritten) {
  const CatalogSnapshot written{CursorNumber(8),
                                TopicNumber(3),
                                {.name = snapshot("now"),
                                 .topic = topic("orders"),
                                 .labels = {{"a", "b"}},
                                 .expire_time = now_}};
  const Result<CatalogSnapshot> read = decode_snapshot(snapshot("now"), encode_row(written));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->number, CursorNumber(8));
  EXPECT_EQ(read->config.expire_time, now_);
  EXPECT_EQ(read->config.labels, written.config.labels);
  const Result<CatalogCounters> counters =
      decode_counters(encode_row(CatalogCounters{4'000'000'000u, 5}));
  ASSERT_TRUE(counters);
  EXPECT_EQ(counters->next_topic, 4'000'000'000u);
  EXPECT_EQ(counters->next_cursor, 5u);
}

TEST_F(CatalogCodecTest, AFieldThatIsNotKnownIsRefusedByName) {
  std::string row = encode_row(full());
  put_varint_field(row, 77, 1);
  const Result<CatalogSubscription> read = decode_subscription(subscription("full"), row);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::data_loss);
  EXPECT_THAT(read.error().message, HasSubstr("projects/p/subscriptions/full"));
  EXPECT_THAT(read.error().message, HasSubstr("field 77"));
}

TEST_F(CatalogCodecTest, AVersionThatIsNotKnownIsRefusedByName) {
  std::string row = encode_row(full());
  row[0] = 2;
  EXPECT_THAT(error_of(decode_subscription("s", row)), HasSubstr("version 2"));
  EXPECT_THAT(error_of(decode_topic("t", "")), HasSubstr("version 0"));
}

TEST_F(CatalogCodecTest, ANumberBeyondItsFieldIsRefused) {
  std::string row(1, 1);
  put_varint_field(row, 1, std::uint64_t{1} << 32);
  EXPECT_THAT(error_of(decode_topic("t", row)), HasSubstr("field 1"));
  row.resize(1);
  put_varint_field(row, 16, 4);
  EXPECT_THAT(error_of(decode_subscription("s", row)), HasSubstr("field 16"));
}

// Whatever the disk gives, it is read or refused; nothing is read beyond its end.
TEST_F(CatalogCodecTest, GarbledRowsAreReadOrRefused) {
  const std::string good = encode_row(full());
  std::mt19937_64 random(5);
  int refused = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string row = good;
    for (auto changes = 1 + random() % 3; changes > 0; --changes)
      row[random() % row.size()] = static_cast<char>(random());
    if (random() % 3 == 0) row.resize(random() % row.size());
    if (!decode_subscription("s", row)) ++refused;
    (void)decode_topic("t", row);
    (void)decode_snapshot("n", row);
    (void)decode_counters(row);
  }
  EXPECT_GT(refused, 10'000);
}

}  // namespace
}  // namespace ordo::broker

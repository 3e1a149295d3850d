#include "ordo/broker/push_endpoint.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ordo::broker {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string why_not(const std::string& url) {
  const Result<PushEndpoint> endpoint = PushEndpoint::parse(url);
  if (endpoint) return "it is good";
  EXPECT_EQ(endpoint.error().code, ErrorCode::invalid_argument);
  return endpoint.error().message;
}

TEST(PushEndpointTest, AnEndpointIsTakenApart) {
  const Result<PushEndpoint> endpoint =
      PushEndpoint::parse("HTTP://Example.com:8080/orders/new?shop=7");
  ASSERT_TRUE(endpoint) << endpoint.error().message;
  EXPECT_EQ(endpoint->host, "Example.com");
  EXPECT_EQ(endpoint->port, 8080);
  EXPECT_EQ(endpoint->authority, "Example.com:8080");
  EXPECT_EQ(endpoint->target, "/orders/new?shop=7");
}

TEST(PushEndpointTest, PortAndPathMayBeLeftOut) {
  const Result<PushEndpoint> bare = PushEndpoint::parse("http://localhost");
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->port, 80);
  EXPECT_EQ(bare->target, "/");
  const Result<PushEndpoint> query = PushEndpoint::parse("http://localhost?token=1");
  ASSERT_TRUE(query);
  EXPECT_EQ(query->host, "localhost");
  EXPECT_EQ(query->target, "/?token=1");
}

TEST(PushEndpointTest, AnAddressOfTheNewKindStandsInBrackets) {
  const Result<PushEndpoint> endpoint = PushEndpoint::parse("http://[::1]:81/x");
  ASSERT_TRUE(endpoint);
  EXPECT_EQ(endpoint->host, "::1");
  EXPECT_EQ(endpoint->port, 81);
  EXPECT_EQ(endpoint->authority, "[::1]:81");
  EXPECT_THAT(why_not("http://[::1/x"), HasSubstr("closing ]"));
  EXPECT_THAT(why_not("http://[localhost]/"), HasSubstr("host"));
}

TEST(PushEndpointTest, WhatCannotBeReachedWithoutEncryptionIsRefusedAndSaysSo) {
  EXPECT_THAT(why_not("https://example.com/"), HasSubstr("https is not supported"));
  EXPECT_THAT(why_not("ftp://example.com/"), HasSubstr("http://"));
  EXPECT_THAT(why_not("example.com/x"), HasSubstr("http://"));
  EXPECT_THAT(why_not(""), HasSubstr("http://"));
}

TEST(PushEndpointTest, NothingInItCanEndALineOfTheRequest) {
  EXPECT_THAT(why_not("http://a/x\r\nHost: b"), HasSubstr("visible ASCII"));
  EXPECT_THAT(why_not("http://a/x y"), HasSubstr("visible ASCII"));
  EXPECT_THAT(why_not(std::string("http://a/\0x", 11)), HasSubstr("visible ASCII"));
  EXPECT_THAT(why_not("http://caf\xc3\xa9/"), HasSubstr("visible ASCII"));
}

TEST(PushEndpointTest, APasswordIsRefusedAndNotRepeated) {
  EXPECT_THAT(why_not("http://user:secret@a/"), HasSubstr("password"));
  EXPECT_THAT(why_not("http://user:secret@a/"), Not(HasSubstr("secret")));
}

TEST(PushEndpointTest, HostPortAndLengthAreChecked) {
  EXPECT_THAT(why_not("http:///x"), HasSubstr("host"));
  EXPECT_THAT(why_not("http://a<b/"), HasSubstr("host"));
  EXPECT_THAT(why_not("http://a:0/"), HasSubstr("port"));
  EXPECT_THAT(why_not("http://a:65536/"), HasSubstr("port"));
  EXPECT_THAT(why_not("http://a:x/"), HasSubstr("port"));
  EXPECT_THAT(why_not("http://[::1]x/"), HasSubstr("port"));
  EXPECT_THAT(why_not("http://a/#part"), HasSubstr("fragment"));
  EXPECT_TRUE(PushEndpoint::parse("http://a/" + std::string(PushEndpoint::kBytesMax - 9, 'x')));
  EXPECT_THAT(why_not("http://a/" + std::string(PushEndpoint::kBytesMax - 8, 'x')),
              HasSubstr("2049 bytes"));
}

TEST(PushEndpointTest, OnlyWhoPushesConsumesFromAPushSubscription) {
  SubscriptionConfig config;
  EXPECT_FALSE(refuse_consumer(config, false));
  EXPECT_EQ(refuse_consumer(config, true)->code, ErrorCode::failed_precondition);
  config.push = PushConfig{.endpoint = "http://localhost/"};
  EXPECT_FALSE(refuse_consumer(config, true));
  EXPECT_EQ(refuse_consumer(config, false)->message,
            "This method is not supported for push subscriptions.");
}

}  // namespace
}  // namespace ordo::broker

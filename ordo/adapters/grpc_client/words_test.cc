// What addresses, statuses and timeouts look like in words.
#include <string>

#include <gtest/gtest.h>

#include "ordo/adapters/grpc_client/address.h"
#include "ordo/adapters/grpc_client/status_text.h"

namespace ordo::grpc_client {
namespace {

TEST(AddressTest, IsReadAsPeopleWriteIt) {
  const auto text = [](const char* given) {
    const Result<Address> address = Address::parse("--host", given);
    return address ? address->text() : address.error().message;
  };
  EXPECT_EQ(text("localhost:8085"), "localhost:8085");
  EXPECT_EQ(text("8085"), "127.0.0.1:8085");
  EXPECT_EQ(text(":9"), "127.0.0.1:9");
  EXPECT_EQ(text("[::1]:80"), "[::1]:80");
  EXPECT_EQ(text("http://pubsub:8085/"), "pubsub:8085");
  for (const char* wrong :
       {"", "host", "host:", "host:x", "host:0", "host:65536", "::1:80", "a b:1"})
    EXPECT_EQ(text(wrong), "--host: '" + std::string(wrong) + "' is no address; write HOST:PORT");
}

TEST(StatusTextTest, EscapesAndTimesAreThoseOfGrpc) {
  EXPECT_EQ(percent_decoded("a%20b%C3%A9%"), "a b\xC3\xA9%");
  EXPECT_EQ(percent_decoded("%zz%4"), "%zz%4");
  EXPECT_TRUE(status_of("0", ""));
  EXPECT_EQ(status_of("3", "no").error(), (Error{ErrorCode::invalid_argument, "no"}));
  EXPECT_EQ(status_of("x", "").error().code, ErrorCode::unknown);
  EXPECT_EQ(status_of("14", "").error().message, "UNAVAILABLE");
  EXPECT_EQ(timeout_text(1), "1n");
  EXPECT_EQ(timeout_text(60'000'000'000), "60000000u");
  EXPECT_EQ(timeout_text(3'600'000'000'001), "3600001m");
}

}  // namespace
}  // namespace ordo::grpc_client

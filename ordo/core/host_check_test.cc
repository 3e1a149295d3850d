#include "ordo/core/host_check.h"

#include <gtest/gtest.h>

namespace ordo {
namespace {

TEST(HostCheckTest, AddressesAndLocalhostAreOwn) {
  for (const char* host : {"", "localhost", "localhost:8085", "127.0.0.1", "127.0.0.1:80", "[::1]",
                           "[::1]:8085", "10.1.2.3:1"}) {
    EXPECT_TRUE(is_own_host(host)) << host;
  }
}

TEST(HostCheckTest, NamesOfOthersAreNot) {
  for (const char* host : {"evil.example", "localhost.evil.example:80", "127.0.0.1.evil.example",
                           "[::1", "[evil]", "[]", "::1", "256.1.1.1", "1"}) {
    EXPECT_FALSE(is_own_host(host)) << host;
  }
}

}  // namespace
}  // namespace ordo

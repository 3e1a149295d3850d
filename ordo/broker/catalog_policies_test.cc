#include <string>

#include <gtest/gtest.h>

#include "tests/support/catalog_probe.h"

namespace ordo::broker {
namespace {

class CatalogPoliciesTest : public testing::Test, protected CatalogProbe {};

TEST_F(CatalogPoliciesTest, APolicyIsKeptAsItWasGivenAcrossARestart) {
  add_topic("orders");
  EXPECT_EQ(*catalog_.get_policy(topic("orders")), "");
  const std::string policy("bytes \0 of any kind", 19);
  apply(catalog_.set_policy(topic("orders"), policy));
  EXPECT_EQ(*catalog_.get_policy(topic("orders")), policy);
  restart();
  EXPECT_EQ(*catalog_.get_policy(topic("orders")), policy);
  apply(catalog_.set_policy(topic("orders"), ""));
  restart();
  EXPECT_EQ(*catalog_.get_policy(topic("orders")), "");
}

TEST_F(CatalogPoliciesTest, APolicyGoesWithItsResource) {
  add_topic("orders");
  apply(catalog_.set_policy(topic("orders"), "policy"));
  apply(catalog_.delete_topic(topic("orders")));
  EXPECT_EQ(code_of(catalog_.get_policy(topic("orders"))), ErrorCode::not_found);
  add_topic("orders");
  EXPECT_EQ(*catalog_.get_policy(topic("orders")), "");
  restart();
  EXPECT_EQ(*catalog_.get_policy(topic("orders")), "");
}

TEST_F(CatalogPoliciesTest, OnlyWhatIsThereHasAPolicyAndItHasABound) {
  EXPECT_EQ(code_of(catalog_.set_policy(topic("none"), "p")), ErrorCode::not_found);
  EXPECT_EQ(code_of(catalog_.set_policy(subscription("none"), "p")), ErrorCode::not_found);
  EXPECT_EQ(code_of(catalog_.get_policy(snapshot("none"))), ErrorCode::not_found);
  EXPECT_EQ(code_of(catalog_.get_policy("nonsense")), ErrorCode::invalid_argument);
  add_topic("orders");
  EXPECT_EQ(code_of(catalog_.set_policy(topic("orders"), std::string(65'537, 'p'))),
            ErrorCode::invalid_argument);
  apply(catalog_.set_policy(topic("orders"), std::string(65'536, 'p')));
}

}  // namespace
}  // namespace ordo::broker

#include "ordo/core/describe.h"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace ordo {
namespace {

TEST(DescribeTest, TextsAreShownAsTheyWereThrown) {
  EXPECT_EQ(describe(std::make_exception_ptr(std::runtime_error("no such cart"))), "no such cart");
  EXPECT_EQ(describe(std::make_exception_ptr(std::string("text"))), "text");
  EXPECT_EQ(describe(std::make_exception_ptr(static_cast<const char*>("plain"))), "plain");
}

TEST(DescribeTest, WhatHasNoTextIsNamedAllTheSame) {
  EXPECT_EQ(describe(std::make_exception_ptr(42)),
            "something was thrown that is not a std::exception");
  EXPECT_EQ(describe(std::make_exception_ptr(static_cast<const char*>(nullptr))),
            "a null pointer was thrown");
  EXPECT_EQ(describe(nullptr), "no error");
}

}  // namespace
}  // namespace ordo

#include "ordo/core/result.h"

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ordo {
namespace {

Result<int> half_of(int number) {
  if (number % 2 != 0) return Error{ErrorCode::invalid_argument, "odd"};
  return number / 2;
}

Status check_even(int number) {
  if (number % 2 != 0) return Error{ErrorCode::out_of_range, "odd"};
  return {};
}

TEST(ResultTest, HoldsAValue) {
  const Result<int> result = half_of(4);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result.has_value());
  EXPECT_EQ(*result, 2);
  EXPECT_EQ(result.value(), 2);
  EXPECT_EQ(result.value_or(9), 2);
}

TEST(ResultTest, HoldsTheReasonWhyThereIsNoValue) {
  const Result<int> result = half_of(3);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error(), (Error{ErrorCode::invalid_argument, "odd"}));
  EXPECT_EQ(result.value_or(9), 9);
}

TEST(ResultTest, AnErrorPassesOnToAResultOfAnotherType) {
  Result<int> first = half_of(3);
  Result<std::string> second = first.error();
  Status third = std::move(second).error();
  EXPECT_EQ(third.error().message, "odd");
}

TEST(ResultTest, TheValueMayBeChangedInPlace) {
  Result<std::vector<int>> result = std::vector<int>{1};
  result->push_back(2);
  (*result)[0] = 7;
  EXPECT_EQ(result.value(), (std::vector<int>{7, 2}));
}

TEST(ResultTest, AMoveOnlyValueMovesInAndOut) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  std::unique_ptr<int> out = std::move(result).value();
  EXPECT_EQ(*out, 5);
  Result<std::unique_ptr<int>> again = std::move(out);
  out = std::move(again).value_or(nullptr);
  EXPECT_EQ(*out, 5);
}

TEST(ResultTest, ConvertsWhatTheValueConvertsFrom) {
  Result<std::string> text = "abc";
  EXPECT_EQ(*text, "abc");
  static_assert(std::is_convertible_v<const char*, Result<std::string>>);
  static_assert(!std::is_convertible_v<int, Result<std::vector<int>>>);  // explicit only
  static_assert(std::is_constructible_v<Result<std::vector<int>>, int>);
  static_assert(!std::is_constructible_v<Result<std::string>, std::vector<int>>);
}

TEST(ResultTest, ABoolResultTestsForAValueNotForTrue) {
  Result<bool> result = false;
  EXPECT_TRUE(result.has_value());
  EXPECT_FALSE(*result);
}

TEST(ResultTest, AStatusIsDoneOrTheReasonWhyNot) {
  EXPECT_TRUE(check_even(2));
  EXPECT_FALSE(check_even(3));
  EXPECT_EQ(check_even(3).error().code, ErrorCode::out_of_range);
}

TEST(ErrorCodeTest, IsNumberedAndNamedLikeGrpc) {
  EXPECT_EQ(static_cast<int>(ErrorCode::cancelled), 1);
  EXPECT_EQ(error_code_name(ErrorCode::cancelled), "CANCELLED");
  EXPECT_EQ(error_code_name(ErrorCode::unknown), "UNKNOWN");
  EXPECT_EQ(error_code_name(ErrorCode::invalid_argument), "INVALID_ARGUMENT");
  EXPECT_EQ(error_code_name(ErrorCode::permission_denied), "PERMISSION_DENIED");
  EXPECT_EQ(error_code_name(ErrorCode::resource_exhausted), "RESOURCE_EXHAUSTED");
  EXPECT_EQ(error_code_name(ErrorCode::failed_precondition), "FAILED_PRECONDITION");
  EXPECT_EQ(error_code_name(ErrorCode::aborted), "ABORTED");
  EXPECT_EQ(error_code_name(ErrorCode::internal), "INTERNAL");
  EXPECT_EQ(error_code_name(ErrorCode::data_loss), "DATA_LOSS");
  EXPECT_EQ(error_code_name(ErrorCode::unauthenticated), "UNAUTHENTICATED");
  EXPECT_EQ(static_cast<int>(ErrorCode::unauthenticated), 16);
}

TEST(ErrorCodeTest, ANumberThatIsNoCodeIsUnknown) {
  for (const int number : {0, 17, 255}) {
    // NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): a peer may send any number.
    EXPECT_EQ(error_code_name(static_cast<ErrorCode>(number)), "UNKNOWN");
  }
}

TEST(ResultDeathTest, TakingTheValueOfAnErrorIsAProgrammerError) {
  Result<int> result = half_of(3);
  EXPECT_DEATH(*result, "has_value");
  EXPECT_DEATH(check_even(3).value(), "has_value");
}

TEST(ResultDeathTest, TakingTheErrorOfAValueIsAProgrammerError) {
  Result<int> result = half_of(2);
  EXPECT_DEATH(static_cast<void>(result.error()), "has_value");
  EXPECT_DEATH(static_cast<void>(check_even(2).error()), "has_value");
}

}  // namespace
}  // namespace ordo

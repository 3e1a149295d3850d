#include "ordo/broker/filter.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/broker/message_codec.h"

namespace ordo::broker {
namespace {

using testing::HasSubstr;
using Attributes = std::map<std::string, std::string>;

std::string body_of(const Attributes& attributes) {
  return encode_message({.data = "d", .attributes = {attributes.begin(), attributes.end()}})->bytes;
}

std::string refusal(std::string_view text) {
  const Result<Filter> filter = Filter::parse(text);
  if (filter) return "it was accepted";
  EXPECT_EQ(filter.error().code, ErrorCode::invalid_argument);
  return filter.error().message;
}

const std::vector<Attributes>& messages() {
  static const std::vector<Attributes> kMessages = {
      {{"lang", "en"}, {"name", "com"}, {"zone", "UTC"}},
      {{"lang", "en"}, {"name", "net"}, {"zone", "UTC"}},
      {{"lang", "jp"}, {"name", "co"}},
      {{"lang", "jp"}},
      {{"name", "com"}},
      {{"\u307f\u3093\u306a", "dummy"}},
      {{"name", "contains\"quote"}, {"iana.org/tag", "x\\y"}},
      {},
  };
  return kMessages;
}

// Which of the messages it matches, as digits.
std::string matched(std::string_view text) {
  const Result<Filter> filter = Filter::parse(text);
  if (!filter) return filter.error().message;
  std::string numbers;
  for (std::size_t i = 0; i < messages().size(); ++i) {
    if (filter->matches(body_of(messages()[i]))) numbers += std::to_string(i);
  }
  return numbers;
}

TEST(FilterTest, EveryFormMatchesWhatItSays) {
  EXPECT_EQ(matched(R"(attributes.name = "com")"), "04");
  EXPECT_EQ(matched(R"(attributes.name != "com")"), "123567");  // Also where there is none.
  EXPECT_EQ(matched(R"(attributes:name)"), "01246");
  EXPECT_EQ(matched(R"(attributes:"name")"), "01246");
  EXPECT_EQ(matched(R"(hasPrefix(attributes.name, "co"))"), "0246");
  EXPECT_EQ(matched(R"(hasPrefix(attributes.name, ""))"), "01246");
  EXPECT_EQ(matched(R"(NOT attributes:name)"), "357");
  EXPECT_EQ(matched(R"(-attributes:name)"), "357");
  EXPECT_EQ(matched(R"(- attributes:name)"), "357");
  EXPECT_EQ(matched(R"(NOT NOT - attributes:name)"), "357");
}

TEST(FilterTest, ExpressionsAreJoined) {
  EXPECT_EQ(matched(R"(attributes:name AND attributes:lang)"), "012");
  EXPECT_EQ(matched(R"(attributes:name OR attributes:lang)"), "012346");
  EXPECT_EQ(matched(R"(attributes.name = "com" AND -attributes:"lang")"), "4");
  EXPECT_EQ(matched(R"((NOT attributes:name) OR attributes.name = "co")"), "2357");
  EXPECT_EQ(matched(R"(NOT attributes:name OR attributes.name = "co")"), "2357");
  EXPECT_EQ(matched(R"(NOT (attributes:name OR attributes.lang = "jp"))"), "57");
  EXPECT_EQ(matched(R"(attributes:lang AND (attributes:name OR attributes:zone))"), "012");
  EXPECT_EQ(matched(R"((attributes:lang AND attributes:zone) OR attributes.name="com")"), "014");
}

TEST(FilterTest, KeysMayBeQuotedOrUnicode) {
  EXPECT_EQ(matched("attributes:\u307f\u3093\u306a"), "5");
  EXPECT_EQ(matched("attributes:\"\u307f\u3093\u306a\""), "5");
  EXPECT_EQ(matched(R"(attributes:"\u307F\u3093\u306a")"), "5");
  EXPECT_EQ(matched(R"(attributes."iana.org/tag" = "x\\y")"), "6");
  EXPECT_EQ(matched(R"(attributes.name = "contains\"quote")"), "6");
}

TEST(FilterTest, AKeyMayHaveDotsAndHyphens) {
  const Result<Filter> filter = Filter::parse(R"(attributes.a.b-c_1 = "x")");
  ASSERT_TRUE(filter);
  EXPECT_TRUE(filter->matches(body_of({{"a.b-c_1", "x"}})));
}

TEST(FilterTest, CharactersBeyondTheBasicPlaneAreTwoEscapes) {
  const Result<Filter> filter = Filter::parse(R"(attributes.a = "\ud83d\ude00\u0041\u00e9")");
  ASSERT_TRUE(filter) << filter.error().message;
  EXPECT_TRUE(filter->matches(body_of({{"a",
                                        "\xf0\x9f\x98\x80"
                                        "A\xc3\xa9"}})));
}

TEST(FilterTest, WhatAttributesDoNotSayIsNotLookedAt) {
  const Result<Filter> filter = Filter::parse("attributes:data");
  ASSERT_TRUE(filter);
  EXPECT_FALSE(filter->matches(encode_message({.data = "data", .ordering_key = "data"})->bytes));
}

TEST(FilterTest, MixingAndWithOrNeedsParentheses) {
  EXPECT_THAT(refusal("attributes:a AND attributes:b OR attributes:c"), HasSubstr("parentheses"));
  EXPECT_THAT(refusal("attributes:a OR attributes:b AND attributes:c"), HasSubstr("parentheses"));
  EXPECT_THAT(refusal("NOT (attributes:a OR attributes:b AND attributes:c)"),
              HasSubstr("position 35"));
}

TEST(FilterTest, AnErrorSaysWhatWasExpectedAndWhere) {
  EXPECT_EQ(refusal("attributes.name = "),
            "Invalid filter at position 19: expected a value in quotes, found the end");
  EXPECT_EQ(refusal("attributes.name = $"),
            "Invalid filter at position 19: expected a value in quotes, found '$'");
  EXPECT_EQ(refusal("(attributes:a"), "Invalid filter at position 14: expected ')', found the end");
  EXPECT_EQ(refusal("attributes:a attributes:b"),
            "Invalid filter at position 14: expected AND, OR or the end, found 'attributes'");
  EXPECT_EQ(
      refusal("attributes:a and attributes:b"),
      "Invalid filter at position 14: expected AND, OR or the end, found 'and'; operators are "
      "written in upper case");
}

TEST(FilterTest, MalformedFiltersAreRefused) {
  for (const char* bad : {"",
                          " ",
                          "attributes",
                          "attributes:",
                          "attributes.",
                          "attributes.a",
                          "attributes.a =",
                          "attributes.a = b",
                          "attributes.a == \"b\"",
                          "attributes.a ! \"b\"",
                          "attributes.a < \"b\"",
                          "attributes:a = \"b\"",
                          "Attributes:a",
                          "hasPrefix(attributes.a)",
                          "hasPrefix(attributes.a,)",
                          "hasPrefix(attributes:a, \"b\")",
                          "hasPrefix attributes.a",
                          "hasprefix(attributes.a, \"b\")",
                          "NOT",
                          "-",
                          "()",
                          ")",
                          "attributes:a)",
                          "AND attributes:a",
                          "attributes:a AND",
                          "attributes:a OR OR attributes:b",
                          "data = \"x\"",
                          "attributes.a = 'b'",
                          "attributes.a = \"b",
                          "attributes.a = \"b\\\"",
                          "attributes.a = \"\\",
                          "attributes.a = \"\\n\"",
                          "attributes.a = \"\\u12\"",
                          "attributes.a = \"\\ud800\"",
                          "attributes.a = \"\\udc00\"",
                          "attributes.a = \"\\ud800\\u0041\"",
                          "attributes.a.",
                          "attributes..a",
                          "attributes:\xff",
                          "attributes:a\x01",
                          "attributes.a = \"x\" \"y\""}) {
    EXPECT_THAT(refusal(bad), HasSubstr("Invalid filter")) << bad;
  }
}

TEST(FilterTest, AFilterHasUpTo256Bytes) {
  const std::string before = "attributes.a = \"";
  const auto of_size = [&](std::size_t size) {
    return before + std::string(size - before.size() - 1, 'x') + "\"";
  };
  EXPECT_TRUE(Filter::parse(of_size(256)));
  EXPECT_THAT(refusal(of_size(257)), HasSubstr("257 bytes, the maximum is 256"));
}

TEST(FilterTest, DeepNestingIsRefused) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '(') + "attributes:a" + std::string(depth, ')');
  };
  EXPECT_TRUE(Filter::parse(nested(Filter::kDepthMax - 1)));
  EXPECT_THAT(refusal(nested(Filter::kDepthMax)), HasSubstr("levels deep"));
  EXPECT_THAT(refusal(std::string(256, '(')), HasSubstr("levels deep"));
  EXPECT_THAT(refusal(std::string(244, '-') + "attributes:a"), HasSubstr("levels deep"));
}

TEST(FilterTest, RandomTextIsRefusedOrMatchesSomethingWithoutHarm) {
  const std::vector<std::string> pieces = {
      "attributes", ":", ".", "a",         "\"", "\\", "\\u00e9", "=",    "!=", "AND",
      " OR ",       "(", ")", "hasPrefix", ",",  "-",  "NOT",     "\xc3", "$",  " "};
  std::mt19937_64 random(11);
  for (int round = 0; round < 100'000; ++round) {
    std::string text;
    for (auto count = random() % 20; count > 0; --count)
      text += pieces[random() % pieces.size()];
    const Result<Filter> filter = Filter::parse(text);
    if (filter) (void)filter->matches(body_of({{"a", "b"}}));
  }
}

// ------------------------------------------------------------------ against a plain evaluator

struct Expression {
  enum class Kind { exists, equal, not_equal, prefix, negation, all, any } kind;
  std::string key, value;
  std::vector<Expression> parts = {};
};

bool is_true(const Expression& e, const Attributes& attributes) {
  const auto found = attributes.find(e.key);
  const bool exists = found != attributes.end();
  switch (e.kind) {
    case Expression::Kind::exists:
      return exists;
    case Expression::Kind::equal:
      return exists && found->second == e.value;
    case Expression::Kind::not_equal:
      return !exists || found->second != e.value;
    case Expression::Kind::prefix:
      return exists && found->second.substr(0, e.value.size()) == e.value;
    case Expression::Kind::negation:
      return !is_true(e.parts[0], attributes);
    case Expression::Kind::all:
      return std::all_of(e.parts.begin(), e.parts.end(),
                         [&](const Expression& part) { return is_true(part, attributes); });
    case Expression::Kind::any:
      return std::any_of(e.parts.begin(), e.parts.end(),
                         [&](const Expression& part) { return is_true(part, attributes); });
  }
  return false;
}

class FilterSchedule : public testing::TestWithParam<unsigned> {
 protected:
  std::size_t pick(std::size_t count) { return random_() % count; }
  std::string word() {
    const std::vector<std::string> words = {"a", "ab", "b", "abc", ""};
    return words[pick(words.size())];
  }
  std::string space() { return std::string(pick(3) == 0 ? 1 : 0, ' '); }

  Expression random_expression(int depth) {
    const std::size_t kind = pick(depth > 0 ? 7 : 4);
    Expression e{static_cast<Expression::Kind>(kind), word(), word()};
    if (e.key.empty()) e.key = "c";
    const std::size_t parts = kind == 4 ? 1 : kind > 4 ? 1 + pick(3) : 0;
    for (std::size_t i = 0; i < parts; ++i)
      e.parts.push_back(random_expression(depth - 1));
    return e;
  }

  std::string key_text(const std::string& key) {
    if (pick(2) == 0) return key;
    std::string text(1, '"');
    text += key;
    text += '"';
    return text;
  }

  std::string text_of(const Expression& e) {
    switch (e.kind) {
      case Expression::Kind::exists:
        return "attributes" + space() + ":" + key_text(e.key);
      case Expression::Kind::equal:
        return "attributes." + key_text(e.key) + space() + "=" + space() + "\"" + e.value + "\"";
      case Expression::Kind::not_equal:
        return "attributes." + key_text(e.key) + space() + "!=" + space() + "\"" + e.value + "\"";
      case Expression::Kind::prefix:
        return "hasPrefix" + space() + "(attributes." + key_text(e.key) + space() + ",\"" +
               e.value + "\")";
      case Expression::Kind::negation:
        return (pick(2) == 0 ? "NOT " : "-") + text_of(e.parts[0]);
      case Expression::Kind::all:
      case Expression::Kind::any:
        break;
    }
    std::string text = "(" + space();
    for (std::size_t i = 0; i < e.parts.size(); ++i) {
      if (i > 0) text += e.kind == Expression::Kind::all ? " AND " : " OR ";
      text += text_of(e.parts[i]);
    }
    return text + ")";
  }

  std::mt19937_64 random_{GetParam()};
};

TEST_P(FilterSchedule, MatchesAsAPlainEvaluatorDoes) {
  int compared = 0;
  while (compared < 200) {
    const Expression expression = random_expression(3);
    const std::string text = text_of(expression);
    if (text.size() > Filter::kBytesMax) continue;
    const Result<Filter> filter = Filter::parse(text);
    ASSERT_TRUE(filter) << text << ": " << filter.error().message;
    for (int i = 0; i < 10; ++i) {
      Attributes attributes;
      for (auto count = pick(4); count > 0; --count) {
        std::string key = word();
        attributes[key.empty() ? "c" : key] = word();
      }
      ASSERT_EQ(filter->matches(body_of(attributes)), is_true(expression, attributes)) << text;
      ++compared;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, FilterSchedule, testing::Range(0u, 20u));

}  // namespace
}  // namespace ordo::broker

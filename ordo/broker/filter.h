// Filter: which messages a subscription wants, by their attributes.
//
//   Result<Filter> filter = Filter::parse(R"(attributes.lang = "en" AND NOT attributes:draft)");
//   if (!filter) return filter.error();   // says what was expected, and where
//   if (filter->matches(message)) ...
//
//   expression: term, or terms joined by AND, or terms joined by OR; a mix needs parentheses
//   term:       NOT term | - term | ( expression )
//               attributes:key                        the attribute exists
//               attributes.key = "value"              it exists and is equal
//               attributes.key != "value"             it is not equal, or does not exist
//               hasPrefix(attributes.key, "prefix")   it exists and begins so
//   key:        letters, digits, _ - . and anything beyond ASCII; in quotes anything
//   in quotes:  \" \\ and \uXXXX stand for a quote, a backslash and a character
//
// Threads: never changes once made; any thread may ask it.
// Bounds:  256 bytes of text and 32 levels of nesting; beyond: invalid_argument.
// Cost:    matches() allocates nothing: one walk over a message's attributes for each comparison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/broker/message.h"
#include "ordo/core/result.h"

namespace ordo::broker {

class Filter {
 public:
  static constexpr std::size_t kBytesMax = 256;
  static constexpr std::size_t kDepthMax = 32;

  static Result<Filter> parse(std::string_view text);

  bool matches(const Message& message) const { return matches(message.body()); }
  bool matches(std::string_view body) const { return is_true(0, body); }

 private:
  friend class FilterParser;

  // A part of the expression. The parts of it follow, each up to its own end.
  struct Node {
    enum class Kind : std::uint8_t { exists, equal, not_equal, prefix, negation, all, any };
    Kind kind = Kind::exists;
    std::uint32_t end = 0;
    std::string key;
    std::string value;
  };

  bool is_true(std::uint32_t index, std::string_view body) const;

  std::vector<Node> nodes_;
};

}  // namespace ordo::broker

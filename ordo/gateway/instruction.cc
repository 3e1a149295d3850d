#include "ordo/gateway/instruction.h"

#include <algorithm>
#include <array>

namespace ordo::gateway {
namespace {

// The fields of a payload, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view payload)
      : at_(payload.data()),
        end_(payload.data() + payload.size()) {}

  // The next field; empty when there is none.
  std::string_view next() {
    while (at_ != end_ && *at_ == ' ')
      ++at_;
    const char* begin = at_;
    while (at_ != end_ && *at_ != ' ')
      ++at_;
    return {begin, static_cast<std::size_t>(at_ - begin)};
  }

 private:
  const char* at_;
  const char* end_;
};

bool is_symbol_character(char c) {
  return c > ' ' && c <= '~' && c != '*' && c != '?';
}

BadField take_symbol(Fields& fields, std::string_view& symbol) {
  symbol = fields.next();
  if (symbol.empty()) return BadField::symbol_missing;
  if (symbol.size() > kSymbolBytesMax) return BadField::symbol_too_long;
  return std::all_of(symbol.begin(), symbol.end(), is_symbol_character)
             ? BadField::none
             : BadField::symbol_characters;
}

BadField take_side(Fields& fields, Side& side) {
  const std::string_view word = fields.next();
  if (word.empty()) return BadField::side_missing;
  if (word == "BUY") {
    side = Side::buy;
  } else if (word == "SELL") {
    side = Side::sell;
  } else {
    return BadField::side_not_buy_or_sell;
  }
  return BadField::none;
}

BadField take_quantity(Fields& fields, Quantity& quantity) {
  const std::string_view word = fields.next();
  if (word.empty()) return BadField::quantity_missing;
  const ParsedNumber<Quantity> parsed = parse_quantity(word);
  quantity = parsed.value;
  switch (parsed.fault) {
    case NumberFault::none:
      return BadField::none;
    case NumberFault::zero:
      return BadField::quantity_is_zero;
    case NumberFault::too_large:
      return BadField::quantity_too_large;
    default:
      return BadField::quantity_not_a_number;
  }
}

BadField take_price(Fields& fields, Price& price) {
  const std::string_view word = fields.next();
  if (word.empty()) return BadField::price_missing;
  const ParsedNumber<Price> parsed = parse_price(word);
  price = parsed.value;
  switch (parsed.fault) {
    case NumberFault::none:
      return BadField::none;
    case NumberFault::zero:
      return BadField::price_is_zero;
    case NumberFault::too_large:
      return BadField::price_too_large;
    case NumberFault::too_fine:
      return BadField::price_over_9_decimals;
    default:
      return BadField::price_not_a_number;
  }
}

bool verb_of(std::string_view word, Verb& verb) {
  struct Named {
    std::string_view word;
    Verb verb;
  };
  constexpr std::array<Named, 6> kVerbs = {{{"NEW", Verb::place},
                                            {"FILL", Verb::fill},
                                            {"CANCEL", Verb::cancel},
                                            {"REPLACE", Verb::replace},
                                            {"STATUS", Verb::status},
                                            {"QUOTE", Verb::quote}}};
  for (const Named& named : kVerbs) {
    if (named.word != word) continue;
    verb = named.verb;
    return true;
  }
  return false;
}

BadField take_fields(Fields& fields, Instruction& instruction) {
  BadField fault = BadField::none;
  const bool has_symbol = instruction.verb == Verb::place || instruction.verb == Verb::quote;
  const bool has_price = instruction.verb == Verb::place || instruction.verb == Verb::replace;
  const bool has_quantity = has_symbol || has_price || instruction.verb == Verb::fill;
  if (has_symbol) fault = take_symbol(fields, instruction.symbol);
  if (fault == BadField::none && instruction.verb == Verb::place) {
    fault = take_side(fields, instruction.side);
  }
  if (fault == BadField::none && has_quantity) fault = take_quantity(fields, instruction.quantity);
  if (fault == BadField::none && has_price) fault = take_price(fields, instruction.price);
  if (fault == BadField::none && !fields.next().empty()) fault = BadField::too_many_fields;
  return fault;
}

}  // namespace

std::string_view name_of(BadField fault) {
  constexpr std::array<std::string_view, kBadFieldCount> kNames = {"none",
                                                                   "instruction-unknown",
                                                                   "symbol-missing",
                                                                   "side-missing",
                                                                   "quantity-missing",
                                                                   "price-missing",
                                                                   "too-many-fields",
                                                                   "symbol-too-long",
                                                                   "symbol-characters",
                                                                   "side-not-buy-or-sell",
                                                                   "quantity-not-a-number",
                                                                   "quantity-is-zero",
                                                                   "quantity-too-large",
                                                                   "price-not-a-number",
                                                                   "price-is-zero",
                                                                   "price-too-large",
                                                                   "price-over-9-decimals",
                                                                   "needs-a-correlation-id",
                                                                   "quote-has-correlation-id",
                                                                   "quantity-below-filled",
                                                                   "quantity-above-open"};
  return kNames.at(static_cast<std::size_t>(fault));
}

ParsedInstruction parse_instruction(std::string_view payload) {
  Fields fields(payload);
  ParsedInstruction parsed;
  if (!verb_of(fields.next(), parsed.instruction.verb)) {
    parsed.fault = BadField::instruction_unknown;
  } else {
    parsed.fault = take_fields(fields, parsed.instruction);
  }
  return parsed;
}

bool is_symbol(std::string_view symbol) {
  return !symbol.empty() && symbol.size() <= kSymbolBytesMax &&
         std::all_of(symbol.begin(), symbol.end(), is_symbol_character);
}

}  // namespace ordo::gateway

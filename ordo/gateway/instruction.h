// Instruction: what a payload asks for.
//
//   ParsedInstruction parsed = parse_instruction("NEW ACME BUY 10 99.5");
//   if (parsed.fault != BadField::none) return reject(name_of(parsed.fault));
//   use(parsed.instruction.symbol, parsed.instruction.quantity);
//
//   NEW <symbol> <BUY|SELL> <quantity> <limit-price>
//   REPLACE <quantity> <price>
//   CANCEL
//   FILL <quantity>
//   STATUS
//   QUOTE <symbol> <quantity>
//
// Words are in capitals, fields are separated by one or more spaces. docs/oms.md has it all.
//
// Threads: a pure function.
// Bounds:  a symbol has 1 to 24 characters, visible ASCII without * and ?.
// Cost:    about 1 ns per character; no allocation. The symbol is a view into the payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ordo/gateway/decimal.h"

namespace ordo::gateway {

enum class Verb : std::uint8_t { place, replace, cancel, fill, status, quote };
enum class Side : std::uint8_t { buy, sell };

inline constexpr std::size_t kSymbolBytesMax = 24;

struct Instruction {
  Verb verb = Verb::status;
  Side side = Side::buy;    // NEW.
  std::string_view symbol;  // NEW, QUOTE.
  Quantity quantity;        // NEW, REPLACE, FILL, QUOTE.
  Price price;              // NEW, REPLACE.
};

// What is wrong with an instruction, in itself or for the order it is for.
enum class BadField : std::uint8_t {
  none,
  instruction_unknown,
  symbol_missing,
  side_missing,
  quantity_missing,
  price_missing,
  too_many_fields,
  symbol_too_long,
  symbol_characters,
  side_not_buy_or_sell,
  quantity_not_a_number,
  quantity_is_zero,
  quantity_too_large,
  price_not_a_number,
  price_is_zero,
  price_too_large,
  price_over_9_decimals,
  needs_a_correlation_id,    // An order's instruction, and the id is not above zero.
  quote_has_correlation_id,  // A quote, and the id is above zero.
  quantity_below_filled,     // REPLACE to less than is filled already.
  quantity_above_open,       // FILL of more than is open.
};
inline constexpr std::size_t kBadFieldCount = 21;

// As it stands on the wire: "quantity-is-zero".
std::string_view name_of(BadField fault);

struct ParsedInstruction {
  Instruction instruction;
  BadField fault = BadField::none;
};

ParsedInstruction parse_instruction(std::string_view payload);

// Whether `symbol` may name something: 1 to 24 characters, visible ASCII without * and ?.
bool is_symbol(std::string_view symbol);

}  // namespace ordo::gateway

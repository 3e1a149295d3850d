#include "ordo/gateway/instruction.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/gateway/decision.h"

namespace ordo::gateway {
namespace {

const std::vector<std::string> kValid = {"NEW ACME BUY 10 99.5",
                                         "NEW AA.B-C SELL 9223372036854775807 0.000000001",
                                         "REPLACE 20 100",
                                         "CANCEL",
                                         "FILL 3",
                                         "STATUS",
                                         "QUOTE ACME 1000"};

BadField fault_of(std::string_view payload) {
  return parse_instruction(payload).fault;
}

TEST(InstructionTest, EveryInstructionIsUnderstood) {
  const Instruction placed = parse_instruction("NEW ACME SELL 10 99.5").instruction;
  EXPECT_EQ(placed.verb, Verb::place);
  EXPECT_EQ(placed.symbol, "ACME");
  EXPECT_EQ(placed.side, Side::sell);
  EXPECT_EQ(placed.quantity, Quantity{10});
  EXPECT_EQ(placed.price, Price{99'500'000'000});

  const Instruction replace = parse_instruction("REPLACE 20 100").instruction;
  EXPECT_EQ(replace.verb, Verb::replace);
  EXPECT_EQ(replace.quantity, Quantity{20});
  EXPECT_EQ(replace.price, Price{100'000'000'000});

  EXPECT_EQ(parse_instruction("CANCEL").instruction.verb, Verb::cancel);
  EXPECT_EQ(parse_instruction("STATUS").instruction.verb, Verb::status);
  EXPECT_EQ(parse_instruction("FILL 3").instruction.quantity, Quantity{3});
  EXPECT_EQ(parse_instruction("QUOTE ACME 7").instruction.symbol, "ACME");
  for (const std::string& payload : kValid)
    EXPECT_EQ(fault_of(payload), BadField::none) << payload;
}

TEST(InstructionTest, MoreSpacesThanNeededDoNoHarm) {
  EXPECT_EQ(fault_of("  NEW   ACME BUY  10 99.5  "), BadField::none);
  EXPECT_EQ(fault_of(" CANCEL "), BadField::none);
}

TEST(InstructionTest, TheFaultNamesTheFieldAndWhatIsWrongWithIt) {
  const std::vector<std::pair<std::string, BadField>> cases = {
      {"", BadField::instruction_unknown},
      {"   ", BadField::instruction_unknown},
      {"new ACME BUY 10 99.5", BadField::instruction_unknown},
      {"CANCELL", BadField::instruction_unknown},
      {"NEW", BadField::symbol_missing},
      {"NEW ACME", BadField::side_missing},
      {"NEW ACME BUY", BadField::quantity_missing},
      {"NEW ACME BUY 10", BadField::price_missing},
      {"NEW ACME BUY 10 99.5 x", BadField::too_many_fields},
      {"NEW " + std::string(25, 'A') + " BUY 10 99.5", BadField::symbol_too_long},
      {"NEW A*E BUY 10 99.5", BadField::symbol_characters},
      {"NEW A?E BUY 10 99.5", BadField::symbol_characters},
      {"NEW A\xc3\xa9 BUY 10 99.5", BadField::symbol_characters},
      {"NEW ACME HOLD 10 99.5", BadField::side_not_buy_or_sell},
      {"NEW ACME BUY ten 99.5", BadField::quantity_not_a_number},
      {"NEW ACME BUY 1.5 99.5", BadField::quantity_not_a_number},
      {"NEW ACME BUY -1 99.5", BadField::quantity_not_a_number},
      {"NEW ACME BUY 0 99.5", BadField::quantity_is_zero},
      {"NEW ACME BUY 9223372036854775808 99.5", BadField::quantity_too_large},
      {"NEW ACME BUY 10 1e3", BadField::price_not_a_number},
      {"NEW ACME BUY 10 0.0", BadField::price_is_zero},
      {"NEW ACME BUY 10 9223372037", BadField::price_too_large},
      {"NEW ACME BUY 10 1.0123456789", BadField::price_over_9_decimals},
      {"REPLACE", BadField::quantity_missing},
      {"REPLACE 10", BadField::price_missing},
      {"REPLACE 0 1", BadField::quantity_is_zero},
      {"CANCEL 1", BadField::too_many_fields},
      {"FILL", BadField::quantity_missing},
      {"FILL 0", BadField::quantity_is_zero},
      {"STATUS now", BadField::too_many_fields},
      {"QUOTE", BadField::symbol_missing},
      {"QUOTE ACME", BadField::quantity_missing},
      {"QUOTE ACME 1 2", BadField::too_many_fields}};
  for (const auto& [payload, fault] : cases) {
    EXPECT_EQ(name_of(fault_of(payload)), name_of(fault)) << payload;
  }
}

TEST(InstructionTest, ASymbolOf24CharactersIsTheLongest) {
  EXPECT_EQ(fault_of("QUOTE " + std::string(24, 'A') + " 1"), BadField::none);
  EXPECT_TRUE(is_symbol("BRK.B"));
  EXPECT_FALSE(is_symbol(""));
  EXPECT_FALSE(is_symbol("A B"));
  EXPECT_FALSE(is_symbol("A*"));
  EXPECT_FALSE(is_symbol(std::string(25, 'A')));
}

TEST(InstructionTest, EveryReasonFitsIntoADecision) {
  for (std::size_t i = 1; i < kBadFieldCount; ++i) {
    const Decision decision = Decision::reject(static_cast<BadField>(i));
    EXPECT_TRUE(decision.text().starts_with("reject:bad-field:")) << decision.text();
    EXPECT_EQ(decision.text().find(' '), std::string_view::npos);
  }
}

// What a parsed instruction promises, whatever the payload was.
void expect_sound(std::string_view payload) {
  const ParsedInstruction parsed = parse_instruction(payload);
  ASSERT_LT(static_cast<std::size_t>(parsed.fault), kBadFieldCount);
  if (parsed.fault != BadField::none) return;
  const Instruction& instruction = parsed.instruction;
  const bool has_symbol = instruction.verb == Verb::place || instruction.verb == Verb::quote;
  ASSERT_EQ(is_symbol(instruction.symbol), has_symbol) << payload;
  const bool has_price = instruction.verb == Verb::place || instruction.verb == Verb::replace;
  ASSERT_EQ(instruction.price > Price{}, has_price) << payload;
  const bool has_quantity = has_symbol || has_price || instruction.verb == Verb::fill;
  ASSERT_EQ(instruction.quantity > Quantity{}, has_quantity) << payload;
}

TEST(InstructionTest, EveryPrefixIsUnderstoodOrRefused) {
  for (const std::string& payload : kValid) {
    for (std::size_t size = 0; size <= payload.size(); ++size) {
      const std::string prefix = payload.substr(0, size);  // Its own memory: an overrun is seen.
      expect_sound(std::string_view(prefix.data(), prefix.size()));
    }
  }
}

TEST(InstructionTest, EveryChangeOfOneByteIsUnderstoodOrRefused) {
  for (const std::string& payload : kValid) {
    for (std::size_t at = 0; at < payload.size(); ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string changed = payload;
        changed[at] = static_cast<char>(byte);
        expect_sound(changed);
      }
    }
  }
}

// Goal: no payload is misread. Method: random pieces of valid instructions, joined at random.
TEST(InstructionTest, RandomMixturesAreUnderstoodOrRefused) {
  std::mt19937 random(7);
  const auto pick = [&](std::size_t count) { return random() % count; };
  for (int round = 0; round < 100'000; ++round) {
    std::string payload;
    for (std::size_t piece = 0; piece < 1 + pick(4); ++piece) {
      const std::string& from = kValid[pick(kValid.size())];
      const std::size_t begin = pick(from.size());
      payload += from.substr(begin, 1 + pick(from.size() - begin));
    }
    expect_sound(payload);
  }
}

}  // namespace
}  // namespace ordo::gateway

#include "ordo/adapters/oms_toml/oms_toml.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include <toml++/toml.h>

#include "ordo/adapters/config_toml/table_headers.h"
#include "ordo/core/nearest.h"
#include "ordo/core/units.h"

namespace ordo::oms_toml {
namespace {

using gateway::Notional;
using gateway::NumberFault;
using gateway::OmsSettings;
using gateway::ParsedNumber;
using gateway::Price;
using gateway::PriceCollar;
using gateway::Quantity;
using gateway::RiskLimits;
using gateway::RouteRule;

std::uint32_t line_of(const toml::node& node) {
  return node.source().begin.line;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

// "; did you mean 'venue'? allowed: symbol, venue"
std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::string meant = nearest(word, known);
  return (meant.empty() ? "; " : "; did you mean '" + meant + "'? ") + "allowed: " + listed(known);
}

// Why a number is not one, after its value.
std::string_view price_rule(NumberFault fault) {
  switch (fault) {
    case NumberFault::too_fine:
      return "it may have at most 9 decimals";
    case NumberFault::zero:
      return "it must be above zero";
    case NumberFault::too_large:
      return "that is too large";
    default:
      return "it must be a number such as \"99.5\": digits, and perhaps a point between them";
  }
}

// Reads values of one file; the first error stays, and everything after it is passed over.
class Reader {
 public:
  explicit Reader(std::string_view file_name) : file_name_(file_name) {}

  const std::optional<Error>& error() const { return error_; }
  void fail(std::uint32_t line, std::string_view what) {
    if (error_) return;
    std::string message(file_name_);
    message.append(":").append(std::to_string(line)).append(": ").append(what);
    error_ = Error{ErrorCode::invalid_argument, std::move(message)};
  }

  void check_keys(const toml::table& table, const std::string& name,
                  const std::vector<std::string>& known) {
    for (const auto& [key, value] : table) {
      const std::string_view word = key.str();
      if (std::find(known.begin(), known.end(), word) != known.end()) continue;
      fail(key.source().begin.line,
           name + "." + std::string(word) + " is unknown" + suggestion(word, known));
    }
  }

  // `name` is the table's, for messages.
  void text(const toml::table& table, const std::string& name, std::string_view key,
            std::string& value) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    if (const auto* given = node->as_string()) {
      value = given->get();
    } else {
      wrong(*node, name, key, "must be a text, in quotes");
    }
  }

  template <class Count>
  void count(const toml::table& table, const std::string& name, std::string_view key,
             std::int64_t least, Count& value) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    const auto* given = node->as_integer();
    if (given == nullptr) {
      wrong(*node, name, key, "must be a whole number without quotes");
    } else if (given->get() < least) {
      wrong(*node, name, key,
            "is " + std::to_string(given->get()) + "; it must be a whole number from " +
                std::to_string(least) + " on");
    } else {
      value = to_count<Count>(given->get());
    }
  }

  // A Price or a Notional.
  template <class Number>
  void decimal(const toml::table& table, const std::string& name, std::string_view key,
               std::optional<Number>& value) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    std::string given;
    if (const auto* text_given = node->as_string()) {
      given = text_given->get();
    } else if (const auto* whole = node->as_integer()) {
      given = std::to_string(whole->get());
    } else if (node->is_floating_point()) {
      return wrong(*node, name, key,
                   "is a TOML float, which is not exact; write it in quotes: " + std::string(key) +
                       " = \"99.5\"");
    } else {
      return wrong(*node, name, key, "must be a number in quotes, or a whole number");
    }
    const ParsedNumber<Number> parsed = parse(given, Number{});
    if (parsed.fault != NumberFault::none) {
      return wrong(*node, name, key,
                   "is '" + given + "'; " + std::string(price_rule(parsed.fault)));
    }
    value = parsed.value;
  }

  void duration(const toml::table& table, const std::string& name, std::string_view key,
                std::chrono::nanoseconds& value) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    const auto* given = node->as_string();
    if (given == nullptr) {
      return wrong(*node, name, key, "must be a text with a unit, such as \"60s\"");
    }
    const Result<std::chrono::nanoseconds> parsed = parse_duration(given->get());
    if (!parsed) return wrong(*node, name, key, ": " + parsed.error().message);
    value = *parsed;
  }

  void wrong(const toml::node& node, const std::string& name, std::string_view key,
             const std::string& what) {
    const std::string_view space = what.starts_with(':') ? "" : " ";
    fail(line_of(node), (name + ".").append(key).append(space).append(what));
  }

 private:
  template <class Count>
  static Count to_count(std::int64_t number) {
    if constexpr (std::is_same_v<Count, std::optional<Quantity>>) {
      return Quantity{number};
    } else {
      return static_cast<std::size_t>(number);
    }
  }
  static ParsedNumber<Price> parse(std::string_view text, Price) {
    return gateway::parse_price(text);
  }
  static ParsedNumber<Notional> parse(std::string_view text, Notional) {
    return gateway::parse_notional(text);
  }

  std::string_view file_name_;
  std::optional<Error> error_;
};

// The tables of an array of tables. Nothing when it is not there, or is not one.
std::vector<const toml::table*> tables_of(Reader& reader, const toml::table& parent,
                                          std::string_view key, const std::string& written) {
  std::vector<const toml::table*> tables;
  const toml::node* node = parent.get(key);
  if (node == nullptr) return tables;
  const auto fail = [&] {
    reader.fail(line_of(*node), std::string(key) + " must be written as [[" + written + "]]");
  };
  const toml::array* array = node->as_array();
  if (array == nullptr) {
    fail();
    return tables;
  }
  for (const toml::node& entry : *array) {
    if (entry.as_table() == nullptr) {
      fail();
    } else {
      tables.push_back(entry.as_table());
    }
  }
  return tables;
}

const toml::table* table_of(Reader& reader, const toml::table& root, const std::string& key) {
  const toml::node* node = root.get(key);
  if (node == nullptr) return nullptr;
  if (node->as_table() == nullptr) {
    reader.fail(line_of(*node), key + " must be a table: [" + key + "]");
  }
  return node->as_table();
}

RouteRule read_route(Reader& reader, const toml::table& table) {
  const std::string name = "route";
  RouteRule rule;
  reader.check_keys(table, name,
                    {"symbol", "min_qty", "max_qty", "min_price", "max_price", "venue"});
  reader.text(table, name, "symbol", rule.symbol);
  reader.count(table, name, "min_qty", 1, rule.quantity_min);
  reader.count(table, name, "max_qty", 1, rule.quantity_max);
  reader.decimal(table, name, "min_price", rule.price_min);
  reader.decimal(table, name, "max_price", rule.price_max);
  reader.text(table, name, "venue", rule.venue);
  if (!table.contains("venue")) {
    reader.fail(line_of(table), "route.venue is missing; a rule says where to send what matches");
  }
  return rule;
}

PriceCollar read_collar(Reader& reader, const toml::table& table) {
  const std::string name = "risk.collar";
  PriceCollar collar;
  reader.check_keys(table, name, {"symbol", "min_price", "max_price"});
  reader.text(table, name, "symbol", collar.symbol);
  reader.decimal(table, name, "min_price", collar.price_min);
  reader.decimal(table, name, "max_price", collar.price_max);
  return collar;
}

RiskLimits read_risk(Reader& reader, const toml::table& table) {
  const std::string name = "risk";
  RiskLimits risk;
  reader.check_keys(
      table, name,
      {"max_qty", "max_notional", "max_open_orders", "max_open_orders_per_symbol", "collar"});
  reader.count(table, name, "max_qty", 1, risk.quantity_max);
  reader.decimal(table, name, "max_notional", risk.notional_max);
  reader.count(table, name, "max_open_orders", 0, risk.open_orders_max);
  reader.count(table, name, "max_open_orders_per_symbol", 0, risk.symbol_open_orders_max);
  for (const toml::table* collar : tables_of(reader, table, "collar", "risk.collar"))
    risk.collars.push_back(read_collar(reader, *collar));
  return risk;
}

void read_oms(Reader& reader, const toml::table& table, OmsSettings& settings) {
  const std::string name = "oms";
  reader.check_keys(table, name, {"forget_after", "default_venue", "orders_max"});
  reader.duration(table, name, "forget_after", settings.forget_after);
  reader.text(table, name, "default_venue", settings.default_venue);
  reader.count(table, name, "orders_max", 1, settings.orders_max);
}

void check_tables(Reader& reader, const toml::table& root,
                  const std::vector<std::string>& other_tables) {
  std::vector<std::string> known = {"oms", "risk", "route"};
  known.insert(known.end(), other_tables.begin(), other_tables.end());
  std::sort(known.begin(), known.end());
  for (const auto& [key, value] : root) {
    const std::string_view word = key.str();
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    const std::string_view kind = value.is_table() || value.is_array_of_tables() ? "table " : "";
    reader.fail(key.source().begin.line, std::string(kind) + "'" + std::string(word) +
                                             "' is unknown" + suggestion(word, known));
  }
}

// Where the n-th (from 1) of `tables` stands if `message` is about "<list>[n]", else 0.
std::uint32_t line_named(std::string_view message, std::string_view list,
                         const std::vector<const toml::table*>& tables) {
  if (!message.starts_with(list) || message.substr(list.size()).empty()) return 0;
  if (message[list.size()] != '[') return 0;
  std::size_t number = 0;
  for (const char c : message.substr(list.size() + 1)) {
    if (c < '0' || c > '9') break;
    number = number * 10 + static_cast<std::size_t>(c - '0');
  }
  return number >= 1 && number <= tables.size() ? line_of(*tables[number - 1]) : 0;
}

// What only makes no sense together: the product knows, the file knows where.
void check_whole(Reader& reader, const toml::table& root, const OmsSettings& settings) {
  const Status status = check_settings(settings);
  if (status || reader.error()) return;
  const std::string& message = status.error().message;
  std::uint32_t line = line_named(message, "route", tables_of(reader, root, "route", "route"));
  const toml::table* risk = root["risk"].as_table();
  const toml::table* oms = root["oms"].as_table();
  if (line == 0 && risk != nullptr) {
    line = line_named(message, "risk.collar", tables_of(reader, *risk, "collar", "risk.collar"));
    if (line == 0 && message.starts_with("risk.")) line = line_of(*risk);
  }
  if (line == 0 && oms != nullptr && message.starts_with("oms.")) line = line_of(*oms);
  reader.fail(std::max(line, 1U), message);
}

}  // namespace

Result<OmsSettings> parse_oms_toml(std::string_view text, std::string_view file_name,
                                   const std::vector<std::string>& other_tables) {
  Reader reader(file_name);
  if (const std::uint32_t line = config_toml::broken_header(text)) {
    reader.fail(line, config_toml::kTableHeaderRule);
    return *reader.error();
  }
  toml::table root;
  try {
    root = toml::parse(text, file_name);
  } catch (const toml::parse_error& error) {
    reader.fail(error.source().begin.line, error.description());
    return *reader.error();
  }
  OmsSettings settings;
  check_tables(reader, root, other_tables);
  for (const toml::table* route : tables_of(reader, root, "route", "route"))
    settings.routes.push_back(read_route(reader, *route));
  if (const toml::table* risk = table_of(reader, root, "risk")) {
    settings.risk = read_risk(reader, *risk);
  }
  if (const toml::table* oms = table_of(reader, root, "oms")) read_oms(reader, *oms, settings);
  check_whole(reader, root, settings);
  if (reader.error()) return *reader.error();
  return settings;
}

}  // namespace ordo::oms_toml

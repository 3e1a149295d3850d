#include "ordo/adapters/config_toml/config_table.h"

#include <algorithm>
#include <optional>
#include <utility>

// With its exceptions, as in every file that includes it: with TOML_EXCEPTIONS 0 in one of them its
// reader is another class of the same name, and the program runs whichever the linker took.
#include <toml++/toml.h>

#include "ordo/adapters/config_toml/table_headers.h"
#include "ordo/core/nearest.h"

namespace ordo::config_toml {
namespace {

Error error_at(std::string_view file_name, std::uint32_t line, std::string_view what) {
  std::string message(file_name);
  message.append(":").append(std::to_string(line)).append(": ").append(what);
  return Error{ErrorCode::invalid_argument, std::move(message)};
}

std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  return std::nullopt;
}

Status check_names(const toml::table& root, std::string_view file_name,
                   std::vector<std::string> known) {
  for (const auto& [key, value] : root) {
    const std::string_view word = key.str();
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    const std::string meant = nearest(word, known);
    std::string what = value.is_table() || value.is_array_of_tables() ? "table '" : "'";
    what.append(word).append("' is unknown");
    if (!meant.empty()) what.append("; did you mean '").append(meant).append("'?");
    return error_at(file_name, key.source().begin.line, what);
  }
  return {};
}

}  // namespace

Result<std::vector<ConfigEntry>> read_table(std::string_view text, std::string_view file_name,
                                            std::string_view table,
                                            const std::vector<std::string>& other_tables) {
  if (const std::uint32_t line = broken_header(text)) {
    return error_at(file_name, line, kTableHeaderRule);
  }
  toml::table root;
  try {
    root = toml::parse(text, file_name);
  } catch (const toml::parse_error& error) {
    return error_at(file_name, error.source().begin.line, error.description());
  }
  if (!other_tables.empty()) {
    std::vector<std::string> known = other_tables;
    known.emplace_back(table);
    if (Status good = check_names(root, file_name, std::move(known)); !good) return good.error();
  }
  std::vector<ConfigEntry> entries;
  const toml::node* node = root.get(table);
  if (node == nullptr) return entries;
  const toml::table* values = node->as_table();
  if (values == nullptr) {
    return error_at(file_name, node->source().begin.line,
                    "'" + std::string(table) + "' must be a table: [" + std::string(table) + "]");
  }
  for (const auto& [key, value] : *values) {
    std::optional<std::string> as_text = text_of(value);
    const std::uint32_t line = value.source().begin.line;
    if (!as_text) {
      return error_at(file_name, line,
                      std::string(key.str()) + " must be a text, a whole number, true or false");
    }
    entries.push_back({std::string(key.str()), std::move(*as_text), line});
  }
  std::sort(entries.begin(), entries.end(),
            [](const ConfigEntry& a, const ConfigEntry& b) { return a.line < b.line; });
  return entries;
}

}  // namespace ordo::config_toml

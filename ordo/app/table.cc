#include "ordo/app/table.h"

#include <algorithm>
#include <cstdlib>
#include <unistd.h>
#include <utility>

#include "ordo/core/log.h"

namespace ordo::app {
namespace {

void append_row(std::string& text, const std::vector<std::string>& row,
                const std::vector<std::size_t>& widths) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    text += row[i];
    if (i + 1 < row.size()) text.append(widths[i] - columns_of(row[i]) + 2, ' ');
  }
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_colourful(int fd) {
  const char* never = std::getenv("NO_COLOR");
  return ::isatty(fd) == 1 && (never == nullptr || *never == '\0');
}

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) {
    cell = printable(cell);
    if (cell.empty()) cell.push_back('-');
  }
  rows_.push_back(std::move(row));
}

std::string Table::text(bool is_bold) const {
  std::vector<std::size_t> widths;
  const auto measure = [&](const std::vector<std::string>& row) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], columns_of(row[i]));
  };
  measure(heading_);
  std::ranges::for_each(rows_, measure);
  std::string text;
  if (!heading_.empty()) {
    if (is_bold) text += "\x1b[1m";
    append_row(text, heading_, widths);
    if (is_bold) text += "\x1b[0m";
    text += '\n';
  }
  for (const std::vector<std::string>& row : rows_) {
    append_row(text, row, widths);
    text += '\n';
  }
  return text;
}

}  // namespace ordo::app

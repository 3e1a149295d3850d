// Table: columns that line up, for people.
//
//   Table table({"NAME", "LABELS"});
//   table.add({"orders", "team=a"});
//   write_all(STDOUT_FILENO, table.text(is_colourful(STDOUT_FILENO)));
//
//   NAME    LABELS
//   orders  team=a
//
// What a terminal would act on is shown, not done.
//
// Threads: one owner.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ordo::app {

class Table {
 public:
  // Without a heading: {} and the first row says how many columns there are.
  explicit Table(std::vector<std::string> heading) : heading_(std::move(heading)) {}

  void add(std::vector<std::string> row);
  bool is_empty() const { return rows_.empty(); }

  // The last column is not padded. `is_bold`: the heading stands out.
  std::string text(bool is_bold = false) const;

 private:
  std::vector<std::string> heading_;
  std::vector<std::vector<std::string>> rows_;
};

// A terminal, and nobody set NO_COLOR.
bool is_colourful(int fd);

// Columns that UTF-8 text takes: its characters.
std::size_t columns_of(std::string_view text);

}  // namespace ordo::app

#include "bench/support/measures.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace ordo::bench {
namespace {

std::string number_text(double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

}  // namespace

void Measures::set(std::string_view name, double value) {
  for (auto& [known, number] : entries_) {
    if (known == name) {
      number = value;
      return;
    }
  }
  entries_.emplace_back(name, value);
}

double Measures::get(std::string_view name, double otherwise) const {
  for (const auto& [known, number] : entries_) {
    if (known == name) return number;
  }
  return otherwise;
}

bool Measures::has(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [name](const auto& entry) { return entry.first == name; });
}

std::string Measures::to_lines() const {
  std::string lines;
  for (const auto& [name, value] : entries_) {
    lines += name + "=" + number_text(value) + "\n";
  }
  return lines;
}

Measures Measures::from_lines(std::string_view text) {
  Measures measures;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    double value = 0;
    const char* end = line.data() + line.size();
    const auto read = std::from_chars(line.data() + equals + 1, end, value);
    if (read.ec == std::errc() && read.ptr == end) measures.set(line.substr(0, equals), value);
  }
  return measures;
}

Measures Measures::medians(const std::vector<Measures>& runs) {
  Measures result;
  if (runs.empty()) return result;
  for (const auto& [name, first] : runs.front().entries()) {
    std::vector<double> values;
    for (const Measures& run : runs) {
      values.push_back(run.get(name, first));
    }
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    const bool even = values.size() % 2 == 0;
    result.set(name, even ? (values[middle - 1] + values[middle]) / 2 : values[middle]);
  }
  return result;
}

double percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size()));
  const auto place = values.begin() + static_cast<long>(std::min(rank, values.size() - 1));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

void JsonLine::name(std::string_view name) {
  if (body_.size() > 1) body_ += ", ";
  body_ += '"';
  body_ += name;
  body_ += "\": ";
}

JsonLine& JsonLine::text(std::string_view name_text, std::string_view value) {
  name(name_text);
  body_ += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') body_ += '\\';
    body_ += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  body_ += '"';
  return *this;
}

JsonLine& JsonLine::number(std::string_view name_text, double value) {
  name(name_text);
  body_ += number_text(value);
  return *this;
}

}  // namespace ordo::bench

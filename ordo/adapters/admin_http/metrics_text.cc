#include "ordo/adapters/admin_http/metrics_text.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace ordo::admin_http {
namespace {

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 40> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.9g", value);
  return {text.data(), static_cast<std::size_t>(length)};
}

// Backslash, newline and, in a label, the quote.
void append_escaped(std::string& text, std::string_view value, bool is_label) {
  for (const char c : value) {
    if (c == '\\') {
      text += "\\\\";
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '"' && is_label) {
      text += "\\\"";
    } else {
      text += c;
    }
  }
}

}  // namespace

void MetricsText::begin(std::string_view name, std::string_view help, std::string_view type) {
  name_ = name;
  text_.append("# HELP ").append(name).append(" ");
  append_escaped(text_, help, false);
  text_.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
}

void MetricsText::line(std::string_view suffix, Labels labels, std::string_view bound,
                       std::string_view value) {
  text_.append(name_).append(suffix);
  const char* before = "{";
  for (const auto& [label, of] : labels) {
    text_.append(before).append(label).append("=\"");
    append_escaped(text_, of, true);
    text_.append("\"");
    before = ",";
  }
  if (!bound.empty()) {
    text_.append(before).append("le=\"").append(bound).append("\"");
    before = ",";
  }
  text_.append(*before == ',' ? "} " : " ").append(value).append("\n");
}

void MetricsText::sample(std::uint64_t value, Labels labels) {
  line("", labels, "", std::to_string(value));
}

void MetricsText::sample(double value, Labels labels) {
  line("", labels, "", number_text(value));
}

void MetricsText::sample(const Histogram& nanoseconds, Labels labels) {
  constexpr std::uint64_t kLongest = 10'000'000'000;
  std::uint64_t bound = 1'000;
  constexpr std::array<std::uint64_t, 3> kSteps = {1, 2, 5};
  for (std::size_t step = 0; bound <= kLongest; ++step) {
    const std::uint64_t limit = bound * kSteps.at(step % 3);
    if (step % 3 == 2) bound *= 10;
    if (limit > kLongest) break;
    std::uint64_t below = 0;
    nanoseconds.for_each_bucket([&](std::uint64_t, std::uint64_t highest, std::uint64_t count) {
      if (highest <= limit) below += count;
    });
    line("_bucket", labels, number_text(static_cast<double>(limit) * 1e-9), std::to_string(below));
  }
  line("_bucket", labels, "+Inf", std::to_string(nanoseconds.count()));
  line("_sum", labels, "", number_text(static_cast<double>(nanoseconds.sum()) * 1e-9));
  line("_count", labels, "", std::to_string(nanoseconds.count()));
}

}  // namespace ordo::admin_http

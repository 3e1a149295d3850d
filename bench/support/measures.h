// Measures: the named numbers of one run, in the order they were taken, and their medians.
//
// A child process prints them as `name=value` lines; the driver reads them back, takes medians over
// the rounds and writes one JSON object per case.
//
//   Measures run;
//   run.set("ns_per_item", 41.5);
//   std::fputs(run.to_lines().c_str(), stdout);
//   Measures same = Measures::from_lines(text);
//
// Threads: one owner.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ordo::bench {

class Measures {
 public:
  void set(std::string_view name, double value);

  // The value of `name`, or `otherwise` when it was not taken.
  double get(std::string_view name, double otherwise = 0) const;
  bool has(std::string_view name) const;

  const std::vector<std::pair<std::string, double>>& entries() const { return entries_; }

  std::string to_lines() const;
  // Reads what to_lines() wrote. Lines of another shape are left out.
  static Measures from_lines(std::string_view text);

  // For each name of the first run, the median over all runs.
  static Measures medians(const std::vector<Measures>& runs);

 private:
  std::vector<std::pair<std::string, double>> entries_;
};

// The value below which `share` (0..1) of `values` lie; 0 when there are none. Reorders `values`.
double percentile(std::vector<double>& values, double share);

// A JSON object on one line, built field by field. Text is escaped.
class JsonLine {
 public:
  JsonLine& text(std::string_view name, std::string_view value);
  JsonLine& number(std::string_view name, double value);
  std::string str() const { return body_ + "}"; }

 private:
  void name(std::string_view name);

  std::string body_ = "{";
};

}  // namespace ordo::bench

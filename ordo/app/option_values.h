// Values of options as people type them, checked, with errors that name the option.
//
//   Result<std::uint64_t> workers = parse_count("--workers", "8", {1, 4096});
//   if (!workers) return workers.error();  // --workers: '0' is not a number from 1 to 4096
//
// Threads: none; pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "ordo/core/result.h"

namespace ordo::app {

struct CountRange {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};

Result<std::uint64_t> parse_count(std::string_view option, std::string_view text, CountRange range);

// MIN..MAX with 1 <= MIN <= MAX <= max.
Result<CountRange> parse_range(std::string_view option, std::string_view text, std::uint64_t max);

// A duration with a unit; `positive` refuses 0.
Result<std::chrono::nanoseconds> parse_time(std::string_view option, std::string_view text,
                                            bool positive);

// A size of at least 1 byte.
Result<std::uint64_t> parse_bytes(std::string_view option, std::string_view text);

// One byte; \t is a tab.
Result<char> parse_character(std::string_view option, std::string_view text);

}  // namespace ordo::app

// MapOptions: everything that can be said to `ordo map`, with its default.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ordo::app {

struct MapOptions {
  std::vector<std::string> command;

  std::size_t workers = 0;                   // 0: one per processor.
  std::optional<std::size_t> autoscale_max;  // With it, `workers` is the minimum.
  bool ordered = true;
  std::size_t window = 0;     // Lines taken in and not yet printed; 0: by the number of workers.
  std::size_t key_field = 0;  // 0: none.
  char key_separator = 0;     // 0: blanks and tabs.
  std::string key_regex;

  bool server = false;
  bool shell = false;
  bool line_on_stdin = false;
  bool null_separated = false;

  std::uint32_t retries = 0;            // Attempts after the first.
  std::chrono::nanoseconds backoff{0};  // Before the second attempt; doubled for each further one.
  std::optional<std::chrono::nanoseconds> timeout;  // For one attempt.
  std::chrono::nanoseconds kill_grace = std::chrono::seconds(2);
  std::chrono::nanoseconds flush_wait = std::chrono::seconds(3);
  bool halt_on_error = false;

  std::size_t line_bytes_max = std::size_t{128} << 20;
  std::size_t output_bytes_max = std::size_t{64} << 20;

  std::string journal;
  bool resume = false;
  bool resume_failed = false;
  std::string dead_letters;
  std::string output;  // Empty: standard output.

  bool dry_run = false;
  bool progress = false;
  bool stats = false;
};

// The exit status of `ordo map` beside the number of failed jobs (0 to 100).
inline constexpr int kExitManyFailures = 101;   // More than 100 jobs failed.
inline constexpr int kExitNotExecutable = 126;  // COMMAND exists and cannot be run.
inline constexpr int kExitNoCommand = 127;      // COMMAND does not exist.
inline constexpr int kExitInterrupted = 130;    // Stopped by SIGINT; 143: by SIGTERM.
inline constexpr int kExitClosedOutput = 141;   // Whoever read the output went away.
inline constexpr int kExitError = 255;          // Anything else; also wrong usage.

}  // namespace ordo::app

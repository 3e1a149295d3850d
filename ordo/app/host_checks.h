// Whether a broker could run here: what `ordo doctor` looks at, one finding for each.
//
//   for (const Finding& finding : check_host(options)) print(finding);
//
//   ok    disk    31.2GiB free of 58.4GiB at ordo-data
//   wrong port    127.0.0.1:8085 is taken by redis-server (pid 812); choose another with --listen
//
// Threads: blocks the caller for the time of a connection. Changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ordo/app/serve_options.h"

namespace ordo::app {

struct Finding {
  enum class Grade : std::uint8_t { ok, odd, wrong };

  Grade grade = Grade::ok;
  std::string what = {};  // One word.
  std::string text = {};  // What was seen, and what to do.
};

std::vector<Finding> check_host(const ServeOptions& options);

// "ok", "odd" or "wrong".
const char* grade_word(Finding::Grade grade);

// A size as people say it: 31.2GiB.
std::string rough_size(std::uint64_t bytes);

}  // namespace ordo::app

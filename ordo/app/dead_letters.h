// DeadLetters: the lines that failed for good, each with the reason, as JSON lines in a file.
//
//   Result<DeadLetters> letters = DeadLetters::open("failed.jsonl");
//   letters->append(result);
//
//   {"job":7,"input":"a b","attempts":3,"reason":"exit:1","exit":1,"seconds":0.2,"stderr":"no\n"}
//
// `input` and `stderr` are text, or `input_base64` and `stderr_base64` when they are not UTF-8. The
// file is added to, never overwritten, so that a resumed run completes it.
//
// Threads: one owner at a time.
// Bounds:  the last 4 KiB of what the job wrote to standard error.
// Cost:    one write per failed job.
#pragma once

#include <string>

#include "ordo/app/job.h"
#include "ordo/app/unique_fd.h"
#include "ordo/core/result.h"

namespace ordo::app {

class DeadLetters {
 public:
  static Result<DeadLetters> open(const std::string& path);

  // Returns 0, or errno. REQUIRES: result.failed().
  int append(const JobResult& result);

  // The JSON object without its newline.
  static std::string describe(const JobResult& result);

 private:
  UniqueFd file_;
};

}  // namespace ordo::app

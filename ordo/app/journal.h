// Journal: which lines are done, on disk, so that a run that was cut off can be continued.
//
//   Result<Journal> journal = Journal::open("jobs.log", {.mode = JournalMode::resume, ...});
//   if (!journal) return complain(journal.error());
//   switch (journal->past(number, hash)) { ... }    // done: skip; changed: refuse; unknown: run
//   ...
//   write(1, output);                               // first the output,
//   journal->append(results);                       // then the record
//
// One line of text per job, with a check sum, in the order in which outputs were written:
//
//   # ordo joblog 1 command=9f86d081884c7d65
//   job  line hash  seconds  attempts  result  end of output  check sum      (tabs between them)
//
// A recorded job is never run again; one that is not recorded is. What a crash tore off at the end
// is cut away; damage anywhere else is an error. The lock keeps a second run out.
//
// Threads: one owner at a time.
// Bounds:  8 bytes of memory per line of the input that was recorded before.
// Cost:    one write per append(), about 70 bytes per job. The system's cache is trusted: a record
//          survives the end of this process, a power failure may take the last seconds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/app/job.h"
#include "ordo/app/unique_fd.h"
#include "ordo/core/result.h"

namespace ordo::app {

enum class JournalMode : std::uint8_t {
  fresh,          // The file must not hold records yet.
  resume,         // Skip what is recorded.
  resume_failed,  // Skip what succeeded; run what failed again.
};

struct JournalOptions {
  JournalMode mode = JournalMode::fresh;
  std::string command;     // What is run; a journal of another command is refused.
  bool read_only = false;  // Only past() will be asked.
};

class Journal {
 public:
  enum class Past { unknown, done, changed };

  static Result<Journal> open(const std::string& path, const JournalOptions& options);

  // What the file says about the line with this number. `changed`: another line had that number.
  Past past(std::uint64_t number, std::uint64_t hash) const;

  // Records `results`, but not the cancelled ones. Returns 0, or errno; then nothing more may be
  // written. With an output file, `output_end` is where the output of the first result begins.
  int append(std::span<const JobResult> results, std::uint64_t output_end);

  // The highest number recorded before; an input that ends sooner has changed.
  std::uint64_t last_number() const { return lines_.size(); }
  std::uint64_t done_count() const { return done_count_; }
  // Where the output of the last record ended in the output file.
  std::uint64_t output_end() const { return output_end_; }

  int sync();

 private:
  Result<bool> read(const std::string& path, const JournalOptions& options);
  bool take_record(std::string_view text);

  UniqueFd file_;
  std::vector<std::uint64_t> lines_;  // By number - 1: hash without bit 0; bit 0: failed; 0: none.
  bool rerun_failed_ = false;
  std::uint64_t done_count_ = 0;
  std::uint64_t output_end_ = 0;
  std::string text_;  // Being written.
};

}  // namespace ordo::app

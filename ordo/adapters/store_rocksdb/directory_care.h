// What people do to a data directory that is not in use: look whether it is healthy, and repair it.
//
//   DirectoryHealth health = directory_health("/var/lib/ordo", usual_witness("/var/lib/ordo"));
//   Result<std::vector<std::string>> done = repair_directory(directory, witness, accept_loss);
//
// For `ordo doctor` and `ordo repair`; examination.h and repair.h do the work.
//
// Threads: functions without state of their own.
// Errors:  of repair_directory(): failed_precondition: in use, or something would be given up and
//          that was not accepted; others: it could not be done.
#pragma once

#include <string>
#include <vector>

#include "ordo/core/result.h"

namespace ordo::store_rocksdb {

struct DirectoryHealth {
  std::vector<std::string> lines;     // What is there.
  std::vector<std::string> problems;  // What is wrong; empty: healthy.
  bool was_not_examined = false;      // In use, or not there.
};

// Where the witness of `directory` stands unless told otherwise: beside it.
std::string usual_witness(std::string directory);

DirectoryHealth directory_health(const std::string& directory, const std::string& witness);
Result<std::vector<std::string>> repair_directory(const std::string& directory,
                                                  const std::string& witness, bool accept_loss);

}  // namespace ordo::store_rocksdb

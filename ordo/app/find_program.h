// find_program(): the file that a command name means, before the first line is read.
//
//   Result<std::string> file = find_program("sort", ::getenv("PATH"));
//   if (!file) { complain(file.error().message); return 127; }
//
// Cost: a few stat() per folder of the path.
#pragma once

#include <string>

#include "ordo/core/result.h"

namespace ordo::app {

// A name with a slash is a file; any other is looked up in the folders of `path`. Errors:
// not_found when there is no such file, failed_precondition when it cannot be run.
Result<std::string> find_program(const std::string& name, const char* path);

}  // namespace ordo::app

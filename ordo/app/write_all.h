// write_all(): all bytes, to a file that does not make a writer wait.
#pragma once

#include <string_view>

namespace ordo::app {

// Returns 0, or errno; then a part may have been written.
int write_all(int fd, std::string_view text);

}  // namespace ordo::app

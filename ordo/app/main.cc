// The `ordo` program: finds out what is wanted and hands over.
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "ordo/app/command_line.h"
#include "ordo/app/commands.h"
#include "ordo/app/map_options.h"
#include "ordo/app/write_all.h"

namespace {

// Descriptors 0 to 2 exist, so that no file of ours gets one of their numbers. One that was closed
// cannot be read or written, as before.
void keep_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_descriptors();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const ordo::app::Invocation wanted =
      ordo::app::parse_command_line(arguments, ordo::app::all_commands());
  switch (wanted.what) {
    case ordo::app::Invocation::What::run:
      return wanted.run();
    case ordo::app::Invocation::What::print:
      return ordo::app::write_all(STDOUT_FILENO, wanted.text) == 0 ? 0 : ordo::app::kExitError;
    case ordo::app::Invocation::What::complain:
      break;
  }
  ordo::app::write_all(STDERR_FILENO, wanted.text + "\n");
  return ordo::app::kExitError;
}

// The `ordo` program: finds out what is wanted and hands over.
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "ordo/app/command_line.h"
#include "ordo/app/gateway_command.h"
#include "ordo/app/map_command.h"
#include "ordo/app/serve_command.h"
#include "ordo/app/store_command.h"
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
  ordo::app::Invocation wanted = ordo::app::parse_command_line(arguments);
  switch (wanted.what) {
    case ordo::app::Invocation::What::serve:
      return ordo::app::run_serve(wanted.serve);
    case ordo::app::Invocation::What::map:
      return ordo::app::run_map(std::move(wanted.map));
    case ordo::app::Invocation::What::gateway:
      return ordo::app::run_gateway(wanted.gateway);
    case ordo::app::Invocation::What::gateway_client:
      return ordo::app::run_gateway_client(wanted.client);
    case ordo::app::Invocation::What::doctor:
      return ordo::app::run_doctor(wanted.store);
    case ordo::app::Invocation::What::repair:
      return ordo::app::run_repair(wanted.store);
    case ordo::app::Invocation::What::print:
      return ordo::app::write_all(STDOUT_FILENO, wanted.text) == 0 ? 0 : ordo::app::kExitError;
    case ordo::app::Invocation::What::complain:
      break;
  }
  ordo::app::write_all(STDERR_FILENO, wanted.text + "\n");
  return ordo::app::kExitError;
}

#include "ordo/app/spawn.h"

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

#include <sys/syscall.h>

#include "ordo/core/check.h"

namespace ordo::app {
namespace {

char* const* environment_of(const Spawner::Request& request) {
  return request.environment != nullptr ? request.environment : environ;
}

int start_as_script(const Spawner::Request& request, const posix_spawn_file_actions_t* actions,
                    const posix_spawnattr_t* attributes, pid_t& pid) {
  char shell[] = "sh";
  std::string file = request.file;
  std::vector<char*> argv{shell, file.data()};
  for (char* const* word = request.argv + 1; *word != nullptr; ++word)
    argv.push_back(*word);
  argv.push_back(nullptr);
  return ::posix_spawn(&pid, "/bin/sh", actions, attributes, argv.data(), environment_of(request));
}

}  // namespace

Spawner::Spawner(const sigset_t& mask)
    : null_(::open("/dev/null", O_RDWR | O_CLOEXEC)),
      attributes_() {
  ORDO_CHECK(null_);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);  // Ignored by us, to be told by write() instead.
  ORDO_CHECK(::posix_spawnattr_init(&attributes_) == 0);
  ORDO_CHECK(::posix_spawnattr_setpgroup(&attributes_, 0) == 0);
  ORDO_CHECK(::posix_spawnattr_setsigmask(&attributes_, &mask) == 0);
  ORDO_CHECK(::posix_spawnattr_setsigdefault(&attributes_, &defaults) == 0);
  ORDO_CHECK(::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP |
                                                          POSIX_SPAWN_SETSIGMASK |
                                                          POSIX_SPAWN_SETSIGDEF) == 0);
}

Spawner::~Spawner() {
  ::posix_spawnattr_destroy(&attributes_);
}

int Spawner::start(const Request& request, pid_t& pid) const {
  posix_spawn_file_actions_t actions;
  ORDO_CHECK(::posix_spawn_file_actions_init(&actions) == 0);
  const int in = request.in >= 0 ? request.in : null_.get();
  const int out = request.out >= 0 ? request.out : null_.get();
  int error = ::posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  if (error == 0) error = ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  if (error == 0 && request.err >= 0) {
    error = ::posix_spawn_file_actions_adddup2(&actions, request.err, STDERR_FILENO);
  }
  if (error == 0) {
    error = ::posix_spawn(&pid, request.file, &actions, &attributes_, request.argv,
                          environment_of(request));
  }
  if (error == ENOEXEC) error = start_as_script(request, &actions, &attributes_, pid);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

UniqueFd exit_handle(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

}  // namespace ordo::app

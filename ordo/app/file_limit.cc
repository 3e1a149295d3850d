#include "ordo/app/file_limit.h"

#include <algorithm>
#include <string>

#include <sys/resource.h>

#include "ordo/core/log.h"

namespace ordo::app {

std::size_t raise_file_limit(std::size_t need) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return need;
  if (limit.rlim_cur >= need) return limit.rlim_cur;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(need, limit.rlim_max);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

std::size_t make_room_for(std::size_t connections, std::size_t own_files) {
  const std::size_t files = raise_file_limit(connections + own_files);
  const std::size_t room = std::max<std::size_t>(files - std::min(own_files, files / 2), 1);
  if (room >= connections) return connections;
  log_line("ordo: the limit of open files leaves room for " + std::to_string(room) +
           " connections; raise 'ulimit -n' for more");
  return room;
}

}  // namespace ordo::app

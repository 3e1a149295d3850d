#include "ordo/app/file_limit.h"

#include <algorithm>

#include <sys/resource.h>

namespace ordo::app {

std::size_t raise_file_limit(std::size_t need) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return need;
  if (limit.rlim_cur >= need) return limit.rlim_cur;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(need, limit.rlim_max);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

}  // namespace ordo::app

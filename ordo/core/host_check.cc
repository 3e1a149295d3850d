#include "ordo/core/host_check.h"

#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace ordo {

bool is_own_host(std::string_view host) {
  if (host.empty()) return true;
  const bool is_bracketed = host.starts_with('[');
  const std::size_t end = host.find(is_bracketed ? ']' : ':');
  if (is_bracketed && end == std::string_view::npos) return false;
  const std::string name(is_bracketed ? host.substr(1, end - 1) : host.substr(0, end));
  if (!is_bracketed && name == "localhost") return true;
  in6_addr address{};
  return ::inet_pton(is_bracketed ? AF_INET6 : AF_INET, name.c_str(), &address) == 1;
}

}  // namespace ordo

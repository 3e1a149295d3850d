#include "ordo/app/host_port.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace ordo::app {
namespace {

namespace fs = std::filesystem;

bool is_ipv4(const std::string& host) {
  in_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1;
}

bool is_ipv6(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// The inodes of the sockets that listen on `port`, from a table of the kernel.
void add_listeners(const char* table, std::uint16_t port, std::set<std::string>& inodes) {
  constexpr const char* kListening = "0A";
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
        timeout >> inode;
    const std::size_t colon = local.rfind(':');
    if (state != kListening || colon == std::string::npos) continue;
    if (std::stoul(local.substr(colon + 1), nullptr, 16) == port) inodes.insert(inode);
  }
}

bool holds_socket(const fs::path& process, const std::set<std::string>& inodes) {
  std::error_code error;
  for (fs::directory_iterator fd(process / "fd", error), end; !error && fd != end;
       fd.increment(error)) {
    std::error_code gone;
    const std::string target = fs::read_symlink(fd->path(), gone).string();
    if (target.starts_with("socket:[") && inodes.contains(target.substr(8, target.size() - 9))) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool HostPort::is_loopback() const {
  return host == "::1" || (is_ipv4(host) && host.starts_with("127."));
}

std::string HostPort::text() const {
  const std::string shown = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return shown + ":" + std::to_string(port);
}

Result<HostPort> parse_host_port(std::string_view origin, std::string_view text) {
  const auto wrong = [&] {
    return Error{ErrorCode::invalid_argument,
                 std::string(origin) + ": '" + std::string(text) +
                     "' is not an address with a port such as 127.0.0.1:7070 or [::1]:7070"};
  };
  HostPort result{"127.0.0.1", 0};
  const std::size_t colon = text.rfind(':');
  const std::string_view port = colon == std::string_view::npos ? text : text.substr(colon + 1);
  if (colon != std::string_view::npos && colon > 0) result.host = text.substr(0, colon);
  const bool is_bracketed = result.host.starts_with('[') && result.host.ends_with(']');
  if (is_bracketed) result.host = result.host.substr(1, result.host.size() - 2);
  if (result.host == "localhost") result.host = "127.0.0.1";
  if (is_bracketed ? !is_ipv6(result.host) : !is_ipv4(result.host)) return wrong();
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (error != std::errc() || end != port.data() + port.size()) return wrong();
  return result;
}

std::string listener_of(std::uint16_t port) {
  std::set<std::string> inodes;
  add_listeners("/proc/net/tcp", port, inodes);
  add_listeners("/proc/net/tcp6", port, inodes);
  if (inodes.empty()) return {};
  std::error_code error;
  for (fs::directory_iterator process("/proc", error), end; !error && process != end;
       process.increment(error)) {
    const std::string pid = process->path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!holds_socket(process->path(), inodes)) continue;
    std::ifstream file(process->path() / "comm");
    std::string name;
    std::getline(file, name);
    return name.append(" (pid ").append(pid).append(")");
  }
  return {};
}

std::string cannot_listen(const Error& error, const HostPort& at, const char* flag) {
  std::string text = error.message;
  if (const std::string who = at.port == 0 ? "" : listener_of(at.port); !who.empty()) {
    text.append("; ").append(who).append(" listens there");
  }
  return text.append("; choose another with ").append(flag).append(" ADDR:PORT");
}

}  // namespace ordo::app

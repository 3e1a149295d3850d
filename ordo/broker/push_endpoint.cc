#include "ordo/broker/push_endpoint.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace ordo::broker {
namespace {

constexpr std::string_view kScheme = "http://";
constexpr std::string_view kSecureScheme = "https://";

Error refused(std::string_view url, const std::string& why) {
  constexpr std::size_t kShownMax = 200;
  std::string shown(url.substr(0, kShownMax));
  if (url.size() > kShownMax) shown += "...";
  return {ErrorCode::invalid_argument,
          "Invalid push endpoint given (endpoint=" + shown + "): " + why + "."};
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool begins_with(std::string_view url, std::string_view scheme) {
  return url.size() >= scheme.size() && std::equal(scheme.begin(), scheme.end(), url.begin(),
                                                   [](char a, char b) { return a == lower(b); });
}

bool is_visible(char c) {
  return c > ' ' && c < '\x7f';
}

bool is_name(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  });
}

// What stands between the brackets of an IPv6 address.
bool is_address(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return (lower(c) >= 'a' && lower(c) <= 'f') || (c >= '0' && c <= '9') || c == ':' || c == '.';
  });
}

bool read_port(std::string_view text, std::uint16_t& port) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && stop == end && port != 0;
}

}  // namespace

Result<PushEndpoint> PushEndpoint::parse(std::string_view url) {
  if (url.size() > kBytesMax) {
    return refused(url, "it has " + std::to_string(url.size()) + " bytes; allowed: up to " +
                            std::to_string(kBytesMax));
  }
  if (!std::all_of(url.begin(), url.end(), is_visible))
    return refused("", "only visible ASCII characters are allowed in it");
  if (begins_with(url, kSecureScheme))
    return refused(url, "https is not supported by this server yet, only http");
  if (!begins_with(url, kScheme)) return refused(url, "it must begin with http://");
  if (url.find('#') != std::string_view::npos) return refused(url, "it must not have a fragment");

  const std::string_view rest = url.substr(kScheme.size());
  const std::size_t path_at = std::min(rest.find_first_of("/?"), rest.size());
  PushEndpoint endpoint;
  endpoint.authority = rest.substr(0, path_at);
  endpoint.target = rest.substr(path_at);
  if (!endpoint.target.starts_with('/')) endpoint.target.insert(0, "/");

  std::string_view authority = endpoint.authority;
  if (authority.find('@') != std::string_view::npos)
    return refused("", "it must not have a user or a password");
  const bool has_brackets = authority.starts_with('[');
  const std::size_t host_end =
      has_brackets ? authority.find(']') : std::min(authority.find(':'), authority.size());
  if (host_end == std::string_view::npos) return refused(url, "its address has no closing ]");
  endpoint.host = authority.substr(has_brackets ? 1 : 0, host_end - (has_brackets ? 1 : 0));
  authority.remove_prefix(host_end + (has_brackets ? 1 : 0));
  if (has_brackets ? !is_address(endpoint.host) : !is_name(endpoint.host))
    return refused(url, "its host is neither a name nor an address");
  if (!authority.empty() &&
      (authority.front() != ':' || !read_port(authority.substr(1), endpoint.port))) {
    return refused(url, "its port is not a number from 1 to 65535");
  }
  return endpoint;
}

std::optional<Error> refuse_consumer(const SubscriptionConfig& config, bool pushes) {
  if (config.push.has_value() == pushes) return std::nullopt;
  return Error{ErrorCode::failed_precondition,
               pushes ? "The subscription has no push endpoint."
                      : "This method is not supported for push subscriptions."};
}

}  // namespace ordo::broker

#include "ordo/adapters/grpc_client/address.h"

#include <algorithm>
#include <charconv>

namespace ordo::grpc_client {
namespace {

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_' || c == ':';
}

}  // namespace

Result<Address> Address::parse(std::string_view origin, std::string_view text) {
  const auto wrong = [&] {
    return Error{ErrorCode::invalid_argument, std::string(origin) + ": '" + std::string(text) +
                                                  "' is no address; write HOST:PORT"};
  };
  std::string_view rest = text;
  if (rest.starts_with("http://")) rest.remove_prefix(7);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const std::size_t colon = rest.rfind(':');
  std::string_view host = colon == std::string_view::npos ? "" : rest.substr(0, colon);
  const std::string_view digits = colon == std::string_view::npos ? rest : rest.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong();  // An IPv6 number has brackets.
  }
  Address address;
  if (!host.empty()) address.host = host;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  if (!is_number || address.port == 0 || !std::ranges::all_of(host, is_host_character))
    return wrong();
  return address;
}

std::string Address::text() const {
  const std::string shown = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return shown + ":" + std::to_string(port);
}

}  // namespace ordo::grpc_client

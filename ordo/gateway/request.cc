#include "ordo/gateway/request.h"

#include <array>
#include <cstddef>

namespace ordo::gateway {

std::string_view name_of(Refusal refusal) {
  constexpr std::array<std::string_view, 8> kNames = {
      "none", "busy", "id-busy", "gap", "malformed", "too-long", "error", "closing"};
  return kNames.at(static_cast<std::size_t>(refusal));
}

}  // namespace ordo::gateway

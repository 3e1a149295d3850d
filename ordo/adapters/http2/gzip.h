// gzip, both ways: deflated() and inflate().
//
//   std::string small = deflated(pieces);
//   Result<std::string> large = inflated(small, bytes_max);    // never more than bytes_max
//
// Threads: pure functions.
// Bounds:  inflated() stops at bytes_max, whatever the input claims.
// Errors:  inflated(): RESOURCE_EXHAUSTED when it would be longer, INTERNAL when it is not gzip.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/adapters/http2/slice.h"
#include "ordo/core/result.h"

namespace ordo::http2 {

std::string deflated(const std::vector<Slice>& pieces);
Result<std::string> inflated(std::string_view bytes, std::size_t bytes_max);

}  // namespace ordo::http2

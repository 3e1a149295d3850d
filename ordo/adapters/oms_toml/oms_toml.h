// parse_oms_toml(): routing rules, risk limits and the rest of the mini-OMS from a TOML file.
//
//   Result<gateway::OmsSettings> settings = parse_oms_toml(text, "gateway.toml", {"gateway"});
//   if (!settings) return settings.error();   // gateway.toml:12: route.venue is missing; ...
//
// docs/oms.md describes the file. Tables that belong to others are named by the caller and left
// alone; every other table or key that is not known is an error that says what may have been meant.
// Prices are texts or whole numbers: a TOML float is refused, because it is not exact.
//
// Threads: a pure function.
// Errors:  invalid_argument: file, line, field, what it is and what is allowed. The first one only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ordo/core/result.h"
#include "ordo/gateway/oms_settings.h"

namespace ordo::oms_toml {

Result<gateway::OmsSettings> parse_oms_toml(std::string_view text, std::string_view file_name,
                                            const std::vector<std::string>& other_tables = {});

}  // namespace ordo::oms_toml

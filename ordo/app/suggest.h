// nearest(): what a person may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ordo::app {

// The candidate that differs least from `word`, or "" when all differ too much to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace ordo::app

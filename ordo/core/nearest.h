// nearest(): what a person may have meant.
//
//   const std::string meant = nearest("rsik", {"oms", "risk", "route"});   // "risk"
//
// Threads: a pure function.
// Cost:    the product of the lengths of the two words, for each candidate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ordo {

// The candidate that differs least from `word`, or "" when all differ too much to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace ordo

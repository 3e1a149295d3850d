// version_text(): the version, compiler and build type of this program. version_number(): the
// version alone.
//
// Threads: pure functions.
#pragma once

#include <string>

namespace ordo::app {

// "ordo 0.1.0 (g++ 12.2.0, Release)"
std::string version_text();
// "0.1.0"
std::string version_number();

}  // namespace ordo::app

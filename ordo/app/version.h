// version_text(): the version, compiler and build type of this program.
#pragma once

#include <string>

namespace ordo::app {

// "ordo 0.1.0 (g++ 12.2.0, Release)"
std::string version_text();

}  // namespace ordo::app

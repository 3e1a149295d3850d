#include "ordo/app/version.h"

namespace ordo::app {

std::string version_number() {
  return ORDO_VERSION;
}

std::string version_text() {
#if defined(__clang__)
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "g++ " __VERSION__;
#endif
  return std::string("ordo ") + ORDO_VERSION + " (" + compiler + ", " + ORDO_BUILD_TYPE + ")";
}

}  // namespace ordo::app

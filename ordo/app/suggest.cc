#include "ordo/app/suggest.h"

#include "ordo/core/nearest.h"

namespace ordo::app {

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  return ordo::nearest(word, candidates);
}

}  // namespace ordo::app

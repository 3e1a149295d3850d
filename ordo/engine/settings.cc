#include "ordo/engine/settings.h"

#include <stdexcept>
#include <string>

namespace ordo::engine {
namespace {

void check_range(std::size_t value, const std::string& field, std::size_t most) {
  if (value >= 1 && value <= most) return;
  // tidy: allow(throw) the constructor of an engine names the bad option
  throw std::invalid_argument(field + " is " + std::to_string(value) +
                              "; it must be between 1 and " + std::to_string(most));
}

}  // namespace

void check_options(const EngineOptions& options) {
  check_range(options.partitions, "partitions", kPartitionsMax);
  check_range(options.budget, "budget", kBudgetMax);
  check_range(options.per_id, "per_id", kBudgetMax);
  check_range(options.batch_max, "batch_max", kBatchMax);
}

}  // namespace ordo::engine

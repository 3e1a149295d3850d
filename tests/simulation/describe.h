// Inputs and effects in words, for the trace of a run.
//
// Threads: pure functions.
#pragma once

#include <string>

#include "ordo/broker/partition_io.h"

namespace ordo::simulation {

std::string describe(broker::PartitionAddress address);
std::string describe(const broker::Input& input);
std::string describe(const broker::Effect& effect);

}  // namespace ordo::simulation

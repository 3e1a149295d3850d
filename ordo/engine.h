// The public door of the partition engine: ordo::PartitionEngine, ordo::EngineOptions,
// ordo::TaskToken, and what it reports.
#pragma once

#include "ordo/engine/partition_engine.h"

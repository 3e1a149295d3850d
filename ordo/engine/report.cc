#include "ordo/engine/report.h"

namespace ordo {

PartitionStats EngineStats::total() const {
  PartitionStats sum;
  for (const PartitionStats& partition : partitions) {
    sum.depth += partition.depth;
    sum.in_flight += partition.in_flight;
    sum.ready_lanes += partition.ready_lanes;
    sum.lanes += partition.lanes;
    sum.admitted += partition.admitted;
    sum.processed += partition.processed;
    sum.failed += partition.failed;
    sum.undone += partition.undone;
    sum.rejected_busy += partition.rejected_busy;
    sum.rejected_id_busy += partition.rejected_id_busy;
    sum.rejected_closing += partition.rejected_closing;
    sum.tokens_late += partition.tokens_late;
    sum.timers_threw += partition.timers_threw;
    sum.turns_of_callers += partition.turns_of_callers;
    sum.wait_ns.merge(partition.wait_ns);
    sum.handler_ns.merge(partition.handler_ns);
  }
  return sum;
}

}  // namespace ordo

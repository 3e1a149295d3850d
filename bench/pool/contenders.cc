#include "bench/pool/contenders.h"

#include <array>

namespace ordo::bench {
namespace {

#ifdef ORDO_BENCH_TBB
#define ORDO_BENCH_IF_TBB(function) function
#else
#define ORDO_BENCH_IF_TBB(function) nullptr
#endif

constexpr std::array<Contender, 10> kContenders{{
    {"ordo", "Ordo, push and pop", "value", run_ordo},
    {"ordo_pointer", "Ordo, pointers", "pointer", run_ordo_pointer},
    {"ordo_emit", "Ordo, push and emit", "value", run_ordo_emit},
    {"tbb_pipeline", "TBB pipeline", "pointer", ORDO_BENCH_IF_TBB(run_tbb_pipeline)},
    {"tbb_pipeline_push", "TBB pipeline, fed", "pointer", ORDO_BENCH_IF_TBB(run_tbb_pipeline_push)},
    {"tbb_flow", "TBB flow graph", "pointer", ORDO_BENCH_IF_TBB(run_tbb_flow)},
    {"tbb_flow_push", "TBB flow graph, fed", "pointer", ORDO_BENCH_IF_TBB(run_tbb_flow_push)},
    {"mutex_and_map", "mutex and map", "value", run_mutex_and_map},
    {"futures", "futures over a pool", "value", run_futures},
    {"one_thread", "one thread", "value", run_one_thread},
}};

}  // namespace

std::span<const Contender> contenders() {
  return kContenders;
}

const Contender* find_contender(std::string_view name) {
  for (const Contender& contender : kContenders) {
    if (contender.name == name) return &contender;
  }
  return nullptr;
}

}  // namespace ordo::bench

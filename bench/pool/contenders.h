// The contenders of bench_pool: each does a whole Load its own way.
//
// A contender prepares what it needs, calls load.begin(), and returns when every message was taken.
#pragma once

#include <span>
#include <string_view>

#include "bench/pool/load.h"

namespace ordo::bench {

struct Contender {
  std::string_view name;
  std::string_view title;
  std::string_view message;  // How the message travels: "value" or "pointer".
  void (*run)(Load& load);   // nullptr: left out of this build.
};

// All contenders, in the order of the tables. Those this build lacks have no `run`.
std::span<const Contender> contenders();
const Contender* find_contender(std::string_view name);

// ours.cc
void run_ordo(Load& load);          // push() on one thread, pop() on another.
void run_ordo_pointer(Load& load);  // The same with pointers to messages, as TBB has them.
void run_ordo_emit(Load& load);     // push() on one thread, outputs to a callback.

// plain.cc
void run_one_thread(Load& load);     // The floor: no hand-over at all.
void run_mutex_and_map(Load& load);  // A locked queue to the workers, one back, a map to reorder.
void run_futures(Load& load);        // A queue of futures in order, tasks on a thread pool.

// tbb.cc
void run_tbb_pipeline(Load& load);       // The source is the first filter: its best form.
void run_tbb_pipeline_push(Load& load);  // Fed by another thread through a bounded queue.
void run_tbb_flow(Load& load);           // input, limiter, function, sequencer, function nodes.
void run_tbb_flow_push(Load& load);      // Fed by another thread; a semaphore holds the window.

// Which bounded queue feeds the fed pipeline in this build.
std::string_view tbb_feed_queue();

}  // namespace ordo::bench

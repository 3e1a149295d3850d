// run_child: one run of a case in a process of its own, so that thread pools, allocators and warm
// caches of one contender do not meet those of the next; and how much the machine was disturbed.
//
//   ChildResult run = run_child({"/proc/self/exe", "--case", "..."}, std::chrono::seconds(30));
//   if (run.failure.empty()) use(run.output, run.foreign_share);
//
// Threads: call it from one thread at a time.
// Bounds:  the child is killed when `timeout` is over or this process ends; its output is kept
// whole.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace ordo::bench {

struct ChildResult {
  std::string output;   // What the child wrote to its standard output.
  std::string failure;  // Why the run does not count; empty when the child ended with status 0.
  // Processor time used by anything but the child and this process while it ran, as a share of
  // all processor time there was. 0 where the system does not tell.
  double foreign_share = 0;
};

ChildResult run_child(const std::vector<std::string>& command, std::chrono::milliseconds timeout);

}  // namespace ordo::bench

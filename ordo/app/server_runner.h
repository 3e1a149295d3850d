// ServerRunner: persistent workers, one ServerChild for each slot that is in use.
//
// A line whose worker died, or did not answer in time, is the one at fault and uses up an attempt;
// the lines behind it go to the next worker of the slot without being charged.
//
// Threads: as JobRunner.
// Bounds:  one child per slot; a batch is held by the caller.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "ordo/app/job_runner.h"
#include "ordo/app/server_child.h"

namespace ordo::app {

class ServerRunner final : public JobRunner {
 public:
  explicit ServerRunner(RunContext& context);
  BatchResult run(const Batch& batch) override;
  std::string finish() override;
  std::uint64_t line_cost() const override { return line_cost_.load(std::memory_order_relaxed); }

 private:
  ServerChild& child_of(std::size_t slot);
  std::size_t exchange(ServerChild& child, std::span<const Job> jobs, std::uint32_t attempts,
                       BatchResult& batch_result);
  void fail(ServerChild& child, ServerEnd end, JobResult& result) const;
  void explain(ServerEnd end);
  void learn_cost(std::chrono::nanoseconds time, std::size_t lines);

  ServerSettings settings_;
  std::mutex mutex_;  // Guards children_; a child belongs to whoever has its slot.
  std::vector<std::unique_ptr<ServerChild>> children_;
  std::atomic<std::uint64_t> line_cost_{0};
};

}  // namespace ordo::app

#include "ordo/app/batcher.h"

#include <algorithm>
#include <utility>

namespace ordo::app {
namespace {
constexpr std::uint64_t kBatchNanoseconds = 500'000;
constexpr std::size_t kBatchLinesMax = 512;
}  // namespace

std::size_t Batcher::size_for(std::uint64_t line_cost, std::size_t window, std::size_t workers) {
  if (line_cost == 0) return 1;
  const std::size_t share = std::max<std::size_t>(1, window / (2 * workers));
  const std::size_t cheap = static_cast<std::size_t>(kBatchNanoseconds / line_cost);
  return std::clamp<std::size_t>(cheap, 1, std::min(share, kBatchLinesMax));
}

void Batcher::add(Job job, std::uint64_t lane, std::deque<Batch>& ready) {
  const auto [entry, is_new] = by_lane_.try_emplace(lane, open_.size());
  if (is_new) {
    open_.emplace_back();
    open_.back().lane = lane;
    open_.back().jobs.reserve(size_);
  }
  Batch& batch = open_[entry->second];
  batch.jobs.push_back(std::move(job));
  if (batch.jobs.size() < size_) return;
  ready.push_back(std::move(batch));
  batch = Batch{};
  by_lane_.erase(entry);
  if (by_lane_.empty()) open_.clear();
}

void Batcher::flush(std::deque<Batch>& ready) {
  for (Batch& batch : open_) {
    if (!batch.jobs.empty()) ready.push_back(std::move(batch));
  }
  open_.clear();
  by_lane_.clear();
}

}  // namespace ordo::app

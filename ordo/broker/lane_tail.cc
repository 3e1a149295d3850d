#include "ordo/broker/lane_tail.h"

#include <algorithm>
#include <utility>

#include "ordo/broker/cursor_rows.h"
#include "ordo/broker/planted_bugs.h"
#include "ordo/core/check.h"

namespace ordo::broker {

bool TailPool::extend(std::uint32_t last, Offset offset) {
  if (last == kNoIndex) return false;
  Node& node = nodes_[last];
  if (node.begin == node.end) return false;
  std::uint64_t& run = node.runs[node.end - 1];
  const std::uint64_t length = run & kLengthMax;
  if ((run >> kLengthBits) + length != offset.value() || length == kLengthMax) return false;
  ++run;
  return true;
}

void TailPool::push_run(std::uint32_t& first, std::uint32_t& last, std::uint32_t& runs,
                        std::uint64_t run) {
  if (last == kNoIndex || nodes_[last].end == kNodeRuns) {
    const std::uint32_t index = nodes_.acquire();
    ++node_count_;
    nodes_[index].next = kNoIndex;
    nodes_[index].begin = nodes_[index].end = 0;
    (last == kNoIndex ? first : nodes_[last].next) = index;
    last = index;
  }
  Node& node = nodes_[last];
  node.runs[node.end++] = run;
  ++runs;
}

std::uint64_t TailPool::pop_run(std::uint32_t& first, std::uint32_t& last, std::uint32_t& runs) {
  Node& node = nodes_[first];
  const std::uint64_t run = node.runs[node.begin++];
  --runs;
  if (node.begin == node.end) {
    const std::uint32_t emptied = std::exchange(first, node.next);
    if (first == kNoIndex) last = kNoIndex;
    nodes_.release(emptied);
    --node_count_;
  }
  return run;
}

void TailPool::push(LaneTail& tail, Offset offset) {
  ORDO_CHECK(offset.value() >> (64 - kLengthBits) == 0);
  ++tail.count;
  const std::size_t front_max =
      in_memory_bytes() > bytes_max_ ? std::min<std::size_t>(chunk_runs_, kNodeRuns) : chunk_runs_;
  const bool to_back =
      tail.back_runs > 0 || tail.spilled_chunks > 0 || tail.front_runs >= front_max;
  if (extend(to_back ? tail.back_last : tail.front_last, offset)) return;
  const std::uint64_t run = (offset.value() << kLengthBits) | 1;
  if (to_back) {
    push_run(tail.back_first, tail.back_last, tail.back_runs, run);
  } else {
    push_run(tail.front_first, tail.front_last, tail.front_runs, run);
  }
}

Offset TailPool::front(const LaneTail& tail) const {
  ORDO_CHECK(tail.count > 0 && !front_is_spilled(tail));
  const Node& node = nodes_[tail.front_runs > 0 ? tail.front_first : tail.back_first];
  return Offset(node.runs[node.begin] >> kLengthBits);
}

Offset TailPool::pop(LaneTail& tail) {
  if (tail.front_runs == 0) {
    ORDO_CHECK(tail.spilled_chunks == 0 && tail.back_runs > 0);
    std::swap(tail.front_first, tail.back_first);
    std::swap(tail.front_last, tail.back_last);
    std::swap(tail.front_runs, tail.back_runs);
  }
  Node& node = nodes_[tail.front_first];
  std::uint64_t& run = node.runs[node.begin];
  const Offset offset(run >> kLengthBits);
  --tail.count;
  if ((run & kLengthMax) == 1) {
    pop_run(tail.front_first, tail.front_last, tail.front_runs);
  } else {
    run += (std::uint64_t{1} << kLengthBits) - 1;  // One on, one less.
  }
  return offset;
}

bool TailPool::wants_to_spill(const LaneTail& tail) const {
  const std::size_t bytes = in_memory_bytes();
  if (bytes <= bytes_max_) return false;
  if (tail.back_runs >= chunk_runs_) return true;
  return bytes / 2 > bytes_max_ && tail.back_runs >= std::min<std::size_t>(chunk_runs_, kNodeRuns);
}

std::vector<std::string> TailPool::spill(LaneTail& tail) {
  std::vector<std::string> chunks;
  while (tail.back_runs > 0) {
    std::string bytes;
    for (std::size_t count = 0; count < chunk_runs_ && tail.back_runs > 0; ++count)
      bytes += encode_number(pop_run(tail.back_first, tail.back_last, tail.back_runs));
    chunks.push_back(std::move(bytes));
    ++tail.spilled_chunks;
  }
  return chunks;
}

bool TailPool::refill(LaneTail& tail, std::string_view bytes) {
  ORDO_CHECK(front_is_spilled(tail));
  if (bytes.empty() || bytes.size() % 8 != 0) return false;
  if (ORDO_BUG(25)) std::swap(tail.front_first, tail.back_first);
  if (ORDO_BUG(25)) std::swap(tail.front_last, tail.back_last);
  if (ORDO_BUG(25)) std::swap(tail.front_runs, tail.back_runs);
  for (; !bytes.empty(); bytes.remove_prefix(8))
    push_run(tail.front_first, tail.front_last, tail.front_runs,
             *decode_number(bytes.substr(0, 8)));
  ++tail.spilled_first;
  --tail.spilled_chunks;
  return true;
}

void TailPool::release_list(std::uint32_t first) {
  while (first != kNoIndex) {
    const std::uint32_t next = nodes_[first].next;
    nodes_.release(first);
    --node_count_;
    first = next;
  }
}

void TailPool::clear(LaneTail& tail) {
  release_list(tail.front_first);
  release_list(tail.back_first);
  tail = LaneTail{};
}

}  // namespace ordo::broker

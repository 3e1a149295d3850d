#include "ordo/engine/token_desk.h"

#include "ordo/core/check.h"
#include "ordo/engine/caller.h"

namespace ordo {

TaskToken::TaskToken(const TaskToken& other) : desk_(other.desk_), name_(other.name_) {
  if (desk_) desk_->hold(name_);
}

TaskToken::~TaskToken() {
  if (desk_) desk_->drop(name_);
}

bool TaskToken::done() const {
  return desk_ && desk_->use(name_, nullptr);
}

bool TaskToken::fail(std::exception_ptr error) const {
  if (!desk_) return false;
  if (error == nullptr) error = std::make_exception_ptr(std::runtime_error("failed"));
  return desk_->use(name_, std::move(error));
}

bool TaskToken::fail(const std::string& why) const {
  if (!desk_) return false;
  // A statement of its own: the text is shared with a temporary, which must not outlast the call.
  std::exception_ptr error = std::make_exception_ptr(std::runtime_error(why));
  return desk_->use(name_, std::move(error));
}

namespace engine {

TokenDesk::TokenDesk(std::size_t cell_count_max, Clock& clock)
    : parker_(clock),
      cells_(std::make_unique<Cell[]>(cell_count_max)),
      cell_count_max_(static_cast<std::uint32_t>(cell_count_max)) {}

TokenName TokenDesk::open(TaskPlace place) {
  std::uint32_t index = first_free_;
  if (index != kNoIndex) {
    first_free_ = cells_[index].next;
  } else {
    ORDO_CHECK(cells_opened_ < cell_count_max_);
    index = cells_opened_++;
  }
  Cell& cell = cells_[index];
  const Word word = cell.word.load(std::memory_order_relaxed);
  ORDO_CHECK((word & kStateMask) == kFree);
  cell.place = place;
  const std::uint64_t generation = generation_of(word + (Word{1} << kGenerationShift));
  cell.word.store(generation << kGenerationShift | kTwoCopies | kOpen, std::memory_order_release);
  return {index, generation};
}

bool TokenDesk::claim(TokenName name) {
  std::atomic<Word>& word = cells_[name.cell].word;
  Word seen = word.load(std::memory_order_acquire);
  while (is_open(seen, name)) {
    if (word.compare_exchange_weak(seen, (seen & ~kStateMask) | kUsed, std::memory_order_acq_rel,
                                   std::memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

void TokenDesk::release(TokenName name) {
  Cell& cell = cells_[name.cell];
  cell.word.store(name.generation << kGenerationShift | kFree, std::memory_order_release);
  cell.next = first_free_;
  first_free_ = name.cell;
}

void TokenDesk::hold(TokenName name) {
  std::atomic<Word>& word = cells_[name.cell].word;
  Word seen = word.load(std::memory_order_acquire);
  while (is_open(seen, name)) {
    ORDO_CHECK((seen & kCopiesMask) != kCopiesMask);
    if (word.compare_exchange_weak(seen, seen + kOneCopy, std::memory_order_acq_rel,
                                   std::memory_order_acquire)) {
      return;
    }
  }
}

void TokenDesk::drop(TokenName name) noexcept {
  Cell& cell = cells_[name.cell];
  Word seen = cell.word.load(std::memory_order_acquire);
  while (is_open(seen, name)) {
    const bool is_last = (seen & kCopiesMask) == kOneCopy;
    const Word left = is_last ? (seen & ~kStateMask) | kUsed : seen - kOneCopy;
    if (!cell.word.compare_exchange_weak(seen, left, std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
      continue;
    }
    if (!is_last) return;
    cell.error = std::make_exception_ptr(TokenDropped());
    put_on_list(name.cell);
    return;
  }
}

bool TokenDesk::use(TokenName name, std::exception_ptr error) {
  if (!claim(name)) {
    late_count_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  cells_[name.cell].error = std::move(error);
  put_on_list(name.cell);
  return true;
}

void TokenDesk::put_on_list(std::uint32_t cell) {
  std::uint32_t first = first_used_.load(std::memory_order_relaxed);
  do {
    cells_[cell].next = first;
  } while (!first_used_.compare_exchange_weak(first, cell, std::memory_order_acq_rel,
                                              std::memory_order_relaxed));
  // Who runs the partition just now looks at the list before it stops.
  if (this_caller().running() != this) parker_.wake();
}

std::uint32_t TokenDesk::detach_used() {
  if (!has_used()) return kNoIndex;
  std::uint32_t cell = first_used_.exchange(kNoIndex, std::memory_order_acq_rel);
  std::uint32_t oldest = kNoIndex;
  while (cell != kNoIndex) {
    const std::uint32_t next = cells_[cell].next;
    cells_[cell].next = oldest;
    oldest = cell;
    cell = next;
  }
  return oldest;
}

}  // namespace engine
}  // namespace ordo

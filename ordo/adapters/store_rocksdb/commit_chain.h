// CommitChain: which commits a database holds, without a gap, in one row that every commit adds to.
//
// Every commit merges its number into the row. Where numbers follow each other the row is a range;
// where one is missing it says so for ever. So whatever a damaged disk makes a database forget (a
// write-ahead log, the end of a manifest and the tables it names), either the newest commits are
// gone, which the watermark shows, or commits in the middle, which this row shows.
//
//   CommitChain chain = CommitChain::one(7, next_id);
//   chain.append(CommitChain::one(8, next_id));     // 7..8
//   chain.append(CommitChain::one(10, next_id));    // 7..10, 9 is missing
//
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ordo::store_rocksdb {

struct CommitChain {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t next_id = 1;        // The message id after the last one stored.
  std::uint64_t missing_first = 0;  // 0: none is missing.
  std::uint64_t missing_last = 0;

  static CommitChain one(std::uint64_t number, std::uint64_t next_id) {
    return {.first = number, .last = number, .next_id = next_id};
  }
  // No commit, but something that stands between `newest` and the next one. Its `last` is before
  // its `first`: appended it adds nothing, and shows if `newest` is missing.
  static CommitChain none_after(const CommitChain& newest) {
    return {.first = newest.last + 1, .last = newest.last, .next_id = newest.next_id};
  }
  bool has_gap() const { return missing_first != 0; }
  void append(const CommitChain& later);
  // Of another family of the same database: what either lacks is missing.
  void join(const CommitChain& other);

  std::string encode() const;
  static std::optional<CommitChain> decode(std::string_view value);

  friend bool operator==(const CommitChain&, const CommitChain&) = default;
};

}  // namespace ordo::store_rocksdb

#include "ordo/adapters/store_rocksdb/commit_chain.h"

#include <algorithm>

#include "ordo/adapters/store_rocksdb/bytes.h"

namespace ordo::store_rocksdb {

void CommitChain::append(const CommitChain& later) {
  if (!has_gap()) {
    missing_first = later.missing_first;
    missing_last = later.missing_last;
    if (later.first != last + 1) {
      missing_first = last + 1;
      missing_last = later.first - 1;
    }
  }
  last = later.last;
  next_id = later.next_id;
}

void CommitChain::join(const CommitChain& other) {
  if (!has_gap()) {
    missing_first = other.missing_first;
    missing_last = other.missing_last;
  }
  if (!has_gap() && last != other.last) {
    missing_first = std::min(last, other.last) + 1;
    missing_last = std::max(last, other.last);
  }
  last = std::max(last, other.last);
  next_id = std::max(next_id, other.next_id);
}

std::string CommitChain::encode() const {
  std::string value;
  put(value, last);
  put(value, next_id);
  if (first == last && !has_gap()) return value;  // One commit, as every commit writes it.
  for (const std::uint64_t number : {first, missing_first, missing_last})
    put(value, number);
  return value;
}

std::optional<CommitChain> CommitChain::decode(std::string_view value) {
  ByteReader in(value);
  CommitChain chain;
  chain.last = in.take<std::uint64_t>();
  chain.next_id = in.take<std::uint64_t>();
  chain.first = chain.last;
  if (in.ended()) return chain;
  for (std::uint64_t* number : {&chain.first, &chain.missing_first, &chain.missing_last})
    *number = in.take<std::uint64_t>();
  if (!in.ended()) return std::nullopt;
  return chain;
}

}  // namespace ordo::store_rocksdb

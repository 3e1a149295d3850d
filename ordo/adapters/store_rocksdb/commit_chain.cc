#include "ordo/adapters/store_rocksdb/commit_chain.h"

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

std::string CommitChain::encode() const {
  std::string value;
  for (const std::uint64_t number : {first, last, next_id, missing_first, missing_last})
    put(value, number);
  return value;
}

std::optional<CommitChain> CommitChain::decode(std::string_view value) {
  ByteReader in(value);
  CommitChain chain;
  for (std::uint64_t* number :
       {&chain.first, &chain.last, &chain.next_id, &chain.missing_first, &chain.missing_last})
    *number = in.take<std::uint64_t>();
  if (!in.ended()) return std::nullopt;
  return chain;
}

}  // namespace ordo::store_rocksdb

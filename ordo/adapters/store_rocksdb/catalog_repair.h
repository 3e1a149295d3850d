// repair_catalog(): what of a catalog that lost rows cannot stay, and the name of all that is lost.
//
//   const CatalogRepair done = repair_catalog(recovered, known);
//   for (const broker::CatalogKey& key : done.erased) ...   // then a broker takes the rest
//
// A broker refuses a catalog in which a subscription or snapshot has no topic. The rows are told
// apart by their keys alone; a topic whose row is lost has its name only in subscriptions to it.
//
// Threads: pure functions.
// Cost:    all rows of the catalog and of cursors once.
#pragma once

#include <string>
#include <vector>

#include "ordo/broker/catalog.h"
#include "ordo/broker/store.h"

namespace ordo::store_rocksdb {

struct CatalogRepair {
  std::vector<broker::CatalogKey> erased;
  broker::CatalogCounters counters;  // Above all numbers that are seen anywhere.
  std::vector<std::string> lines;    // What is lost, by name or by number.
  std::string refusal;               // Why a broker will not take the rest; empty: it will.
};

// `topics`: numbers that are seen elsewhere: none of them is given again.
CatalogRepair repair_catalog(broker::Recovered all, const std::vector<broker::TopicNumber>& topics);

// No row of a cursor in `partition` names an offset at or above it. 1: no row names any.
broker::Offset named_below(const broker::Recovered& all, broker::PartitionAddress partition);

}  // namespace ordo::store_rocksdb

// A broker that keeps its messages in a directory.
//
//   ordo::Result<std::unique_ptr<ordo::Broker>> broker = ordo::open_broker("/var/lib/ordo");
//   if (!broker) return complain(broker.error());     // in use, damaged, or short of its watermark
//
// The directory is made if it does not exist. What each sync policy can lose: docs/broker.md.
//
// Threads: as Broker.
// Errors:  those of store_rocksdb::open_store() and Broker::open().
#pragma once

#include <memory>
#include <string>

#include "ordo/adapters/store_rocksdb/rocksdb_store.h"
#include "ordo/broker.h"

namespace ordo {

// `store.directory` is ignored; so is its clock: the broker's is used.
Result<std::unique_ptr<Broker>> open_broker(const std::string& directory,
                                            const BrokerOptions& options = {},
                                            store_rocksdb::StoreOptions store = {});

}  // namespace ordo

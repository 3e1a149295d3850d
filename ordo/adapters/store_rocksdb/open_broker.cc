#include "ordo/adapters/store_rocksdb/open_broker.h"

#include <utility>

namespace ordo {

Result<std::unique_ptr<Broker>> open_broker(const std::string& directory,
                                            const BrokerOptions& options,
                                            store_rocksdb::StoreOptions store) {
  store.directory = directory;
  store.clock = options.clock;
  Result<std::unique_ptr<broker::Store>> opened = store_rocksdb::open_store(store);
  if (!opened) return std::move(opened).error();
  return Broker::open(std::move(*opened), options);
}

}  // namespace ordo

#include "ordo/adapters/store_rocksdb/database_slot.h"

namespace ordo::store_rocksdb {

DatabaseSlot::Use DatabaseSlot::use() const {
  const std::lock_guard door(door_);
  return {std::shared_lock(mutex_), database_.get()};
}

Status DatabaseSlot::reopen(const Judge& judge) {
  const std::lock_guard door(door_);
  const std::unique_lock lock(mutex_);
  database_.reset();
  Result<std::unique_ptr<Database>> opened = Database::open(options_, Database::Mode::existing);
  if (!opened) return opened.error();
  if (Status accepted = judge(**opened); !accepted) return accepted;
  database_ = std::move(*opened);
  return {};
}

}  // namespace ordo::store_rocksdb

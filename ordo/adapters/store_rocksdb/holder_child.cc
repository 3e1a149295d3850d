// Another process that has a directory open: says "y" once it has, and lets go when its standard
// input ends. Started by refusal_test.cc; a fork of the test itself would lack the threads that
// RocksDB has started there.
#include <memory>
#include <unistd.h>

#include "ordo/adapters/store_rocksdb/rocksdb_store.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  ordo::store_rocksdb::StoreOptions options;
  options.directory = argv[1];
  const auto store = ordo::store_rocksdb::open_store(options);
  const char answer = store && (*store)->recover() ? 'y' : 'n';
  if (::write(STDOUT_FILENO, &answer, 1) != 1) return 1;
  char nothing = 0;
  static_cast<void>(::read(STDIN_FILENO, &nothing, 1));
  return 0;
}

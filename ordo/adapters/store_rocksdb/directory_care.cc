#include "ordo/adapters/store_rocksdb/directory_care.h"

#include <utility>

#include "ordo/adapters/store_rocksdb/examination.h"
#include "ordo/adapters/store_rocksdb/repair.h"

namespace ordo::store_rocksdb {

std::string usual_witness(std::string directory) {
  while (directory.size() > 1 && directory.ends_with('/'))
    directory.pop_back();
  return directory + ".witness";
}

DirectoryHealth directory_health(const std::string& directory, const std::string& witness) {
  Examination found = examine({directory, witness});
  return {std::move(found.lines), std::move(found.problems), found.is_in_use || found.is_missing};
}

Result<std::vector<std::string>> repair_directory(const std::string& directory,
                                                  const std::string& witness, bool accept_loss) {
  return repair({directory, witness}, {.accept_loss = accept_loss});
}

}  // namespace ordo::store_rocksdb

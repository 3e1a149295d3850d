#include "ordo/app/store_command.h"

#include <string>
#include <unistd.h>

#include "ordo/adapters/store_rocksdb/directory_care.h"
#include "ordo/app/config_file.h"
#include "ordo/app/host_checks.h"
#include "ordo/app/map_options.h"
#include "ordo/app/resource_text.h"
#include "ordo/app/serve_options.h"
#include "ordo/app/write_all.h"
#include "ordo/core/log.h"

namespace ordo::app {
namespace {

std::string witness_of(const StoreWords& words) {
  return words.witness.empty() ? store_rocksdb::usual_witness(words.directory) : words.witness;
}

int print(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines)
    text += line + "\n";
  return write_all(STDOUT_FILENO, text) == 0 ? 0 : kExitError;
}

// With the settings that `ordo serve` would have.
int look_at_host(const StoreWords& words) {
  CommandWords serve;
  serve.config = words.config;
  const std::string config = config_name(serve);
  const Result<Settings> settings = gather_settings(serve_rules(), "serve", serve, config);
  const Result<ServeOptions> options =
      settings ? serve_options(*settings) : Result<ServeOptions>(settings.error());
  if (!options) {
    log_line("ordo: " + options.error().message);
    return kExitError;
  }
  Table table({});
  table.add({"ok", "settings", config.empty() ? "no file; environment and defaults" : config});
  bool is_good = true;
  for (const Finding& finding : check_host(*options)) {
    table.add({grade_word(finding.grade), finding.what, finding.text});
    is_good = is_good && finding.grade != Finding::Grade::wrong;
  }
  if (!print_table(table)) return kExitError;
  return is_good ? 0 : kExitDamaged;
}

}  // namespace

int run_doctor(const StoreWords& words) {
  if (words.directory.empty()) return look_at_host(words);
  const store_rocksdb::DirectoryHealth health =
      store_rocksdb::directory_health(words.directory, witness_of(words));
  if (const int failed = print(health.lines); failed != 0) return failed;
  for (const std::string& problem : health.problems)
    log_line("ordo: " + problem);
  if (health.was_not_examined) return kExitError;
  if (!health.problems.empty()) return kExitDamaged;
  return print({"healthy: everything that was acknowledged is there"});
}

int run_repair(const StoreWords& words) {
  const Result<std::vector<std::string>> done =
      store_rocksdb::repair_directory(words.directory, witness_of(words), words.accept_loss);
  if (done) return print(*done);
  log_line("ordo: " + done.error().message);
  return done.error().code == ErrorCode::failed_precondition ? kExitDamaged : kExitError;
}

}  // namespace ordo::app

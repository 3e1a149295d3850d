#include "ordo/app/find_program.h"

#include <cerrno>
#include <string_view>
#include <unistd.h>

#include <sys/stat.h>

namespace ordo::app {
namespace {

enum class Found { runnable, not_runnable, directory, nothing };

Found look_at(const std::string& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return Found::nothing;
  if (S_ISDIR(info.st_mode)) return Found::directory;
  return ::access(file.c_str(), X_OK) == 0 ? Found::runnable : Found::not_runnable;
}

Result<std::string> find_file(const std::string& name) {
  switch (look_at(name)) {
    case Found::runnable:
      return name;
    case Found::nothing:
      return Error{ErrorCode::not_found, "there is no command '" + name + "'; check the path"};
    case Found::directory:
      return Error{ErrorCode::failed_precondition, "'" + name + "' is a directory, not a command"};
    case Found::not_runnable:
      break;
  }
  return Error{ErrorCode::failed_precondition,
               "'" + name + "' may not be executed; try: chmod +x " + name};
}

bool has_shell_signs(std::string_view name) {
  return name.find_first_of(" \t|&;<>$`\"'()") != std::string_view::npos;
}

}  // namespace

Result<std::string> find_program(const std::string& name, const char* path) {
  if (name.empty()) return Error{ErrorCode::not_found, "the command is empty; name one after --"};
  if (name.find('/') != std::string::npos) return find_file(name);
  std::string blocked;
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (true) {
    const std::size_t colon = rest.find(':');
    const std::string folder(rest.substr(0, colon));
    std::string file = (folder.empty() ? "." : folder) + "/" + name;
    const Found found = look_at(file);
    if (found == Found::runnable) return file;
    if (found == Found::not_runnable) blocked = file;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (!blocked.empty()) return find_file(blocked);
  return Error{ErrorCode::not_found,
               "there is no command '" + name + "' in PATH; " +
                   (has_shell_signs(name) ? "for a line of shell add --shell"
                                          : "check the spelling, or give its path")};
}

}  // namespace ordo::app

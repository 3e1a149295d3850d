#include "bench/wire/process_tree.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace ordo::bench {
namespace {

struct Process {
  int id = 0;
  int parent = 0;
  std::uint64_t ticks = 0;
};

// False: it has ended meanwhile.
bool read_process(const std::string& id, Process& process) {
  std::ifstream file("/proc/" + id + "/stat");
  std::string line;
  if (!std::getline(file, line)) return false;
  // The name, in brackets, may hold anything.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream fields(line.substr(name_end + 2));
  std::string state;
  fields >> state >> process.parent;
  std::uint64_t skipped = 0;
  for (int field = 5; field <= 13; ++field)
    fields >> skipped;
  std::uint64_t ticks = 0;
  for (int field = 14; field <= 17; ++field) {  // utime, stime, cutime, cstime
    fields >> ticks;
    process.ticks += ticks;
  }
  std::from_chars(id.data(), id.data() + id.size(), process.id);
  return !fields.fail();
}

std::vector<Process> all_processes() {
  std::vector<Process> processes;
  std::error_code ended;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ended)) {
    const std::string name = entry.path().filename();
    Process process;
    if (name.find_first_not_of("0123456789") == std::string::npos && read_process(name, process))
      processes.push_back(process);
  }
  return processes;
}

}  // namespace

std::uint64_t tree_cpu_ns(int root) {
  if (root <= 0) return 0;
  const std::vector<Process> processes = all_processes();
  std::vector<int> tree = {root};
  std::uint64_t ticks = 0;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    for (const Process& process : processes) {
      if (process.id == tree[i]) ticks += process.ticks;
      if (process.parent == tree[i]) tree.push_back(process.id);
    }
  }
  return ticks * (1'000'000'000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK)));
}

}  // namespace ordo::bench

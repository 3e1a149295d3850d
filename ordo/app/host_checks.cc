#include "ordo/app/host_checks.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <unistd.h>

#include <sys/resource.h>

#include "ordo/adapters/grpc_client/channel.h"
#include "ordo/adapters/store_rocksdb/directory_care.h"

namespace ordo::app {
namespace {

namespace fs = std::filesystem;
using Grade = Finding::Grade;

// The folder itself, or the first above it that exists: where it would be made.
fs::path nearest_folder(const std::string& directory) {
  std::error_code error;
  fs::path path = fs::absolute(directory, error);
  while (!path.empty() && path != path.root_path() && !fs::exists(path, error))
    path = path.parent_path();
  return path;
}

Finding check_disk(const ServeOptions& options) {
  constexpr std::uint64_t kLittle = std::uint64_t{1} << 30;
  const fs::path folder = nearest_folder(options.data);
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error)
    return {Grade::wrong, "disk", "cannot look at " + folder.string() + ": " + error.message()};
  const std::string text = rough_size(space.available) + " free of " + rough_size(space.capacity) +
                           " at " + options.data;
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return {Grade::wrong, "disk",
            options.data + " cannot be written: " + ::strerrordesc_np(errno) +
                "; give it to this user, or choose another with --data"};
  }
  if (space.available < kLittle)
    return {Grade::odd, "disk", text + ": publishers are refused when it is full"};
  return {Grade::ok, "disk", text};
}

Finding check_memory(const ServeOptions& options) {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return {Grade::odd, "memory", "the system does not say"};
  const auto all = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
  const std::string text =
      rough_size(all) + ", and the broker may take " + rough_size(options.memory_max);
  if (options.memory_max > all)
    return {Grade::odd, "memory", text + "; lower --memory, or it may be ended by the system"};
  return {Grade::ok, "memory", text};
}

Finding check_files(const ServeOptions& options) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return {Grade::odd, "files", "the system does not say"};
  const std::uint64_t need = options.connections_max + serve_own_files();
  const std::string text = "up to " + std::to_string(limit.rlim_max) + " open files";
  if (limit.rlim_max < need) {
    return {Grade::odd, "files",
            text + ", and " + std::to_string(options.connections_max) + " connections need " +
                std::to_string(need) + "; raise 'ulimit -Hn', or lower --max-connections"};
  }
  return {Grade::ok, "files", text};
}

// What a broker answers to a question about its health; nothing: nobody does.
std::optional<bool> is_serving(const HostPort& at) {
  auto channel = grpc_client::Channel::connect({at.host, at.port});
  if (!channel) return std::nullopt;
  const Result<std::string> answer =
      (*channel)->call("/grpc.health.v1.Health/Check", "", std::chrono::seconds(5));
  if (!answer) return std::nullopt;
  return *answer == "\x08\x01";  // status = SERVING
}

Finding check_port(const ServeOptions& options, bool& has_broker) {
  const std::string at = options.listen.text();
  const std::string holder = listener_of(options.listen.port);
  if (const std::optional<bool> serves = is_serving(options.listen)) {
    has_broker = true;
    if (*serves) return {Grade::ok, "broker", "one answers at " + at};
    return {Grade::odd, "broker", "the one at " + at + " is starting or stopping"};
  }
  const auto taken = grpc_client::Channel::connect({options.listen.host, options.listen.port});
  if (!taken) return {Grade::ok, "port", at + " is free"};
  return {Grade::wrong, "port",
          at + " is taken" + (holder.empty() ? "" : " by " + holder) +
              ", which is no broker; choose another with --listen"};
}

Finding check_data(const ServeOptions& options, bool has_broker) {
  std::error_code error;
  if (!fs::exists(options.data, error))
    return {Grade::ok, "data", options.data + " does not exist; it will be made"};
  const store_rocksdb::DirectoryHealth health =
      store_rocksdb::directory_health(options.data, store_rocksdb::usual_witness(options.data));
  if (health.problems.empty())
    return {Grade::ok, "data", options.data + ": everything that was acknowledged is there"};
  if (health.was_not_examined && has_broker)
    return {Grade::ok, "data", options.data + " is in use, and was not looked at"};
  return {health.was_not_examined ? Grade::odd : Grade::wrong, "data",
          health.problems.front() + "; see 'ordo doctor " + options.data + "'"};
}

}  // namespace

const char* grade_word(Grade grade) {
  constexpr std::array<const char*, 3> kWords = {"ok", "odd", "wrong"};
  return kWords[static_cast<std::size_t>(grade)];
}

std::string rough_size(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= 1024 && unit + 1 < kUnits.size(); ++unit)
    size /= 1024;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f%s" : "%.1f%s", size, kUnits[unit]);
  return text.data();
}

std::vector<Finding> check_host(const ServeOptions& options) {
  bool has_broker = false;
  std::vector<Finding> findings = {check_disk(options), check_memory(options), check_files(options),
                                   check_port(options, has_broker)};
  findings.push_back(check_data(options, has_broker));
  return findings;
}

}  // namespace ordo::app

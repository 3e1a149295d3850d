#include "ordo/broker/resource_name.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "ordo/core/utf8.h"

namespace ordo::broker {
namespace {

constexpr std::string_view kProjects = "projects/";

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_id(std::string_view id) {
  constexpr std::string_view kOthers = "-_.~+%";
  if (id.size() < 3 || id.size() > 255 || !is_letter(id[0]) || id.starts_with("goog")) return false;
  return std::all_of(id.begin(), id.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || kOthers.find(c) != std::string_view::npos;
  });
}

// A project is part of stored names and of messages for people.
bool is_project(std::string_view project) {
  constexpr std::size_t kBytesMax = 255;
  return !project.empty() && project.size() <= kBytesMax &&
         project.find('/') == std::string_view::npos && is_utf8(project) &&
         std::none_of(project.begin(), project.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

Error invalid_name(std::string_view name) {
  constexpr std::size_t kShownMax = 600;
  std::string shown(name.substr(0, kShownMax));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < 0x20 || c == 0x7f; }, '?');
  if (name.size() > kShownMax) shown += "...";
  return Error{ErrorCode::invalid_argument,
               "Invalid resource name given (name=" + shown +
                   "). Refer to https://cloud.google.com/pubsub/docs/admin#resource_names for more "
                   "information."};
}

}  // namespace

std::string_view collection_name(Collection collection) {
  constexpr std::array<std::string_view, 3> kNames = {"topics", "subscriptions", "snapshots"};
  return kNames[static_cast<std::size_t>(collection)];
}

Result<ResourceName> ResourceName::parse(std::string_view text, Collection collection) {
  if (!text.starts_with(kProjects)) return invalid_name(text);
  const std::string_view rest = text.substr(kProjects.size());
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return invalid_name(text);
  const std::string_view kind = collection_name(collection);
  const std::string_view tail = rest.substr(slash + 1);
  if (!tail.starts_with(kind) || tail.substr(kind.size(), 1) != "/") return invalid_name(text);
  const ResourceName name{rest.substr(0, slash), tail.substr(kind.size() + 1)};
  if (!is_project(name.project) || !is_id(name.id)) return invalid_name(text);
  return name;
}

Result<std::string_view> parse_project_name(std::string_view text) {
  if (!text.starts_with(kProjects) || !is_project(text.substr(kProjects.size()))) {
    return invalid_name(text);
  }
  return text.substr(kProjects.size());
}

std::string resource_name(std::string_view project, Collection collection, std::string_view id) {
  std::string name(kProjects);
  name += project;
  name += '/';
  name += collection_name(collection);
  name += '/';
  name += id;
  return name;
}

std::string_view id_of(std::string_view name) {
  return name.substr(name.rfind('/') + 1);
}

}  // namespace ordo::broker

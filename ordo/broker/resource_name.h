// ResourceName: projects/{project}/topics/{id}, and the rules for such names.
//
//   const Result<ResourceName> name = ResourceName::parse(text, Collection::topics);
//   if (!name) return name.error();
//   name->project, name->id
//
// An id has 3 to 255 of the characters A-Z a-z 0-9 - _ . ~ + %, begins with a letter, and not with
// "goog". A project is anything without a slash, but not empty.
//
// Threads: pure functions; a name is a view of the text it was parsed from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ordo/core/result.h"

namespace ordo::broker {

enum class Collection : std::uint8_t { topics, subscriptions, snapshots };

// "topics", ...
std::string_view collection_name(Collection collection);

// What the topic of a subscription is called once it has been deleted. No topic can have this name.
inline constexpr std::string_view kDeletedTopic = "_deleted-topic_";

struct ResourceName {
  std::string_view project;
  std::string_view id;

  // The service's words, with the name that was given: invalid_argument.
  static Result<ResourceName> parse(std::string_view text, Collection collection);
};

// "projects/{project}", as lists are asked for. Gives the project.
Result<std::string_view> parse_project_name(std::string_view text);

std::string resource_name(std::string_view project, Collection collection, std::string_view id);

// The part after the last slash.
std::string_view id_of(std::string_view name);

}  // namespace ordo::broker

// The answers that all calls of the catalog share: errors in the service's words, and pages.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "ordo/broker/catalog.h"
#include "ordo/broker/resource_name.h"
#include "ordo/core/result.h"

namespace ordo::broker {

inline Error not_found(std::string_view name) {
  return Error{ErrorCode::not_found,
               "Resource not found (resource=" + std::string(id_of(name)) + ")."};
}

inline Error already_exists(std::string_view name) {
  return Error{ErrorCode::already_exists, "Resource already exists in the project (resource=" +
                                              std::string(id_of(name)) + ")."};
}

inline Error too_many(std::string_view what, std::size_t most) {
  return Error{ErrorCode::resource_exhausted, "There are " + std::to_string(most) + " " +
                                                  std::string(what) +
                                                  " already, which is the maximum"};
}

// Of an update: `request` "UpdateTopicRequest", `resource` "Topic".
inline Error empty_mask(std::string_view request) {
  return Error{ErrorCode::invalid_argument,
               "The update_mask in the " + std::string(request) +
                   " must be set, and must contain a non-empty paths list."};
}

inline Error not_mutable(std::string_view request, std::string_view resource,
                         std::string_view field) {
  return Error{ErrorCode::invalid_argument, "Invalid update_mask provided in the " +
                                                std::string(request) + ": the " +
                                                std::string(field) + " field in the " +
                                                std::string(resource) + " is not mutable."};
}

inline Error unknown_field(std::string_view request, std::string_view resource,
                           std::string_view field) {
  return Error{ErrorCode::invalid_argument,
               "Invalid update_mask provided in the " + std::string(request) + ": " +
                   std::string(field) + " is not a known " + std::string(resource) +
                   " field. Note that field paths must be of the form 'push_config' rather than "
                   "'pushConfig'."};
}

// What a list is asked for: names that begin with `prefix`, at most `size` of them (0 and below:
// all) behind `token`, the last name of the page before.
struct PageRequest {
  std::string prefix;
  int size = 0;
  std::string_view token;
};

// A page of the entries of a sorted map, those that are `wanted`. An unknown token gives an empty
// one.
template <class Item, class Entries, class Wanted, class MakeItem>
Page<Item> page_of(const Entries& entries, const PageRequest& request, Wanted wanted,
                   MakeItem make_item) {
  Page<Item> page;
  if (!request.token.empty() && !request.token.starts_with(request.prefix)) return page;
  auto at = request.token.empty() ? entries.lower_bound(request.prefix)
                                  : entries.upper_bound(request.token);
  std::string_view last;
  for (; at != entries.end() && at->first.starts_with(request.prefix); ++at) {
    if (!wanted(at->second)) continue;
    if (request.size > 0 && page.items.size() == static_cast<std::size_t>(request.size)) {
      page.next_page_token = last;
      break;
    }
    page.items.push_back(make_item(*at));
    last = at->first;
  }
  return page;
}

}  // namespace ordo::broker

#include <utility>

#include "ordo/broker/catalog.h"
#include "ordo/broker/catalog_answers.h"
#include "ordo/broker/resource_name.h"

namespace ordo::broker {
namespace {

constexpr std::size_t kPolicyBytesMax = 65'536;

}  // namespace

Result<CatalogChange> Catalog::set_policy(std::string_view resource, std::string policy) {
  if (Status checked = check_resource(resource); !checked) return std::move(checked).error();
  if (policy.size() > kPolicyBytesMax) {
    return Error{ErrorCode::invalid_argument, "The policy has " + std::to_string(policy.size()) +
                                                  " bytes; allowed: up to " +
                                                  std::to_string(kPolicyBytesMax)};
  }
  CatalogChange change = begin(std::string(resource));
  edit(change, PolicyEdit{std::string(resource), std::move(policy)});
  return change;
}

Result<std::string> Catalog::get_policy(std::string_view resource) const {
  if (Status checked = check_resource(resource); !checked) return std::move(checked).error();
  const auto found = policies_.find(resource);
  return found == policies_.end() ? std::string() : found->second;
}

void Catalog::forget_policy(CatalogChange& change, std::string_view resource) {
  if (policies_.contains(resource)) edit(change, PolicyEdit{std::string(resource), {}});
}

// A topic, subscription or snapshot of this name is there.
Status Catalog::check_resource(std::string_view name) const {
  if (ResourceName::parse(name, Collection::subscriptions)) {
    if (find_subscription(name) == nullptr) return not_found(name);
  } else if (ResourceName::parse(name, Collection::snapshots)) {
    if (find_snapshot(name) == nullptr) return not_found(name);
  } else if (const auto parsed = ResourceName::parse(name, Collection::topics); !parsed) {
    return parsed.error();
  } else if (find_topic(name) == nullptr) {
    return not_found(name);
  }
  return {};
}

}  // namespace ordo::broker

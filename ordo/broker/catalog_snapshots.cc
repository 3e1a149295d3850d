#include <algorithm>
#include <utility>

#include "ordo/broker/catalog.h"
#include "ordo/broker/catalog_answers.h"
#include "ordo/broker/config_rules.h"
#include "ordo/broker/resource_name.h"

namespace ordo::broker {
namespace {

constexpr std::string_view kUpdate = "UpdateSnapshotRequest";
constexpr std::string_view kSnapshot = "Snapshot";
constexpr std::chrono::hours kLifeMax(7 * 24);
constexpr std::chrono::hours kLifeMin(1);

Status check_name(std::string_view name) {
  const Result<ResourceName> parsed = ResourceName::parse(name, Collection::snapshots);
  if (!parsed) return parsed.error();
  return {};
}

}  // namespace

Result<CursorPlan> Catalog::plan_snapshot(std::string_view name, std::string_view subscription) {
  if (Status named = check_name(name); !named) return named.error();
  const Result<CatalogSubscription> found = get_attached(subscription);
  if (!found) return found.error();
  if (find_snapshot(name) != nullptr) return already_exists(name);
  if (topics_.at(found->topic).is_deleted) {
    return Error{ErrorCode::failed_precondition,
                 "The topic of the subscription is deleted (resource=" +
                     std::string(id_of(subscription)) + ")."};
  }
  if (snapshots_.size() >= options_.snapshots_max) {
    return too_many("snapshots", options_.snapshots_max);
  }
  return CursorPlan{found->topic, partitions_of(found->topic), found->number,
                    CursorNumber(counters_.next_cursor++)};
}

Result<CatalogChange> Catalog::create_snapshot(SnapshotConfig config, const CursorPlan& plan,
                                               WallTime oldest_unacked, WallTime now) {
  if (Status named = check_name(config.name); !named) return named.error();
  if (find_snapshot(config.name) != nullptr) return already_exists(config.name);
  if (Status checked = check_labels(config.labels); !checked) return checked.error();
  const auto topic = topics_.find(plan.topic);
  if (topic == topics_.end() || topic->second.is_deleted) {
    return Error{ErrorCode::not_found, "The topic was deleted while the snapshot was taken"};
  }
  // The longer its oldest message has waited, the sooner it ends.
  config.expire_time = std::min(oldest_unacked, now) + kLifeMax;
  if (config.expire_time - now < kLifeMin) {
    return Error{ErrorCode::failed_precondition,
                 "The snapshot would expire in less than 1 hour: the oldest unacknowledged message "
                 "of the subscription is too old"};
  }
  config.topic = topic->second.config.name;
  CatalogChange change = begin(config.name);
  edit(change, CatalogSnapshot{plan.snapshot, plan.topic, std::move(config)});
  put_counters(change);
  return change;
}

Result<CatalogChange> Catalog::update_snapshot(const SnapshotConfig& config, const UpdateMask& mask,
                                               WallTime now) {
  if (Status named = check_name(config.name); !named) return named.error();
  const CatalogSnapshot* found = find_snapshot(config.name);
  if (found == nullptr) return not_found(config.name);
  if (mask.empty()) return empty_mask(kUpdate);
  CatalogSnapshot snapshot = *found;
  for (const std::string& path : mask) {
    if (path == "name" || path == "topic") return not_mutable(kUpdate, kSnapshot, path);
    if (path == "labels") {
      snapshot.config.labels = config.labels;
    } else if (path == "expire_time") {
      snapshot.config.expire_time = config.expire_time;
    } else {
      return unknown_field(kUpdate, kSnapshot, path);
    }
  }
  if (Status checked = check_labels(snapshot.config.labels); !checked) return checked.error();
  if (snapshot.config.expire_time != found->config.expire_time &&
      (snapshot.config.expire_time <= now || snapshot.config.expire_time > now + kLifeMax)) {
    return Error{ErrorCode::invalid_argument,
                 "expire_time of a snapshot must be in the future, by 7 days at most"};
  }
  CatalogChange change = begin(config.name);
  edit(change, std::move(snapshot));
  return change;
}

Result<CatalogChange> Catalog::delete_snapshot(std::string_view name) {
  if (Status named = check_name(name); !named) return named.error();
  const CatalogSnapshot* found = find_snapshot(name);
  if (found == nullptr) return not_found(name);
  CatalogChange change = begin(std::string(name));
  change.before.emplace_back(
      DropSnapshotOfAll{found->topic, partitions_of(found->topic), found->number});
  release_topic(change, found->topic, found->number);
  forget_policy(change, name);
  edit(change, EraseSnapshotEdit{std::string(name)});
  return change;
}

Result<CatalogSnapshot> Catalog::get_snapshot(std::string_view name) const {
  if (Status named = check_name(name); !named) return named.error();
  const CatalogSnapshot* snapshot = find_snapshot(name);
  if (snapshot == nullptr) return not_found(name);
  return *snapshot;
}

Result<Page<SnapshotConfig>> Catalog::list_snapshots(std::string_view project, int page_size,
                                                     std::string_view page_token) const {
  const Result<std::string_view> id = parse_project_name(project);
  if (!id) return id.error();
  return page_of<SnapshotConfig>(
      snapshots_, {resource_name(*id, Collection::snapshots, ""), page_size, page_token},
      [](const CatalogSnapshot&) { return true; },
      [](const auto& entry) { return entry.second.config; });
}

Result<CursorPlan> Catalog::plan_seek(std::string_view subscription,
                                      std::string_view snapshot) const {
  const Result<CatalogSubscription> found = get_attached(subscription);
  if (!found) return found.error();
  CursorPlan plan{found->topic, partitions_of(found->topic), found->number, CursorNumber()};
  if (snapshot.empty()) return plan;
  const Result<CatalogSnapshot> target = get_snapshot(snapshot);
  if (!target) return target.error();
  if (target->topic != found->topic) {
    return Error{ErrorCode::failed_precondition,
                 "The snapshot is of another topic than the subscription (resource=" +
                     std::string(id_of(snapshot)) + ")."};
  }
  plan.snapshot = target->number;
  return plan;
}

}  // namespace ordo::broker

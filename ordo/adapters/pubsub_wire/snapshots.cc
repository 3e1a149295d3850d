// Snapshots: create, update, get, list, delete; and seeking, to one or to a time.
#include <utility>

#include <google/protobuf/empty.pb.h>

#include "ordo/adapters/pubsub_wire/catalog_call.h"
#include "ordo/adapters/pubsub_wire/groups.h"
#include "ordo/adapters/pubsub_wire/resources.h"

namespace ordo::pubsub_wire {
namespace {

using google::protobuf::Empty;

Result<v1::Snapshot> shown(Result<broker::SnapshotConfig> config) {
  if (!config) return std::move(config).error();
  return resource_of(*config);
}

Result<v1::Snapshot> create_snapshot(ServiceCore& core, const v1::CreateSnapshotRequest& request) {
  broker::SnapshotConfig config;
  config.name = request.name();
  config.labels = {request.labels().begin(), request.labels().end()};
  return shown(core.broker().create_snapshot(std::move(config), request.subscription()));
}

Result<v1::Snapshot> update_snapshot(ServiceCore& core, const v1::UpdateSnapshotRequest& request) {
  Masked<v1::Snapshot> update = masked(request);
  Result<broker::SnapshotConfig> config = config_of(update.resource);
  if (!config) return std::move(config).error();
  return shown(core.broker().update_snapshot(std::move(*config), std::move(update.mask)));
}

Result<v1::Snapshot> get_snapshot(ServiceCore& core, const v1::GetSnapshotRequest& request) {
  return shown(core.broker().get_snapshot(request.snapshot()));
}

Result<v1::ListSnapshotsResponse> list_snapshots(ServiceCore& core,
                                                 const v1::ListSnapshotsRequest& request) {
  Result<broker::Page<broker::SnapshotConfig>> page =
      core.broker().list_snapshots(request.project(), request.page_size(), request.page_token());
  if (!page) return std::move(page).error();
  v1::ListSnapshotsResponse response;
  for (const broker::SnapshotConfig& config : page->items)
    *response.add_snapshots() = resource_of(config);
  response.set_next_page_token(std::move(page->next_page_token));
  return response;
}

Result<Empty> delete_snapshot(ServiceCore& core, const v1::DeleteSnapshotRequest& request) {
  if (Status deleted = core.broker().delete_snapshot(request.snapshot()); !deleted)
    return std::move(deleted).error();
  return Empty();
}

Status seek_to_target(Broker& broker, const v1::SeekRequest& request) {
  switch (request.target_case()) {
    case v1::SeekRequest::kTime: {
      const Result<WallTime> time = time_of(request.time());
      if (!time) return time.error();
      return broker.seek(request.subscription(), *time);
    }
    case v1::SeekRequest::kSnapshot:
      return broker.seek(request.subscription(), request.snapshot());
    case v1::SeekRequest::TARGET_NOT_SET:
      break;
  }
  return Error{ErrorCode::invalid_argument,
               "No target was specified in the SeekRequest: set time or snapshot."};
}

Result<v1::SeekResponse> seek(ServiceCore& core, const v1::SeekRequest& request) {
  if (Status sought = seek_to_target(core.broker(), request); !sought)
    return std::move(sought).error();
  return v1::SeekResponse();
}

}  // namespace

void add_snapshot_calls(Methods& methods, const CorePtr& core) {
  const std::string subscriber = "/google.pubsub.v1.Subscriber/";
  add_catalog_call(methods, core, subscriber + "CreateSnapshot", create_snapshot);
  add_catalog_call(methods, core, subscriber + "UpdateSnapshot", update_snapshot);
  add_catalog_call(methods, core, subscriber + "GetSnapshot", get_snapshot);
  add_catalog_call(methods, core, subscriber + "ListSnapshots", list_snapshots);
  add_catalog_call(methods, core, subscriber + "DeleteSnapshot", delete_snapshot);
  add_catalog_call(methods, core, subscriber + "Seek", seek);
}

}  // namespace ordo::pubsub_wire

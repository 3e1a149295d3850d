// Topics: create, update, get, list, delete; what depends on one; detaching.
#include <utility>

#include <google/protobuf/empty.pb.h>

#include "ordo/adapters/pubsub_wire/catalog_call.h"
#include "ordo/adapters/pubsub_wire/groups.h"
#include "ordo/adapters/pubsub_wire/resources.h"

namespace ordo::pubsub_wire {
namespace {

using google::protobuf::Empty;

Result<v1::Topic> shown(Result<broker::TopicConfig> config) {
  if (!config) return std::move(config).error();
  return resource_of(*config);
}

Result<v1::Topic> create_topic(ServiceCore& core, const v1::Topic& request) {
  Result<broker::TopicConfig> config = config_of(request);
  if (!config) return std::move(config).error();
  return shown(core.broker().create_topic(std::move(*config)));
}

Result<v1::Topic> update_topic(ServiceCore& core, const v1::UpdateTopicRequest& request) {
  Masked<v1::Topic> update = masked(request);
  Result<broker::TopicConfig> config = config_of(update.resource);
  if (!config) return std::move(config).error();
  if (update.mask.empty() && !update.is_empty)
    return shown(core.broker().get_topic(request.topic().name()));
  return shown(core.broker().update_topic(std::move(*config), std::move(update.mask)));
}

Result<v1::Topic> get_topic(ServiceCore& core, const v1::GetTopicRequest& request) {
  return shown(core.broker().get_topic(request.topic()));
}

Result<v1::ListTopicsResponse> list_topics(ServiceCore& core,
                                           const v1::ListTopicsRequest& request) {
  Result<broker::Page<broker::TopicConfig>> page =
      core.broker().list_topics(request.project(), request.page_size(), request.page_token());
  if (!page) return std::move(page).error();
  v1::ListTopicsResponse response;
  for (const broker::TopicConfig& config : page->items)
    *response.add_topics() = resource_of(config);
  response.set_next_page_token(std::move(page->next_page_token));
  return response;
}

Result<v1::ListTopicSubscriptionsResponse> list_topic_subscriptions(
    ServiceCore& core, const v1::ListTopicSubscriptionsRequest& request) {
  Result<broker::Page<std::string>> page = core.broker().list_topic_subscriptions(
      request.topic(), request.page_size(), request.page_token());
  if (!page) return std::move(page).error();
  v1::ListTopicSubscriptionsResponse response;
  for (std::string& name : page->items)
    response.add_subscriptions(std::move(name));
  response.set_next_page_token(std::move(page->next_page_token));
  return response;
}

Result<v1::ListTopicSnapshotsResponse> list_topic_snapshots(
    ServiceCore& core, const v1::ListTopicSnapshotsRequest& request) {
  Result<broker::Page<std::string>> page = core.broker().list_topic_snapshots(
      request.topic(), request.page_size(), request.page_token());
  if (!page) return std::move(page).error();
  v1::ListTopicSnapshotsResponse response;
  for (std::string& name : page->items)
    response.add_snapshots(std::move(name));
  response.set_next_page_token(std::move(page->next_page_token));
  return response;
}

Result<Empty> delete_topic(ServiceCore& core, const v1::DeleteTopicRequest& request) {
  if (Status deleted = core.broker().delete_topic(request.topic()); !deleted)
    return std::move(deleted).error();
  return Empty();
}

Result<v1::DetachSubscriptionResponse> detach_subscription(
    ServiceCore& core, const v1::DetachSubscriptionRequest& request) {
  if (Status detached = core.broker().detach_subscription(request.subscription()); !detached)
    return std::move(detached).error();
  return v1::DetachSubscriptionResponse();
}

}  // namespace

void add_topic_calls(Methods& methods, const CorePtr& core) {
  const std::string publisher = "/google.pubsub.v1.Publisher/";
  add_catalog_call(methods, core, publisher + "CreateTopic", create_topic);
  add_catalog_call(methods, core, publisher + "UpdateTopic", update_topic);
  add_catalog_call(methods, core, publisher + "GetTopic", get_topic);
  add_catalog_call(methods, core, publisher + "ListTopics", list_topics);
  add_catalog_call(methods, core, publisher + "ListTopicSubscriptions", list_topic_subscriptions);
  add_catalog_call(methods, core, publisher + "ListTopicSnapshots", list_topic_snapshots);
  add_catalog_call(methods, core, publisher + "DeleteTopic", delete_topic);
  add_catalog_call(methods, core, publisher + "DetachSubscription", detach_subscription);
}

}  // namespace ordo::pubsub_wire

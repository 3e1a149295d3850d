// Subscriptions: create, update, get, list, delete; to push and back to pull.
#include <map>
#include <utility>

#include <google/protobuf/empty.pb.h>

#include "ordo/adapters/pubsub_wire/catalog_call.h"
#include "ordo/adapters/pubsub_wire/groups.h"
#include "ordo/adapters/pubsub_wire/resources.h"
#include "ordo/broker/resource_name.h"

namespace ordo::pubsub_wire {
namespace {

using google::protobuf::Empty;

// How long topics keep their messages, asked once each.
class TopicRetentions {
 public:
  explicit TopicRetentions(Broker& broker) : broker_(broker) {}

  std::optional<std::chrono::nanoseconds> of(const std::string& topic) {
    if (topic == broker::kDeletedTopic) return std::nullopt;
    const auto known = known_.find(topic);
    if (known != known_.end()) return known->second;
    const Result<broker::TopicConfig> config = broker_.get_topic(topic);
    const auto retention = config ? config->retention : std::nullopt;
    known_.emplace(topic, retention);
    return retention;
  }

 private:
  Broker& broker_;
  std::map<std::string, std::optional<std::chrono::nanoseconds>> known_;
};

Result<v1::Subscription> shown(ServiceCore& core, Result<broker::SubscriptionConfig> config) {
  if (!config) return std::move(config).error();
  return resource_of(*config, TopicRetentions(core.broker()).of(config->topic));
}

Result<v1::Subscription> create_subscription(ServiceCore& core, const v1::Subscription& request) {
  Result<broker::SubscriptionConfig> config = config_of(request);
  if (!config) return std::move(config).error();
  return shown(core, core.broker().create_subscription(std::move(*config)));
}

Result<v1::Subscription> update_subscription(ServiceCore& core,
                                             const v1::UpdateSubscriptionRequest& request) {
  Masked<v1::Subscription> update = masked(request);
  Result<broker::SubscriptionConfig> config = config_of(update.resource);
  if (!config) return std::move(config).error();
  if (update.mask.empty() && !update.is_empty)
    return shown(core, core.broker().get_subscription(request.subscription().name()));
  return shown(core, core.broker().update_subscription(std::move(*config), std::move(update.mask)));
}

Result<v1::Subscription> get_subscription(ServiceCore& core,
                                          const v1::GetSubscriptionRequest& request) {
  return shown(core, core.broker().get_subscription(request.subscription()));
}

Result<v1::ListSubscriptionsResponse> list_subscriptions(
    ServiceCore& core, const v1::ListSubscriptionsRequest& request) {
  Result<broker::Page<broker::SubscriptionConfig>> page = core.broker().list_subscriptions(
      request.project(), request.page_size(), request.page_token());
  if (!page) return std::move(page).error();
  TopicRetentions retentions(core.broker());
  v1::ListSubscriptionsResponse response;
  for (const broker::SubscriptionConfig& config : page->items)
    *response.add_subscriptions() = resource_of(config, retentions.of(config.topic));
  response.set_next_page_token(std::move(page->next_page_token));
  return response;
}

Result<Empty> delete_subscription(ServiceCore& core, const v1::DeleteSubscriptionRequest& request) {
  if (Status deleted = core.broker().delete_subscription(request.subscription()); !deleted)
    return std::move(deleted).error();
  return Empty();
}

// Without an endpoint: back to pull.
Result<Empty> modify_push_config(ServiceCore& core, const v1::ModifyPushConfigRequest& request) {
  v1::Subscription changed;
  changed.set_name(request.subscription());
  *changed.mutable_push_config() = request.push_config();
  Result<broker::SubscriptionConfig> config = config_of(changed);
  if (!config) return std::move(config).error();
  if (auto updated = core.broker().update_subscription(std::move(*config), {"push_config"});
      !updated)
    return std::move(updated).error();
  return Empty();
}

}  // namespace

void add_subscription_calls(Methods& methods, const CorePtr& core) {
  const std::string subscriber = "/google.pubsub.v1.Subscriber/";
  add_catalog_call(methods, core, subscriber + "CreateSubscription", create_subscription);
  add_catalog_call(methods, core, subscriber + "UpdateSubscription", update_subscription);
  add_catalog_call(methods, core, subscriber + "GetSubscription", get_subscription);
  add_catalog_call(methods, core, subscriber + "ListSubscriptions", list_subscriptions);
  add_catalog_call(methods, core, subscriber + "DeleteSubscription", delete_subscription);
  add_catalog_call(methods, core, subscriber + "ModifyPushConfig", modify_push_config);
}

}  // namespace ordo::pubsub_wire

#include "ordo/adapters/pubsub_wire/service.h"

#include "ordo/adapters/pubsub_wire/groups.h"
#include "ordo/adapters/pubsub_wire/service_core.h"

namespace ordo::pubsub_wire {

Service::Service(Broker& broker, const ServiceOptions& options)
    : core_(std::make_shared<ServiceCore>(broker, options)) {}

Service::~Service() {
  close();
}

void Service::add_to(http2::Routes& routes) {
  add_topic_calls(routes, core_);
  add_publish_call(routes, core_);
  add_subscription_calls(routes, core_);
  add_settle_calls(routes, core_);
  add_pull_call(routes, core_);
  add_streaming_pull_call(routes, core_);
  add_snapshot_calls(routes, core_);
  add_policy_calls(routes, core_);
  add_health_calls(routes, core_);
  add_reflection_calls(routes, core_);
}

void Service::close() {
  core_->close();
}

}  // namespace ordo::pubsub_wire

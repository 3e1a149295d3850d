#include "ordo/adapters/pubsub_wire/service.h"

#include <google/protobuf/stubs/logging.h>

#include "ordo/adapters/pubsub_wire/groups.h"
#include "ordo/adapters/pubsub_wire/service_core.h"

namespace ordo::pubsub_wire {

Service::Service(Broker& broker, const ServiceOptions& options)
    : core_(std::make_shared<ServiceCore>(broker, options)) {
  // What a client sends that is not UTF-8 is told to the client, not to our standard error.
  google::protobuf::SetLogHandler(nullptr);
  add_topic_calls(methods_, core_);
  add_publish_call(methods_, core_);
  add_subscription_calls(methods_, core_);
  add_settle_calls(methods_, core_);
  add_pull_call(methods_, core_);
  add_snapshot_calls(methods_, core_);
  add_policy_calls(methods_, core_);
  add_operator_calls(methods_, core_);
}

Service::~Service() {
  close();
}

void Service::add_to(http2::Routes& routes) {
  methods_.add_to(routes);
  add_streaming_pull_call(routes, core_);
  add_tail_call(routes, core_);
  add_health_calls(routes, core_);
  add_reflection_calls(routes, core_);
}

void Service::close() {
  core_->close();
}

}  // namespace ordo::pubsub_wire

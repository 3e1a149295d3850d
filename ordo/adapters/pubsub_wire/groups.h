// The calls of the service by group; each file adds its own: those with one request and one answer
// to the methods, streams to the routes.
//
//   add_topic_calls(methods, core);
//
// Threads: methods and routes are called by I/O threads, methods by others too.
#pragma once

#include "ordo/adapters/http2/routes.h"
#include "ordo/adapters/pubsub_wire/methods.h"
#include "ordo/adapters/pubsub_wire/service_core.h"

namespace ordo::pubsub_wire {

void add_topic_calls(Methods& methods, const CorePtr& core);
void add_publish_call(Methods& methods, const CorePtr& core);
void add_subscription_calls(Methods& methods, const CorePtr& core);
void add_settle_calls(Methods& methods, const CorePtr& core);
void add_pull_call(Methods& methods, const CorePtr& core);
void add_streaming_pull_call(http2::Routes& routes, const CorePtr& core);
void add_snapshot_calls(Methods& methods, const CorePtr& core);
void add_policy_calls(Methods& methods, const CorePtr& core);
void add_operator_calls(Methods& methods, const CorePtr& core);
void add_tail_call(http2::Routes& routes, const CorePtr& core);
void add_health_calls(http2::Routes& routes, const CorePtr& core);
void add_reflection_calls(http2::Routes& routes, const CorePtr& core);

}  // namespace ordo::pubsub_wire

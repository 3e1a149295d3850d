// Between the plain values of a client and the messages of the wire.
//
// Threads: pure functions.
#pragma once

#include <google/pubsub/v1/pubsub.pb.h>

#include "ordo/adapters/pubsub_client/resources.h"

namespace ordo::pubsub_client {

namespace v1 = google::pubsub::v1;

v1::Topic message_of(const Topic& topic);
v1::Subscription message_of(const Subscription& subscription);
v1::PubsubMessage message_of(const OutgoingMessage& message);
google::protobuf::Timestamp message_of(WallTime time);

Topic resource_of(const v1::Topic& topic);
Subscription resource_of(const v1::Subscription& subscription);
Snapshot resource_of(const v1::Snapshot& snapshot);
IncomingMessage incoming(v1::ReceivedMessage&& received);

}  // namespace ordo::pubsub_client

// push_request(): a message as the HTTP/1.1 request that is sent to its endpoint.
//
//   PushTarget target{endpoint, PushForm::wrapped, "projects/p/subscriptions/s", false};
//   std::string request = push_request(target, delivery);    // POST /orders HTTP/1.1 ...
//
// Wrapped, its body is what the service sends:
//
//   {"message":{"attributes":{...},"data":"aGVsbG8=","messageId":"7","message_id":"7",
//    "orderingKey":"k","publishTime":"2026-11-16T00:00:00.5Z","publish_time":...},
//    "subscription":"projects/p/subscriptions/s","deliveryAttempt":1}
//
// without what is empty; deliveryAttempt where a dead-letter policy counts. Bare, its body is the
// data. With head, all else is in headers: x-goog-pubsub-subscription-name, -message-id,
// -publish-time, -ordering-key, and each attribute under its own name. An attribute that is no
// header, or is one that says where a request ends or is set here, is left out.
//
// Threads: pure functions.
// Bounds:  those of a message; four thirds of it for base64.
#pragma once

#include <string>
#include <string_view>

#include "ordo/broker/config.h"
#include "ordo/broker/partition_io.h"
#include "ordo/broker/push_endpoint.h"
#include "ordo/core/clock.h"

namespace ordo::push_http {

// What all pushes of a subscription have in common.
struct PushTarget {
  broker::PushEndpoint endpoint;
  broker::PushForm form = broker::PushForm::wrapped;
  std::string subscription;    // Its name.
  bool shows_attempt = false;  // It has a dead-letter policy.
  bool shows_fence = false;    // As an attribute: fence_label.h.
};

std::string push_request(const PushTarget& target, const broker::Delivery& delivery);

// As of RFC 3339 in UTC, with 0, 3, 6 or 9 digits of a second.
std::string time_text(WallTime time);

}  // namespace ordo::push_http

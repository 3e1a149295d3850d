// A message that was received, as people and programs read it, and as a command gets it.
//
//   write_all(STDOUT_FILENO, message_line(message));     // 2026-11-16T00:20:01.500Z  user-1  hello
//
// Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "ordo/adapters/pubsub_client/resources.h"

namespace ordo::app {

// For people: when, key, data, attributes; what a terminal would act on is shown. With its newline;
// so for the others.
std::string message_line(const pubsub_client::IncomingMessage& message);

// {"id":"1","key":"k","data":"hello","attributes":{"a":"b"},"publish_time":"...","attempt":1};
// "data_base64" when the data is no text.
std::string message_json(const pubsub_client::IncomingMessage& message);

// ORDO_KEY=..., ORDO_MESSAGE_ID=..., ORDO_SUBSCRIPTION, ORDO_PUBLISH_TIME, ORDO_ATTEMPT and
// ORDO_ATTR_name for each attribute, with _ for what no name of a variable may have. What has a NUL
// is left out: no variable can.
std::vector<std::string> message_variables(const pubsub_client::IncomingMessage& message,
                                           const std::string& subscription);

}  // namespace ordo::app

#include "ordo/app/message_text.h"

#include <algorithm>

#include "ordo/app/json_text.h"
#include "ordo/app/resource_text.h"
#include "ordo/core/log.h"

namespace ordo::app {
namespace {

using pubsub_client::IncomingMessage;

std::string variable_name(std::string name) {
  for (char& c : name) {
    const bool is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!is_good) c = '_';
  }
  return name;
}

}  // namespace

std::string message_line(const IncomingMessage& message) {
  std::string line = moment_text(message.published_at) + "  ";
  line += message.key.empty() ? "-" : printable(message.key);
  line += "  " + printable(message.data);
  for (const auto& [name, value] : message.attributes)
    line += "  " + printable(name) + "=" + printable(value);
  return line + "\n";
}

std::string message_json(const IncomingMessage& message) {
  std::string object = "{";
  append_text_field(object, "id", message.id);
  if (!message.key.empty()) append_text_field(object, "key", message.key);
  append_text_field(object, "data", message.data);
  if (!message.attributes.empty()) {
    std::string attributes = "{";
    for (const auto& [name, value] : message.attributes)
      append_text_field(attributes, name, value);
    object += ",\"attributes\":" + attributes + "}";
  }
  append_text_field(object, "publish_time", moment_text(message.published_at));
  if (message.attempt > 0) append_number_field(object, "attempt", message.attempt);
  return object + "}\n";
}

std::vector<std::string> message_variables(const IncomingMessage& message,
                                           const std::string& subscription) {
  std::vector<std::string> variables = {
      "ORDO_KEY=" + message.key,
      "ORDO_MESSAGE_ID=" + message.id,
      "ORDO_SUBSCRIPTION=" + subscription,
      "ORDO_PUBLISH_TIME=" + moment_text(message.published_at),
      "ORDO_ATTEMPT=" + std::to_string(message.attempt),
  };
  for (const auto& [name, value] : message.attributes)
    variables.push_back("ORDO_ATTR_" + variable_name(name) + "=" + value);
  std::erase_if(variables, [](const std::string& variable) {
    return variable.find('\0') != std::string::npos;
  });
  return variables;
}

}  // namespace ordo::app

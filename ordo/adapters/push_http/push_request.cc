#include "ordo/adapters/push_http/push_request.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "ordo/broker/fence_label.h"
#include "ordo/broker/message_codec.h"
#include "ordo/core/json_text.h"

namespace ordo::push_http {
namespace {

using broker::Attribute;
using broker::Delivery;
using broker::MessageView;
using broker::PushForm;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equals_lower(std::string_view text, std::string_view lowered) {
  return std::equal(text.begin(), text.end(), lowered.begin(), lowered.end(),
                    [](char a, char b) { return lower(a) == b; });
}

// Of RFC 9110: what the name of a header may be made of.
bool is_token(std::string_view name) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != std::string_view::npos;
  });
}

bool is_header_text(std::string_view value) {
  return std::all_of(value.begin(), value.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != '\x7f'; });
}

// They belong to the connection or are set by us.
bool is_ours(std::string_view name) {
  constexpr std::string_view kPrefix = "x-goog-pubsub-";
  if (equals_lower(name.substr(0, kPrefix.size()), kPrefix)) return true;
  constexpr std::array<std::string_view, 10> kNames = {
      "connection", "content-length",    "expect",  "host",    "keep-alive",
      "te",         "transfer-encoding", "trailer", "upgrade", "user-agent"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view ours) { return equals_lower(name, ours); });
}

void add_header(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ").append(value).append("\r\n");
}

// The attributes as they are shown: with the fence where that is asked for, as the only one of its
// name.
template <class Show>
void for_each_attribute(const PushTarget& target, const Delivery& delivery,
                        const MessageView& message, const Show& show) {
  for (const Attribute& attribute : message.attributes()) {
    if (!target.shows_fence || attribute.key != broker::kFenceAttribute)
      show(attribute.key, attribute.value);
  }
  if (target.shows_fence)
    show(broker::kFenceAttribute, std::to_string(delivery.ack_id.fence.value()));
}

void add_message_headers(std::string& head, const PushTarget& target, const Delivery& delivery,
                         const MessageView& message) {
  add_header(head, "x-goog-pubsub-subscription-name", target.subscription);
  add_header(head, "x-goog-pubsub-message-id", std::to_string(delivery.message.id().value()));
  add_header(head, "x-goog-pubsub-publish-time", time_text(delivery.message.publish_time()));
  if (!message.ordering_key.empty() && is_header_text(message.ordering_key))
    add_header(head, "x-goog-pubsub-ordering-key", message.ordering_key);
  if (target.shows_attempt)
    add_header(head, "x-goog-pubsub-delivery-attempt", std::to_string(delivery.attempt));
  for_each_attribute(target, delivery, message, [&](std::string_view key, std::string_view value) {
    if (is_token(key) && !is_ours(key) && is_header_text(value)) add_header(head, key, value);
  });
}

void add_field(std::string& object, std::string_view name, std::string_view json) {
  if (object.back() != '{') object += ',';
  object.append("\"").append(name).append("\":").append(json);
}

std::string wrapped(const PushTarget& target, const Delivery& delivery,
                    const MessageView& message) {
  std::string fields = "{";
  std::string attributes = "{";
  for_each_attribute(target, delivery, message, [&](std::string_view key, std::string_view value) {
    if (attributes.size() > 1) attributes += ',';
    attributes.append(json_string(key)).append(":").append(json_string(value));
  });
  attributes += '}';
  if (attributes.size() > 2) add_field(fields, "attributes", attributes);
  if (!message.data.empty()) add_field(fields, "data", '"' + base64(message.data) + '"');
  const std::string id = '"' + std::to_string(delivery.message.id().value()) + '"';
  const std::string time = '"' + time_text(delivery.message.publish_time()) + '"';
  add_field(fields, "messageId", id);
  add_field(fields, "message_id", id);
  if (!message.ordering_key.empty())
    add_field(fields, "orderingKey", json_string(message.ordering_key));
  add_field(fields, "publishTime", time);
  add_field(fields, "publish_time", time);
  std::string body = "{";
  add_field(body, "message", fields + '}');
  add_field(body, "subscription", json_string(target.subscription));
  if (target.shows_attempt) add_field(body, "deliveryAttempt", std::to_string(delivery.attempt));
  return body + '}';
}

}  // namespace

std::string time_text(WallTime time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(second);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(second - day);
  const auto nanos = static_cast<long>((time - second).count());
  std::array<char, 64> text{};
  int size = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02uT%02ld:%02ld:%02ld", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<long>(clock.hours().count()), static_cast<long>(clock.minutes().count()),
      static_cast<long>(clock.seconds().count()));
  std::string result(text.data(), static_cast<std::size_t>(size));
  if (nanos != 0) {
    const int digits = nanos % 1'000'000 == 0 ? 3 : nanos % 1'000 == 0 ? 6 : 9;
    size = std::snprintf(text.data(), text.size(), ".%09ld", nanos);
    result.append(text.data(),
                  static_cast<std::size_t>(size) - static_cast<std::size_t>(9 - digits));
  }
  return result + 'Z';
}

std::string push_request(const PushTarget& target, const Delivery& delivery) {
  const Result<MessageView> decoded = broker::decode_message(delivery.message.body());
  const MessageView message = decoded ? *decoded : MessageView();
  std::string wrapped_body;
  std::string_view body = message.data;
  if (target.form == PushForm::wrapped) {
    wrapped_body = wrapped(target, delivery, message);
    body = wrapped_body;
  }
  std::string request = "POST " + target.endpoint.target + " HTTP/1.1\r\n";
  add_header(request, "Host", target.endpoint.authority);
  add_header(request, "User-Agent", "ordo");
  add_header(request, "Accept", "*/*");
  add_header(request, "Content-Length", std::to_string(body.size()));
  if (target.form == PushForm::wrapped) add_header(request, "Content-Type", "application/json");
  if (target.form == PushForm::bare_with_head)
    add_message_headers(request, target, delivery, message);
  request.append("\r\n").append(body);
  return request;
}

}  // namespace ordo::push_http

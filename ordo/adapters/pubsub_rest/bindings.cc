#include "ordo/adapters/pubsub_rest/bindings.h"

#include <array>
#include <optional>

namespace ordo::pubsub_rest {
namespace {

constexpr std::string_view kProject = "projects/*";
constexpr std::string_view kTopic = "projects/*/topics/*";
constexpr std::string_view kSubscription = "projects/*/subscriptions/*";
constexpr std::string_view kSnapshot = "projects/*/snapshots/*";

// clang-format off
constexpr std::array kBindings = {
  Binding{"PUT", kTopic, "", "name", "google.pubsub.v1.Publisher.CreateTopic", true},
  Binding{"PATCH", kTopic, "", "topic.name", "google.pubsub.v1.Publisher.UpdateTopic", true},
  Binding{"POST", kTopic, ":publish", "topic", "google.pubsub.v1.Publisher.Publish", true},
  Binding{"GET", kTopic, "", "topic", "google.pubsub.v1.Publisher.GetTopic"},
  Binding{"GET", kProject, "/topics", "project", "google.pubsub.v1.Publisher.ListTopics"},
  Binding{"GET", kTopic, "/subscriptions", "topic",
          "google.pubsub.v1.Publisher.ListTopicSubscriptions"},
  Binding{"GET", kTopic, "/snapshots", "topic", "google.pubsub.v1.Publisher.ListTopicSnapshots"},
  Binding{"DELETE", kTopic, "", "topic", "google.pubsub.v1.Publisher.DeleteTopic"},
  Binding{"POST", kSubscription, ":detach", "subscription",
          "google.pubsub.v1.Publisher.DetachSubscription"},

  Binding{"PUT", kSubscription, "", "name", "google.pubsub.v1.Subscriber.CreateSubscription", true},
  Binding{"GET", kSubscription, "", "subscription", "google.pubsub.v1.Subscriber.GetSubscription"},
  Binding{"PATCH", kSubscription, "", "subscription.name",
          "google.pubsub.v1.Subscriber.UpdateSubscription", true},
  Binding{"GET", kProject, "/subscriptions", "project",
          "google.pubsub.v1.Subscriber.ListSubscriptions"},
  Binding{"DELETE", kSubscription, "", "subscription",
          "google.pubsub.v1.Subscriber.DeleteSubscription"},
  Binding{"POST", kSubscription, ":modifyAckDeadline", "subscription",
          "google.pubsub.v1.Subscriber.ModifyAckDeadline", true},
  Binding{"POST", kSubscription, ":acknowledge", "subscription",
          "google.pubsub.v1.Subscriber.Acknowledge", true},
  Binding{"POST", kSubscription, ":pull", "subscription", "google.pubsub.v1.Subscriber.Pull", true},
  Binding{"POST", kSubscription, ":modifyPushConfig", "subscription",
          "google.pubsub.v1.Subscriber.ModifyPushConfig", true},
  Binding{"POST", kSubscription, ":seek", "subscription", "google.pubsub.v1.Subscriber.Seek", true},

  Binding{"PUT", kSnapshot, "", "name", "google.pubsub.v1.Subscriber.CreateSnapshot", true},
  Binding{"GET", kSnapshot, "", "snapshot", "google.pubsub.v1.Subscriber.GetSnapshot"},
  Binding{"PATCH", kSnapshot, "", "snapshot.name", "google.pubsub.v1.Subscriber.UpdateSnapshot",
          true},
  Binding{"GET", kProject, "/snapshots", "project", "google.pubsub.v1.Subscriber.ListSnapshots"},
  Binding{"DELETE", kSnapshot, "", "snapshot", "google.pubsub.v1.Subscriber.DeleteSnapshot"},

  Binding{"GET", kTopic, ":getIamPolicy", "resource", "google.iam.v1.IAMPolicy.GetIamPolicy"},
  Binding{"GET", kSubscription, ":getIamPolicy", "resource",
          "google.iam.v1.IAMPolicy.GetIamPolicy"},
  Binding{"GET", kSnapshot, ":getIamPolicy", "resource", "google.iam.v1.IAMPolicy.GetIamPolicy"},
  Binding{"POST", kTopic, ":setIamPolicy", "resource", "google.iam.v1.IAMPolicy.SetIamPolicy",
          true},
  Binding{"POST", kSubscription, ":setIamPolicy", "resource",
          "google.iam.v1.IAMPolicy.SetIamPolicy", true},
  Binding{"POST", kSnapshot, ":setIamPolicy", "resource", "google.iam.v1.IAMPolicy.SetIamPolicy",
          true},
  Binding{"POST", kTopic, ":testIamPermissions", "resource",
          "google.iam.v1.IAMPolicy.TestIamPermissions", true},
  Binding{"POST", kSubscription, ":testIamPermissions", "resource",
          "google.iam.v1.IAMPolicy.TestIamPermissions", true},
  Binding{"POST", kSnapshot, ":testIamPermissions", "resource",
          "google.iam.v1.IAMPolicy.TestIamPermissions", true},
};
// clang-format on

std::string_view take_word(std::string_view& text) {
  const std::size_t end = text.find('/');
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

// The name in the path of the target, when it is one of the binding's.
std::optional<std::string> name_in(const Target& target, const Binding& binding) {
  constexpr std::size_t kVersion = 1;  // "v1", the first segment.
  const bool is_action = binding.rest.starts_with(':');
  if (target.action != (is_action ? binding.rest.substr(1) : "")) return std::nullopt;
  std::size_t at = kVersion;
  std::string name;
  for (std::string_view left = binding.name; !left.empty(); ++at) {
    const std::string_view word = take_word(left);
    if (at >= target.segments.size()) return std::nullopt;
    const std::string& segment = target.segments[at];
    if (segment.empty() || (word != "*" && word != segment)) return std::nullopt;
    if (!name.empty()) name += '/';
    name += segment;
  }
  if (!is_action && !binding.rest.empty()) {
    if (at >= target.segments.size() || target.segments[at] != binding.rest.substr(1))
      return std::nullopt;
    ++at;
  }
  if (at != target.segments.size()) return std::nullopt;
  return name;
}

bool is_about_schemas(const Target& target) {
  constexpr std::size_t kCollection = 3;  // v1/projects/p/schemas
  return target.segments.size() > kCollection && target.segments[1] == "projects" &&
         target.segments[kCollection] == "schemas";
}

}  // namespace

std::string Binding::path() const {
  const std::size_t dot = method.rfind('.');
  std::string path = "/";
  path.append(method.substr(0, dot)).append("/").append(method.substr(dot + 1));
  return path;
}

Result<Bound> bind(std::string_view verb, const Target& target) {
  if (verb == "HEAD") verb = "GET";
  for (const Binding& binding : kBindings) {
    if (binding.verb != verb) continue;
    if (std::optional<std::string> name = name_in(target, binding))
      return Bound{&binding, std::move(*name)};
  }
  if (is_about_schemas(target))
    return Error{ErrorCode::unimplemented, "Schemas are not supported by this server."};
  return Error{ErrorCode::not_found, "Method not found."};
}

}  // namespace ordo::pubsub_rest

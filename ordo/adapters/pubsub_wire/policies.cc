// IAM policies: kept and given back as they were set, and never enforced.
#include <string>
#include <utility>

#include <google/iam/v1/iam_policy.pb.h>

#include "ordo/adapters/pubsub_wire/catalog_call.h"
#include "ordo/adapters/pubsub_wire/groups.h"
#include "ordo/core/hash.h"

namespace ordo::pubsub_wire {
namespace {

namespace iam = google::iam::v1;

// What a client has to show when it changes a policy it has read.
std::string etag_of(const std::string& bytes) {
  return std::to_string(hash_bytes(bytes, 0x6f72646f));
}

Result<iam::Policy> policy_of(Broker& broker, const std::string& resource) {
  Result<std::string> bytes = broker.get_policy(resource);
  if (!bytes) return std::move(bytes).error();
  iam::Policy policy;
  if (!policy.ParseFromString(*bytes))
    return Error{ErrorCode::data_loss, "The policy of " + resource + " cannot be read."};
  policy.set_etag(etag_of(*bytes));
  return policy;
}

Result<iam::Policy> get_policy(ServiceCore& core, const iam::GetIamPolicyRequest& request) {
  return policy_of(core.broker(), request.resource());
}

// The calls of one service are made one after the other, so nobody comes in between.
Result<iam::Policy> set_policy(ServiceCore& core, const iam::SetIamPolicyRequest& request) {
  const std::string& etag = request.policy().etag();
  if (!etag.empty()) {
    Result<iam::Policy> now = policy_of(core.broker(), request.resource());
    if (!now) return now;
    if (now->etag() != etag)
      return Error{ErrorCode::aborted, "The policy was changed since it was read: read it again."};
  }
  iam::Policy policy = request.policy();
  policy.clear_etag();
  Status set = core.broker().set_policy(request.resource(), policy.SerializeAsString());
  if (!set) return std::move(set).error();
  return policy_of(core.broker(), request.resource());
}

// Nobody is refused anything.
Result<iam::TestIamPermissionsResponse> test_permissions(
    ServiceCore&, const iam::TestIamPermissionsRequest& request) {
  iam::TestIamPermissionsResponse response;
  *response.mutable_permissions() = request.permissions();
  return response;
}

}  // namespace

void add_policy_calls(Methods& methods, const CorePtr& core) {
  const std::string service = "/google.iam.v1.IAMPolicy/";
  add_catalog_call(methods, core, service + "GetIamPolicy", get_policy);
  add_catalog_call(methods, core, service + "SetIamPolicy", set_policy);
  add_catalog_call(methods, core, service + "TestIamPermissions", test_permissions);
}

}  // namespace ordo::pubsub_wire

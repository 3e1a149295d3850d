// gRPC's reflection, so that tools can list the services and call them without our files.
#include <array>
#include <memory>
#include <string>
#include <utility>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpc/reflection/v1/reflection.pb.h>

#include "ordo/adapters/pubsub_wire/catalog_call.h"
#include "ordo/adapters/pubsub_wire/groups.h"

namespace ordo::pubsub_wire {
namespace {

namespace reflection = grpc::reflection::v1;
using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using reflection::ServerReflectionRequest;
using reflection::ServerReflectionResponse;

constexpr std::array<const char*, 6> kServices = {
    "google.iam.v1.IAMPolicy", "google.pubsub.v1.Publisher",          "google.pubsub.v1.Subscriber",
    "grpc.health.v1.Health",   "grpc.reflection.v1.ServerReflection", "ordo.operate.v1.Operator"};

void set_error(ServerReflectionResponse& response, ErrorCode code, const std::string& message) {
  response.mutable_error_response()->set_error_code(static_cast<std::int32_t>(code));
  response.mutable_error_response()->set_error_message(message);
}

// The file alone; whoever needs what it imports asks for it by name.
void set_file(ServerReflectionResponse& response, const FileDescriptor* file,
              const std::string& what) {
  if (file == nullptr) return set_error(response, ErrorCode::not_found, "not found: " + what);
  google::protobuf::FileDescriptorProto proto;
  file->CopyTo(&proto);
  response.mutable_file_descriptor_response()->add_file_descriptor_proto(proto.SerializeAsString());
}

ServerReflectionResponse answer_to(const ServerReflectionRequest& request) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kListServices:
      for (const char* service : kServices)
        response.mutable_list_services_response()->add_service()->set_name(service);
      break;
    case ServerReflectionRequest::kFileByFilename:
      set_file(response, pool.FindFileByName(request.file_by_filename()),
               request.file_by_filename());
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      set_file(response, pool.FindFileContainingSymbol(request.file_containing_symbol()),
               request.file_containing_symbol());
      break;
    case ServerReflectionRequest::kFileContainingExtension:
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      set_error(response, ErrorCode::not_found, "There are no extensions.");
      break;
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      set_error(response, ErrorCode::invalid_argument, "The request asks for nothing.");
      break;
  }
  return response;
}

// A tool may keep its call open; a server that drains does not wait for it.
class OpenReflection final : public OpenCall {
 public:
  OpenReflection(CorePtr core, http2::CallPtr call)
      : core_(std::move(core)),
        call_(std::move(call)) {}
  ~OpenReflection() override { core_->remove(this); }

  void end(const Error& reason) override { call_->finish(reason); }

 private:
  const CorePtr core_;
  const http2::CallPtr call_;
};

class ReflectionHandler final : public http2::CallHandler {
 public:
  ReflectionHandler(const CorePtr& core, const http2::CallPtr& call)
      : call_(call),
        open_(std::make_shared<OpenReflection>(core, call)) {
    if (!core->add(open_)) open_->end(closed_error());
  }

  void on_message(std::string_view bytes) override {
    ServerReflectionRequest request;
    if (!parse(request, bytes)) return call_->finish(malformed_request());
    if (!call_->send(http2::Slice::of(answer_to(request).SerializeAsString())))
      call_->finish({ErrorCode::resource_exhausted, "The client does not read the answers."});
  }
  void on_half_close() override { call_->finish(0); }

 private:
  const http2::CallPtr call_;
  const std::shared_ptr<OpenReflection> open_;
};

}  // namespace

void add_reflection_calls(http2::Routes& routes, const CorePtr& core) {
  // Both versions have the same bytes.
  for (const char* path : {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                           "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    routes.streaming(path, [core](const http2::CallPtr& call) {
      return std::make_unique<ReflectionHandler>(core, call);
    });
  }
}

}  // namespace ordo::pubsub_wire

// The Pub/Sub API through libgrpc++: what every client in C++ would use, with completion queues,
// one thread for each role.
#include <cstdint>
#include <string>
#include <utility>

#include <google/pubsub/v1/pubsub.grpc.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "bench/wire/load.h"
#include "bench/wire/pubsub_names.h"
#include "bench/wire/system.h"

namespace ordo::bench {
namespace {

namespace api = google::pubsub::v1;

void check(const grpc::Status& status, const char* what) {
  if (!status.ok()) give_up(std::string(what) + ": " + status.error_message());
}

gpr_timespec after(std::uint64_t wait_ns) {
  const auto wait = gpr_time_from_nanos(static_cast<std::int64_t>(wait_ns), GPR_TIMESPAN);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), wait);
}

// A connection of its own: channels to one address would share one.
std::shared_ptr<grpc::Channel> connect(const WirePlan& plan) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(plan.port),
                                   grpc::InsecureChannelCredentials(), arguments);
}

class GrpcPublisher final : public Publisher {
 public:
  GrpcPublisher(const WirePlan& plan, std::string topic)
      : stub_(api::Publisher::NewStub(connect(plan))),
        topic_(std::move(topic)) {}

  void send(std::uint64_t key, const std::vector<std::string>& bodies) override {
    api::PublishRequest request;
    request.set_topic(topic_);
    request.mutable_messages()->Reserve(static_cast<int>(bodies.size()));
    for (const std::string& body : bodies) {
      api::PubsubMessage& message = *request.add_messages();
      message.set_data(body);
      if (key != kNoKey) message.set_ordering_key(PubsubNames::key(key));
    }
    auto* const call = new Call{.number = requests_++, .messages = request.messages_size()};
    call->reader = stub_->AsyncPublish(&call->context, request, &queue_);
    call->reader->Finish(&call->response, &call->status, call);
  }

  void receive(std::uint64_t wait_ns, std::vector<std::uint64_t>& answered) override {
    void* tag = nullptr;
    bool is_ok = false;
    if (queue_.AsyncNext(&tag, &is_ok, after(wait_ns)) != grpc::CompletionQueue::GOT_EVENT) return;
    const std::unique_ptr<Call> call(static_cast<Call*>(tag));
    check(call->status, "Publish");
    if (call->response.message_ids_size() != call->messages) give_up("ids are missing");
    answered.push_back(call->number);
  }

 private:
  struct Call {
    std::uint64_t number = 0;
    int messages = 0;
    grpc::ClientContext context{};
    api::PublishResponse response{};
    grpc::Status status{};
    std::unique_ptr<grpc::ClientAsyncResponseReader<api::PublishResponse>> reader{};
  };

  std::unique_ptr<api::Publisher::Stub> stub_;
  const std::string topic_;
  grpc::CompletionQueue queue_{};
  std::uint64_t requests_ = 0;
};

// One read and one write under way; what is acknowledged meanwhile goes with the next write.
class GrpcConsumer final : public Consumer {
 public:
  GrpcConsumer(const WirePlan& plan, const std::string& subscription)
      : stub_(api::Subscriber::NewStub(connect(plan))) {
    stream_ = stub_->AsyncStreamingPull(&context_, &queue_, tag_of(Event::started));
    await(Event::started);
    sent_.set_subscription(subscription);
    sent_.set_stream_ack_deadline_seconds(PubsubNames::kAckDeadlineSeconds);
    stream_->Write(sent_, tag_of(Event::written));
    await(Event::written);
    sent_.Clear();
    stream_->Read(&received_, tag_of(Event::read));
  }

  void receive(std::uint64_t wait_ns, const Sink& sink) override {
    void* tag = nullptr;
    bool is_ok = false;
    if (queue_.AsyncNext(&tag, &is_ok, after(wait_ns)) != grpc::CompletionQueue::GOT_EVENT) return;
    if (!is_ok) fail();
    if (tag == tag_of(Event::read)) {
      for (api::ReceivedMessage& message : *received_.mutable_received_messages()) {
        Receipt receipt;
        receipt.text.swap(*message.mutable_ack_id());
        sink(message.message().data(), std::move(receipt));
      }
      stream_->Read(&received_, tag_of(Event::read));
    } else {
      is_writing_ = false;
      write();
    }
  }

  void acknowledge(std::vector<Receipt>& receipts) override {
    for (Receipt& receipt : receipts)
      waiting_.add_ack_ids()->swap(receipt.text);
    write();
  }

  void finish() override {
    while (is_writing_)
      receive(1'000'000'000, [](std::string_view /*body*/, Receipt /*receipt*/) {
        give_up("a message came that was not sent");
      });
    // The server ends the stream when it has taken all that was sent on it.
    stream_->WritesDone(tag_of(Event::written));
    bool is_read = false;
    for (bool is_ended = false; !is_ended || !is_read;) {
      void* tag = nullptr;
      bool is_ok = false;
      if (!queue_.Next(&tag, &is_ok)) give_up("the stream does not end");
      (tag == tag_of(Event::read) ? is_read : is_ended) = true;
    }
    grpc::Status status;
    stream_->Finish(&status, tag_of(Event::finished));
    await(Event::finished);
    check(status, "StreamingPull");
  }

 private:
  enum class Event : std::uintptr_t { started = 1, read, written, finished };

  static void* tag_of(Event event) { return reinterpret_cast<void*>(event); }

  void await(Event event) {
    void* tag = nullptr;
    bool is_ok = false;
    if (!queue_.Next(&tag, &is_ok) || !is_ok || tag != tag_of(event))
      give_up("the stream does not begin");
  }

  [[noreturn]] void fail() {
    grpc::Status status;
    stream_->Finish(&status, tag_of(Event::finished));
    void* tag = nullptr;
    bool is_ok = false;
    while (tag != tag_of(Event::finished) && queue_.Next(&tag, &is_ok)) {
    }
    give_up("the stream has ended: " + status.error_message());
  }

  void write() {
    if (is_writing_ || waiting_.ack_ids_size() == 0) return;
    sent_.Swap(&waiting_);
    waiting_.clear_ack_ids();
    is_writing_ = true;
    stream_->Write(sent_, tag_of(Event::written));
  }

  std::unique_ptr<api::Subscriber::Stub> stub_;
  grpc::CompletionQueue queue_{};
  grpc::ClientContext context_{};
  std::unique_ptr<
      grpc::ClientAsyncReaderWriter<api::StreamingPullRequest, api::StreamingPullResponse>>
      stream_{};
  api::StreamingPullRequest sent_{};
  api::StreamingPullRequest waiting_{};
  api::StreamingPullResponse received_{};
  bool is_writing_ = false;
};

class GrpcSystem final : public System {
 public:
  explicit GrpcSystem(const WirePlan& plan) : plan_(plan), channel_(connect(plan)) {
    if (plan.mode == "unary") return;
    grpc::ClientContext of_topic;
    api::Topic topic;
    topic.set_name(names_.topic);
    check(api::Publisher::NewStub(channel_)->CreateTopic(&of_topic, topic, &topic), "CreateTopic");
    grpc::ClientContext of_subscription;
    api::Subscription subscription;
    subscription.set_name(names_.subscription);
    subscription.set_topic(names_.topic);
    subscription.set_ack_deadline_seconds(PubsubNames::kAckDeadlineSeconds);
    subscription.set_enable_message_ordering(plan.keys > 0);
    check(api::Subscriber::NewStub(channel_)->CreateSubscription(&of_subscription, subscription,
                                                                 &subscription),
          "CreateSubscription");
  }

  std::unique_ptr<Publisher> publisher() override {
    return std::make_unique<GrpcPublisher>(plan_, names_.topic);
  }
  std::unique_ptr<Consumer> consumer() override {
    return std::make_unique<GrpcConsumer>(plan_, names_.subscription);
  }

  void clear() override {
    google::protobuf::Empty nothing;
    grpc::ClientContext of_subscription;
    api::DeleteSubscriptionRequest subscription;
    subscription.set_subscription(names_.subscription);
    check(api::Subscriber::NewStub(channel_)->DeleteSubscription(&of_subscription, subscription,
                                                                 &nothing),
          "DeleteSubscription");
    grpc::ClientContext of_topic;
    api::DeleteTopicRequest topic;
    topic.set_topic(names_.topic);
    check(api::Publisher::NewStub(channel_)->DeleteTopic(&of_topic, topic, &nothing),
          "DeleteTopic");
  }

  // The health service's Check: nothing to ask, two bytes of answer, whoever serves it.
  Measures unary(const WirePlan& plan) override {
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    std::vector<double> latencies;
    std::uint64_t sent = 0;
    const auto send = [&] {
      auto* const call = new UnaryCall{.begin_ns = now_ns()};
      call->reader = stub.PrepareUnaryCall(&call->context, "/grpc.health.v1.Health/Check",
                                           grpc::ByteBuffer(&call->nothing, 1), &queue);
      call->reader->StartCall();
      call->reader->Finish(&call->response, &call->status, call);
      ++sent;
    };
    while (sent < plan.count && sent < plan.window)
      send();
    for (std::uint64_t done = 0; done < plan.count; ++done) {
      void* tag = nullptr;
      bool is_ok = false;
      if (!queue.Next(&tag, &is_ok)) give_up("the queue has ended");
      const std::unique_ptr<UnaryCall> call(static_cast<UnaryCall*>(tag));
      check(call->status, "Check");
      if (call->response.Length() != 2) give_up("Check: not the answer");
      latencies.push_back(static_cast<double>(now_ns() - call->begin_ns) / 1000);
      if (sent < plan.count) send();
    }
    Measures measures;
    measures.set("p50_us", percentile(latencies, 0.5));
    measures.set("p99_us", percentile(latencies, 0.99));
    measures.set("errors", 0);
    return measures;
  }

 private:
  struct UnaryCall {
    std::uint64_t begin_ns = 0;
    grpc::Slice nothing{};
    grpc::ClientContext context{};
    grpc::ByteBuffer response{};
    grpc::Status status{};
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader{};
  };

  const WirePlan plan_;
  const PubsubNames names_ = PubsubNames::of_this_run();
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace

std::unique_ptr<System> make_system(const WirePlan& plan) {
  return std::make_unique<GrpcSystem>(plan);
}

}  // namespace ordo::bench

int main(int argc, char** argv) {
  return ordo::bench::run_driver(argc, argv);
}

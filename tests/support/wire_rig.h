// WireRig: a broker in memory and the routes of its Pub/Sub service, called without a socket.
//
//   WireRig rig;
//   auto answer = rig.unary<v1::Topic>("Publisher/CreateTopic", topic);
//   EXPECT_EQ(answer.code, 0);
//   CallLine& line = rig.open("Subscriber/StreamingPull");
//   line.send(request);
//   ASSERT_TRUE(rig.wait([&] { return line.messages().size() == 1; }));
//
// Time is the rig's: advance() moves it.
//
// Threads: the test's, which is the I/O thread of all calls.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/message_lite.h>
#include <google/pubsub/v1/pubsub.pb.h>
#include <gtest/gtest.h>

#include "ordo/adapters/http2/routes.h"
#include "ordo/adapters/pubsub_wire/service.h"
#include "ordo/broker.h"
#include "ordo/broker/store_memory.h"
#include "tests/support/waiting.h"

namespace ordo::testing_support {

namespace v1 = google::pubsub::v1;

// Codes of gRPC.
inline constexpr int kInvalidArgument = 3;
inline constexpr int kNotFound = 5;
inline constexpr int kAlreadyExists = 6;
inline constexpr int kFailedPrecondition = 9;
inline constexpr int kAborted = 10;
inline constexpr int kOutOfRange = 11;
inline constexpr int kUnimplemented = 12;
inline constexpr int kUnavailable = 14;

// The client's end of one call.
class CallLine final : private http2::Channel {
 public:
  CallLine(const http2::Routes& routes, const std::string& path,
           const std::shared_ptr<http2::Mailbox>& mailbox,
           const std::shared_ptr<http2::OutputAccount>& account, TimePoint deadline)
      : method_(routes.find(path)) {
    EXPECT_NE(method_, nullptr) << path;
    http2::RequestHead head;
    head.method = "POST";
    head.path = path;
    head.peer = std::make_shared<const std::string>("test");
    call_ = std::make_shared<http2::Call>(std::move(head), mailbox, account);
    call_->set_deadline(deadline);
    call_->attach(this);
    if (method_->streaming) handler_ = method_->streaming(call_);
  }
  CallLine(const CallLine&) = delete;
  CallLine& operator=(const CallLine&) = delete;
  ~CallLine() override { close(); }

  void send(const google::protobuf::MessageLite& message) {
    send_bytes(message.SerializeAsString());
  }
  void send_bytes(const std::string& bytes) {
    if (!handler_) return method_->unary(call_, bytes);
    if (!is_ended_) handler_->on_message(bytes);
    end_round();
  }
  // On a stream: more comes together with it, until end_round().
  void send_with_more(const google::protobuf::MessageLite& message) {
    handler_->on_message(message.SerializeAsString());
  }
  void end_round() {
    if (std::exchange(is_round_asked_, false) && handler_) handler_->on_round_end();
  }
  void half_close() {
    if (handler_) handler_->on_half_close();
  }
  // The client goes without a word.
  void cancel() {
    call_->mark_cancelled();
    if (handler_) handler_->on_cancelled();
    handler_.reset();
  }
  // The connection forgets the call.
  void close() {
    call_->attach(nullptr);
    if (!is_ended_) call_->mark_cancelled();
    handler_.reset();
  }

  // Whether it takes what was sent; while it does not, the call is full at some time.
  void set_reading(bool is_reading) { is_reading_ = is_reading; }
  void read() {
    if (!is_reading_) return;
    const std::size_t bytes = std::exchange(unread_, 0);
    if (bytes > 0 && call_->note_sent(bytes) && handler_) handler_->on_writable();
  }

  bool has_headers() const { return has_headers_; }
  bool is_ended() const { return is_ended_; }
  bool is_input_held() const { return is_input_held_; }
  int code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& details() const { return details_; }  // As base64.
  const std::vector<std::string>& messages() const { return messages_; }

  template <class Message>
  std::vector<Message> messages_as() const {
    std::vector<Message> parsed(messages_.size());
    for (std::size_t i = 0; i < messages_.size(); ++i)
      EXPECT_TRUE(parsed[i].ParseFromString(messages_[i]));
    return parsed;
  }

 private:
  void take(http2::Part&& part) override {
    if (is_ended_) return;
    if (part.status != 0) has_headers_ = true;
    EXPECT_TRUE(part.body.empty() || has_headers_) << "a message before the headers";
    for (const http2::Chunk& chunk : part.body) {
      if (chunk.prefix_size > 0) messages_.emplace_back();
      messages_.back().append(chunk.slice.bytes);
    }
    unread_ += part.queued_bytes();
    if (!part.is_end) return;
    is_ended_ = true;
    code_ = part.grpc_status;
    if (const auto text = part.trailers.find("grpc-message")) message_ = std::string(*text);
    if (const auto text = part.trailers.find("grpc-status-details-bin"))
      details_ = std::string(*text);
  }
  void hold_input(bool is_held) override { is_input_held_ = is_held; }
  void ask_round_end() override { is_round_asked_ = true; }

  const http2::Routes::Method* const method_;
  http2::CallPtr call_;
  std::unique_ptr<http2::CallHandler> handler_;
  bool is_reading_ = true;
  std::size_t unread_ = 0;
  bool has_headers_ = false;
  bool is_ended_ = false;
  bool is_input_held_ = false;
  bool is_round_asked_ = false;
  int code_ = -1;
  std::string message_;
  std::string details_;
  std::vector<std::string> messages_;
};

template <class Response>
struct WireAnswer {
  int code = -1;
  std::string message;  // Percent-encoded, as it is sent.
  std::string details;
  Response response;
};

class WireRig {
 public:
  explicit WireRig(BrokerOptions options = {}, pubsub_wire::ServiceOptions service_options = {}) {
    options.clock = &clock_;
    service_options.clock = &clock_;
    auto opened = Broker::open(
        std::make_unique<broker::MemoryStore>(std::make_shared<broker::MemoryDisk>(), nullptr),
        options);
    EXPECT_TRUE(opened) << opened.error().message;
    broker_ = std::move(*opened);
    service_ = std::make_unique<pubsub_wire::Service>(*broker_, service_options);
    service_->add_to(routes_);
    mailbox_->make_this_threads_own();
  }
  WireRig(const WireRig&) = delete;
  WireRig& operator=(const WireRig&) = delete;
  ~WireRig() {
    lines_.clear();
    service_.reset();
    mailbox_->close();
  }

  // `method` is "Publisher/CreateTopic", or a whole path.
  CallLine& open(const std::string& method, TimePoint deadline = TimePoint::max()) {
    const std::string path = method.starts_with("/") ? method : "/google.pubsub.v1." + method;
    lines_.push_back(std::make_unique<CallLine>(routes_, path, mailbox_, account_, deadline));
    return *lines_.back();
  }

  // One round of the I/O thread.
  void poll() {
    mailbox_->take_all();
    for (std::size_t i = 0; i < lines_.size(); ++i)
      lines_[i]->read();
  }
  template <class Condition>
  bool wait(Condition condition) {
    return eventually([&] {
      poll();
      return condition();
    });
  }

  template <class Response>
  WireAnswer<Response> unary(const std::string& method,
                             const google::protobuf::MessageLite& request) {
    return unary_bytes<Response>(method, request.SerializeAsString());
  }
  template <class Response>
  WireAnswer<Response> unary_bytes(const std::string& method, const std::string& request) {
    CallLine& line = open(method);
    line.send_bytes(request);
    line.half_close();
    return answer_of<Response>(line);
  }
  template <class Response>
  WireAnswer<Response> answer_of(CallLine& line) {
    EXPECT_TRUE(wait([&] { return line.is_ended(); })) << "no answer";
    WireAnswer<Response> answer{line.code(), line.message(), line.details(), {}};
    if (line.code() == 0) {
      EXPECT_EQ(line.messages().size(), 1u);
      EXPECT_TRUE(answer.response.ParseFromString(line.messages().at(0)));
    }
    line.close();
    return answer;
  }

  // -------------------------------------------------------------------------- for most tests

  static std::string topic(const std::string& id = "orders") { return "projects/p/topics/" + id; }
  static std::string subscription(const std::string& id = "billing") {
    return "projects/p/subscriptions/" + id;
  }

  // A topic and an ordered subscription, and what the caller changes of that.
  void create(v1::Subscription settings = {}) {
    v1::Topic made;
    made.set_name(topic());
    ASSERT_EQ(unary<v1::Topic>("Publisher/CreateTopic", made).code, 0);
    if (settings.name().empty()) settings.set_name(subscription());
    settings.set_topic(topic());
    settings.set_enable_message_ordering(true);
    const auto answer = unary<v1::Subscription>("Subscriber/CreateSubscription", settings);
    ASSERT_EQ(answer.code, 0) << answer.message;
  }
  std::vector<std::string> publish(const std::string& key, const std::vector<std::string>& data) {
    v1::PublishRequest request;
    request.set_topic(topic());
    for (const std::string& text : data) {
      v1::PubsubMessage& message = *request.add_messages();
      message.set_data(text);
      message.set_ordering_key(key);
    }
    const auto answer = unary<v1::PublishResponse>("Publisher/Publish", request);
    EXPECT_EQ(answer.code, 0) << answer.message;
    return {answer.response.message_ids().begin(), answer.response.message_ids().end()};
  }
  // What there is now.
  std::vector<v1::ReceivedMessage> pull(int count_max = 100) {
    v1::PullRequest request;
    request.set_subscription(subscription());
    request.set_max_messages(count_max);
    request.set_return_immediately(true);
    const auto answer = unary<v1::PullResponse>("Subscriber/Pull", request);
    EXPECT_EQ(answer.code, 0) << answer.message;
    return {answer.response.received_messages().begin(), answer.response.received_messages().end()};
  }
  WireAnswer<google::protobuf::Empty> ack(const std::vector<std::string>& ids) {
    v1::AcknowledgeRequest request;
    request.set_subscription(subscription());
    for (const std::string& id : ids)
      request.add_ack_ids(id);
    return unary<google::protobuf::Empty>("Subscriber/Acknowledge", request);
  }
  WireAnswer<google::protobuf::Empty> modify(const std::vector<std::string>& ids, int seconds) {
    v1::ModifyAckDeadlineRequest request;
    request.set_subscription(subscription());
    request.set_ack_deadline_seconds(seconds);
    for (const std::string& id : ids)
      request.add_ack_ids(id);
    return unary<google::protobuf::Empty>("Subscriber/ModifyAckDeadline", request);
  }

  void advance(std::chrono::nanoseconds span) {
    let_others_fall_asleep();
    clock_.advance(span);
    let_others_fall_asleep();
  }

  Broker& broker() { return *broker_; }
  pubsub_wire::Service& service() { return *service_; }
  ManualClock& clock() { return clock_; }

 private:
  ManualClock clock_;
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<pubsub_wire::Service> service_;
  http2::Routes routes_;
  std::shared_ptr<http2::Mailbox> mailbox_ = std::make_shared<http2::Mailbox>([] {});
  std::shared_ptr<http2::OutputAccount> account_ = std::make_shared<http2::OutputAccount>(
      http2::Limits(), std::make_shared<http2::OutputBudget>(~std::size_t{0}));
  std::vector<std::unique_ptr<CallLine>> lines_;
};

}  // namespace ordo::testing_support

// The Pub/Sub service behind its server, by real sockets.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <google/pubsub/v1/pubsub.pb.h>
#include <gtest/gtest.h>

#include "ordo/adapters/http2/server.h"
#include "ordo/adapters/pubsub_wire/service.h"
#include "ordo/broker.h"
#include "ordo/broker/store_memory.h"
#include "tests/support/http2_rig.h"
#include "tests/support/raw_socket.h"
#include "tests/support/waiting.h"

namespace ordo::testing_support {
namespace {

using testing::ElementsAre;
namespace v1 = google::pubsub::v1;

// A gRPC client by libnghttp2 on one connection.
class PubsubClient {
 public:
  explicit PubsubClient(std::uint16_t port) : socket_(port) { EXPECT_TRUE(socket_.is_connected()); }

  std::int32_t open(const std::string& method, const google::protobuf::MessageLite& request,
                    bool is_ended) {
    return client_.call("/google.pubsub.v1." + method, framed(request.SerializeAsString()),
                        is_ended);
  }
  void send(std::int32_t stream, const google::protobuf::MessageLite& request) {
    client_.send(stream, framed(request.SerializeAsString()), false);
  }
  // Reads until `condition` holds; false: the server has closed, or said nothing for too long.
  template <class Condition>
  bool wait(Condition condition) {
    for (;;) {
      if (!socket_.send(client_.take_output())) return condition();
      if (condition()) return true;
      const std::string bytes = socket_.read();
      if (bytes.empty()) return condition();
      client_.receive(bytes);
    }
  }
  std::string call(const std::string& method, const google::protobuf::MessageLite& request) {
    const std::int32_t stream = open(method, request, true);
    EXPECT_TRUE(wait([&] { return client_.answer(stream).is_ended; }));
    EXPECT_EQ(client_.answer(stream).trailer("grpc-status"), "0")
        << client_.answer(stream).trailer("grpc-message");
    const std::vector<std::string> messages = client_.answer(stream).messages();
    return messages.empty() ? "" : messages.front();
  }
  Answer& answer(std::int32_t stream) { return client_.answer(stream); }

  std::vector<v1::ReceivedMessage> received(std::int32_t stream) {
    std::vector<v1::ReceivedMessage> all;
    std::string_view rest = client_.answer(stream).body;
    while (rest.size() >= 5) {
      std::size_t size = 0;
      for (const char byte : rest.substr(1, 4))
        size = size << 8 | static_cast<unsigned char>(byte);
      if (rest.size() < 5 + size) break;
      v1::StreamingPullResponse response;
      EXPECT_TRUE(response.ParseFromString(std::string(rest.substr(5, size))));
      all.insert(all.end(), response.received_messages().begin(),
                 response.received_messages().end());
      rest.remove_prefix(5 + size);
    }
    return all;
  }

 private:
  RawSocket socket_;
  Http2Client client_;
};

class PubsubSocketTest : public testing::Test {
 protected:
  PubsubSocketTest() {
    auto opened =
        Broker::open(std::make_unique<broker::MemoryStore>(std::make_shared<broker::MemoryDisk>()));
    EXPECT_TRUE(opened);
    broker_ = std::move(*opened);
    service_ = std::make_unique<pubsub_wire::Service>(*broker_);
    http2::Routes routes;
    service_->add_to(routes);
    server_ = std::make_unique<http2::Server>(http2::ServerOptions{}, std::move(routes));
    EXPECT_TRUE(server_->start());
  }
  ~PubsubSocketTest() override {
    service_->close();
    server_->stop();
  }

  void create(PubsubClient& client) {
    v1::Topic topic;
    topic.set_name("projects/p/topics/orders");
    client.call("Publisher/CreateTopic", topic);
    v1::Subscription subscription;
    subscription.set_name("projects/p/subscriptions/billing");
    subscription.set_topic("projects/p/topics/orders");
    subscription.set_enable_message_ordering(true);
    client.call("Subscriber/CreateSubscription", subscription);
  }
  static v1::PublishRequest publish_request(const std::string& key,
                                            const std::vector<std::string>& data) {
    v1::PublishRequest request;
    request.set_topic("projects/p/topics/orders");
    for (const std::string& text : data) {
      request.add_messages()->set_data(text);
      request.mutable_messages(request.messages_size() - 1)->set_ordering_key(key);
    }
    return request;
  }
  static v1::StreamingPullRequest first_request() {
    v1::StreamingPullRequest request;
    request.set_subscription("projects/p/subscriptions/billing");
    request.set_stream_ack_deadline_seconds(60);
    return request;
  }

  Watchdog watchdog_{"PubsubSocketTest"};
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<pubsub_wire::Service> service_;
  std::unique_ptr<http2::Server> server_;
};

TEST_F(PubsubSocketTest, AKeyIsPublishedAndStreamedInOrder) {
  PubsubClient publisher(server_->port());
  PubsubClient subscriber(server_->port());
  create(publisher);
  const std::int32_t stream = subscriber.open("Subscriber/StreamingPull", first_request(), false);
  publisher.call("Publisher/Publish", publish_request("k", {"1", "2", "3"}));
  std::vector<std::string> data;
  for (std::size_t count = 1; count <= 3; ++count) {
    ASSERT_TRUE(subscriber.wait([&] { return subscriber.received(stream).size() >= count; }));
    const auto received = subscriber.received(stream);
    ASSERT_EQ(received.size(), count) << "the next came before the ack";
    data.push_back(received.back().message().data());
    v1::StreamingPullRequest ack;
    ack.add_ack_ids(received.back().ack_id());
    subscriber.send(stream, ack);
  }
  EXPECT_THAT(data, ElementsAre("1", "2", "3"));
}

TEST_F(PubsubSocketTest, AMessageOfMegabytesGoesThroughWhole) {
  PubsubClient client(server_->port());
  create(client);
  const std::string large(9'000'000, 'x');
  client.call("Publisher/Publish", publish_request("", {large}));
  v1::PullRequest pull;
  pull.set_subscription("projects/p/subscriptions/billing");
  pull.set_max_messages(1);
  v1::PullResponse response;
  ASSERT_TRUE(response.ParseFromString(client.call("Subscriber/Pull", pull)));
  ASSERT_EQ(response.received_messages_size(), 1);
  EXPECT_TRUE(response.received_messages(0).message().data() == large);
}

TEST_F(PubsubSocketTest, StreamsEndWithUnavailableWhenTheServerDrains) {
  PubsubClient client(server_->port());
  create(client);
  const std::int32_t stream = client.open("Subscriber/StreamingPull", first_request(), false);
  ASSERT_TRUE(client.wait([&] { return client.answer(stream).blocks == 1; })) << "no headers";
  service_->close();
  ASSERT_TRUE(client.wait([&] { return client.answer(stream).is_ended; }));
  EXPECT_EQ(client.answer(stream).trailer("grpc-status"), "14");
  server_->drain(system_clock().now() + kPatience);
}

}  // namespace
}  // namespace ordo::testing_support

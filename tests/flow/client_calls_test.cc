// The client of a broker, against the service of ours on real sockets.

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/adapters/http2/server.h"
#include "ordo/adapters/pubsub_client/client.h"
#include "ordo/adapters/pubsub_client/pull_stream.h"
#include "ordo/adapters/pubsub_wire/service.h"
#include "ordo/broker/store_memory.h"

namespace ordo::pubsub_client {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kTopic = "projects/p/topics/orders";
const std::string kSubscription = "projects/p/subscriptions/billing";

class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    auto broker = Broker::open(
        std::make_unique<broker::MemoryStore>(std::make_shared<broker::MemoryDisk>(), nullptr), {});
    EXPECT_TRUE(broker) << broker.error().message;
    broker_ = std::move(*broker);
    service_ = std::make_unique<pubsub_wire::Service>(*broker_);
    http2::Routes routes;
    service_->add_to(routes);
    http2::ServerOptions options;
    options.address = "127.0.0.1";
    options.port = 0;
    server_ = std::make_unique<http2::Server>(options, std::move(routes));
    EXPECT_TRUE(server_->start());
    auto client = Client::connect({"127.0.0.1", server_->port()});
    EXPECT_TRUE(client) << client.error().message;
    client_ = std::move(*client);
  }
  ~ClientTest() override {
    server_->stop();
    service_.reset();
  }

  void create() {
    ASSERT_TRUE(client_->create_topic({.name = kTopic}));
    const auto made =
        client_->create_subscription({.name = kSubscription, .topic = kTopic, .is_ordered = true});
    ASSERT_TRUE(made) << made.error().message;
  }

  std::unique_ptr<Broker> broker_;
  std::unique_ptr<pubsub_wire::Service> service_;
  std::unique_ptr<http2::Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, TopicsAreCreatedShownChangedListedAndDeleted) {
  const auto made = client_->create_topic(
      {.name = kTopic, .labels = {{"team", "a"}}, .retention = std::chrono::hours(1)});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->labels, (Labels{{"team", "a"}}));
  EXPECT_EQ(client_->create_topic({.name = kTopic}).error().code, ErrorCode::already_exists);

  const auto changed =
      client_->update_topic({.name = kTopic, .labels = {{"team", "b"}}}, {"labels"});
  ASSERT_TRUE(changed) << changed.error().message;
  const auto shown = client_->get_topic(kTopic);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->labels, (Labels{{"team", "b"}}));
  EXPECT_EQ(shown->retention, std::chrono::hours(1));
  EXPECT_THAT(shown->json, HasSubstr("\"messageRetentionDuration\":\"3600s\""));

  ASSERT_EQ(client_->topics("p")->size(), 1u);
  ASSERT_TRUE(client_->delete_topic(kTopic));
  EXPECT_TRUE(client_->topics("p")->empty());
  EXPECT_EQ(client_->get_topic(kTopic).error().code, ErrorCode::not_found);
}

TEST_F(ClientTest, ASubscriptionComesBackAsItWasAskedFor) {
  ASSERT_TRUE(client_->create_topic({.name = kTopic}));
  ASSERT_TRUE(client_->create_topic({.name = "projects/p/topics/dead"}));
  Subscription wanted{.name = kSubscription, .topic = kTopic};
  wanted.labels = {{"ordo-ordered-window", "4"}};
  wanted.ack_deadline = seconds(30);
  wanted.is_ordered = true;
  wanted.is_exactly_once = true;
  wanted.retains_acked = true;
  wanted.retention = std::chrono::hours(2);
  wanted.expiration = std::chrono::nanoseconds{0};
  wanted.filter = "attributes:a";
  wanted.retry = RetryBackoff{seconds(1), seconds(2)};
  wanted.dead_letters = DeadLetters{"projects/p/topics/dead", 7};
  const auto made = client_->create_subscription(wanted);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->labels, wanted.labels);
  EXPECT_EQ(made->ack_deadline, seconds(30));
  EXPECT_TRUE(made->is_ordered && made->is_exactly_once && made->retains_acked);
  EXPECT_EQ(made->retention, std::chrono::hours(2));
  EXPECT_EQ(made->expiration, std::chrono::nanoseconds{0});
  EXPECT_EQ(made->filter, "attributes:a");
  ASSERT_TRUE(made->retry && made->dead_letters);
  EXPECT_EQ(made->retry->minimum, seconds(1));
  EXPECT_EQ(made->retry->maximum, seconds(2));
  EXPECT_EQ(made->dead_letters->topic, "projects/p/topics/dead");
  EXPECT_EQ(made->dead_letters->attempts_max, 7);
  EXPECT_THAT(*client_->topic_subscriptions(kTopic), ElementsAre(kSubscription));
  ASSERT_EQ(client_->subscriptions("p")->size(), 1u);
  ASSERT_TRUE(client_->delete_subscription(kSubscription));
  EXPECT_EQ(client_->get_subscription(kSubscription).error().code, ErrorCode::not_found);
}

TEST_F(ClientTest, MessagesArriveInTheOrderOfTheirKeyAndAreAcknowledged) {
  create();
  const auto ids = client_->publish(
      kTopic, {{.data = "1", .key = "k", .attributes = {{"a", "b"}}}, {.data = "2", .key = "k"}});
  ASSERT_TRUE(ids) << ids.error().message;
  ASSERT_EQ(ids->size(), 2u);

  PullStream stream(*client_, kSubscription, {});
  std::vector<IncomingMessage> got;
  while (got.size() < 2) {
    auto some = stream.read(system_clock().now() + seconds(60));
    ASSERT_TRUE(some) << some.error().message;
    for (IncomingMessage& message : *some) {
      ASSERT_TRUE(client_->acknowledge(kSubscription, {message.ack_id}));
      got.push_back(std::move(message));
    }
  }
  EXPECT_EQ(got[0].data, "1");
  EXPECT_EQ(got[0].attributes, (Attributes{{"a", "b"}}));
  EXPECT_EQ(got[0].id, ids->at(0));
  EXPECT_EQ(got[1].data, "2");
  EXPECT_EQ(got[1].key, "k");
  EXPECT_TRUE(stream.is_ordered());
}

TEST_F(ClientTest, SeveralPublishesMayBeUnderWay) {
  create();
  std::vector<grpc_client::Stream> calls;
  for (int i = 0; i < 50; ++i)
    calls.push_back(client_->begin_publish(kTopic, {{.data = std::to_string(i)}}));
  for (grpc_client::Stream& call : calls) {
    const auto ids = client_->end_publish(call);
    ASSERT_TRUE(ids) << ids.error().message;
    EXPECT_EQ(ids->size(), 1u);
  }
}

TEST_F(ClientTest, ASeekBringsBackWhatASnapshotKept) {
  create();
  ASSERT_TRUE(client_->publish(kTopic, {{.data = "again", .key = "k"}}));
  const auto snapshot =
      client_->create_snapshot({.name = "projects/p/snapshots/before"}, kSubscription);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(snapshot->topic, kTopic);
  ASSERT_EQ(client_->snapshots("p")->size(), 1u);
  ASSERT_TRUE(client_->seek_to_time(kSubscription, system_clock().wall_now() + seconds(60)));
  ASSERT_TRUE(client_->seek_to_snapshot(kSubscription, snapshot->name));
  PullStream stream(*client_, kSubscription, {});
  const auto some = stream.read(system_clock().now() + seconds(60));
  ASSERT_TRUE(some) << some.error().message;
  ASSERT_EQ(some->size(), 1u);
  EXPECT_EQ(some->at(0).data, "again");
  ASSERT_TRUE(client_->delete_snapshot(snapshot->name));
  EXPECT_EQ(client_->get_snapshot(snapshot->name).error().code, ErrorCode::not_found);
}

TEST_F(ClientTest, AStreamOfWhatDoesNotExistEndsWithTheReason) {
  PullStream stream(*client_, kSubscription, {});
  const auto some = stream.read(system_clock().now() + seconds(60));
  ASSERT_FALSE(some);
  EXPECT_EQ(some.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace ordo::pubsub_client

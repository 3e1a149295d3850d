// What operators do with the real program: `ordo serve`, looked at and acted on by keys, key, peek,
// tail, redrive, demo and bench.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "map_program.h"
#include "ordo/adapters/pubsub_client/operator_client.h"
#include "ordo/adapters/pubsub_client/pull_stream.h"
#include "tests/support/broker_history.h"
#include "tests/support/raw_socket.h"
#include "tests/support/waiting.h"

namespace ordo::flow {
namespace {

using namespace std::chrono_literals;
using pubsub_client::Client;
using pubsub_client::IncomingMessage;
using pubsub_client::PullStream;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing_support::BrokerHistory;
using testing_support::eventually;
using testing_support::kIsSanitized;
using testing_support::RawSocket;
using testing_support::Watchdog;
using Words = std::vector<std::string>;

const std::string kTopic = "projects/ordo/topics/orders";
const std::string kSubscription = "projects/ordo/subscriptions/billing";
const std::string kDeadTopic = "projects/ordo/topics/dead";
const std::string kDeadSubscription = "projects/ordo/subscriptions/dead";

class OperatorProgramTest : public testing::Test {
 protected:
  OperatorProgramTest()
      : serve_(
            {"serve", "--listen", "127.0.0.1:0", "--data", folder_.file("data"), "--fsync", "os"}) {
    std::string at;
    while (!at.starts_with("  Pub/Sub"))
      at = serve_.read_line();
    port_ = static_cast<std::uint16_t>(std::stoul(at.substr(at.rfind(':') + 1)));
    auto connected = Client::connect({"127.0.0.1", port_});
    client_ = std::move(*connected);
  }
  ~OperatorProgramTest() override {
    client_.reset();
    serve_.signal(SIGTERM);
    const Finished end = serve_.finish();
    EXPECT_EQ(end.status, 0) << end.err;
  }

  void create(bool has_dead_letters) {
    ASSERT_TRUE(client_->create_topic({.name = kTopic}));
    pubsub_client::Subscription subscription{.name = kSubscription, .topic = kTopic};
    subscription.is_ordered = true;
    if (has_dead_letters) {
      ASSERT_TRUE(client_->create_topic({.name = kDeadTopic}));
      pubsub_client::Subscription dead{.name = kDeadSubscription, .topic = kDeadTopic};
      dead.is_ordered = true;
      ASSERT_TRUE(client_->create_subscription(dead));
      subscription.dead_letters = pubsub_client::DeadLetters{.topic = kDeadTopic};
    } else {
      subscription.retry = pubsub_client::RetryBackoff{.minimum = 300s, .maximum = 600s};
    }
    ASSERT_TRUE(client_->create_subscription(subscription));
  }
  void publish(const std::string& key, const std::vector<std::string>& data) {
    std::vector<pubsub_client::OutgoingMessage> messages;
    for (const std::string& text : data)
      messages.push_back({.data = text, .key = key, .attributes = {{"colour", "blue"}}});
    const auto ids = client_->publish(kTopic, messages);
    ASSERT_TRUE(ids) << ids.error().message;
  }
  // Receives until `handle` says that it is enough.
  void receive(const std::string& subscription,
               const std::function<bool(const IncomingMessage& message)>& handle) {
    PullStream stream(*client_, subscription, {.messages_max = 100});
    const TimePoint deadline = system_clock().now() + testing_support::kPatience;
    for (;;) {
      const auto some = stream.read(deadline);
      ASSERT_TRUE(some) << some.error().message;
      ASSERT_FALSE(some->empty()) << "nothing came";
      for (const IncomingMessage& message : *some) {
        if (handle(message)) return;
      }
    }
  }
  Finished ordo(Words words) const {
    words.push_back("--host");
    words.push_back("127.0.0.1:" + std::to_string(port_));
    return run_ordo(words);
  }
  // What a command printed, which has to succeed.
  std::vector<std::string> lines_of(const Words& words) const {
    const Finished end = ordo(words);
    EXPECT_EQ(end.status, 0) << end.err;
    return split_lines(end.out);
  }
  std::string page() const {
    RawSocket socket(port_);
    socket.send("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    std::string text;
    for (std::string more = socket.read(); !more.empty(); more = socket.read())
      text += more;
    return text;
  }

  Watchdog watchdog_{"OperatorProgramTest"};
  const Folder folder_;
  Program serve_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Client> client_;
};

TEST_F(OperatorProgramTest, AStuckKeyIsFoundByKeysAndFreedByKeySkip) {
  create(false);
  publish("good", {"fine"});
  publish("bad\n7", {"poison", "after"});
  std::size_t seen = 0;
  receive(kSubscription, [&](const IncomingMessage& message) {
    if (message.data == "poison") {
      EXPECT_TRUE(client_->modify_deadline(kSubscription, {message.ack_id}, 0s));
    } else {
      EXPECT_TRUE(client_->acknowledge(kSubscription, {message.ack_id}));
    }
    return ++seen == 2;
  });
  std::vector<std::string> stuck;
  ASSERT_TRUE(eventually([&] {
    stuck = lines_of({"keys", "billing", "--blocked"});
    return stuck.size() == 1 && stuck[0].find("\"waiting\":1") != std::string::npos;
  }));
  EXPECT_THAT(stuck[0], AllOf(HasSubstr(R"("key":"bad\n7")"), HasSubstr(R"("reason":"backoff")"),
                              HasSubstr(R"("last_failure":"nack")"), HasSubstr(R"("stuck":true)")));
  EXPECT_THAT(page(), AllOf(HasSubstr("bad\\n7"), HasSubstr("failed, waits for its next attempt"),
                            HasSubstr("<td class=\"n\">1</td>")));

  const Finished none = ordo({"key", "skip", "billing", "nobody"});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.err, HasSubstr("'ordo keys billing' lists those that wait"));
  EXPECT_THAT(lines_of({"key", "skip", "billing", "bad\n7"}),
              testing::ElementsAre("skipped the head of key bad\\n7"));
  receive(kSubscription, [&](const IncomingMessage& message) {
    EXPECT_EQ(message.data, "after");
    return true;
  });
}

TEST_F(OperatorProgramTest, APausedKeyIsResumedAndAHeadInFlightSaysWhatToDo) {
  create(false);
  publish("k", {"1", "2"});
  PullStream stream(*client_, kSubscription, {});
  const auto some = stream.read(system_clock().now() + testing_support::kPatience);
  ASSERT_TRUE(some);
  ASSERT_THAT(*some, SizeIs(1));
  const Finished flying = ordo({"key", "skip", "billing", "k"});
  EXPECT_EQ(flying.status, 1);
  EXPECT_THAT(flying.err, AllOf(HasSubstr("in flight"), HasSubstr("ordo key pause")));
  EXPECT_THAT(lines_of({"key", "pause", "billing", "k"}), testing::ElementsAre("paused key k"));
  EXPECT_TRUE(client_->acknowledge(kSubscription, {some->front().ack_id}));
  ASSERT_TRUE(eventually([&] {
    const auto lines = lines_of({"peek", "billing"});
    return lines.size() == 1 && lines[0].find(R"("reason":"paused")") != std::string::npos;
  }));
  EXPECT_THAT(lines_of({"key", "resume", "billing", "k"}), testing::ElementsAre("resumed key k"));
  const auto next = stream.read(system_clock().now() + testing_support::kPatience);
  ASSERT_TRUE(next);
  ASSERT_THAT(*next, SizeIs(1));
  EXPECT_EQ(next->front().data, "2");
}

TEST_F(OperatorProgramTest, ATailShowsWhatComesAndNeverConsumes) {
  create(false);
  Program tail({"tail", "orders", "-f", "%k=%d", "--host", "127.0.0.1:" + std::to_string(port_)});
  // It has begun once it shows something: until then there is always more.
  std::atomic<bool> has_begun{false};
  std::string first;
  std::thread reader([&] {
    first = tail.read_line();
    has_begun.store(true);
  });
  std::int64_t published = 0;
  EXPECT_TRUE(eventually([&] {
    publish("k", {"early"});
    ++published;
    return has_begun.load();
  }));
  reader.join();
  EXPECT_EQ(first, "k=early");
  publish("k", {"first of two", "second of two"});
  published += 2;
  std::string line = first;
  while (line == "k=early")
    line = tail.read_line();
  EXPECT_EQ(line, "k=first of two");
  EXPECT_EQ(tail.read_line(), "k=second of two");
  tail.signal(SIGINT);
  EXPECT_NE(tail.finish().status, 0);
  pubsub_client::OperatorClient operators(*client_);
  const auto figures = operators.figures(kSubscription);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->backlog, published);
  EXPECT_THAT(lines_of({"peek", "billing", "--top", "3"}), SizeIs(3));
}

// Every message of every key fails until it is a dead letter, is put back, and comes again in the
// order of its key. The history is judged with the others of this program.
TEST_F(OperatorProgramTest, RedrivePutsDeadLettersBackInTheOrderOfTheirKeys) {
  constexpr int kKeys = 3;
  constexpr int kMessages = 3;
  create(true);
  BrokerHistory history({.subscriptions = {{"billing", {}}}, .publisher_order = true});
  for (int key = 0; key < kKeys; ++key) {
    std::vector<std::string> data;
    for (int i = 0; i < kMessages; ++i)
      data.push_back("k" + std::to_string(key) + "#" + std::to_string(i));
    publish("k" + std::to_string(key), data);
  }
  pubsub_client::OperatorClient operators(*client_);
  const auto dead_letters = [&] {
    const auto figures = operators.figures(kDeadSubscription);
    return figures ? figures->backlog : 0;
  };
  std::set<std::string> failed;  // For the last time.
  receive(kSubscription, [&](const IncomingMessage& message) {
    EXPECT_TRUE(client_->modify_deadline(kSubscription, {message.ack_id}, 0s));
    if (message.attempt == 5) failed.insert(message.data);
    return failed.size() == kKeys * kMessages;
  });
  ASSERT_TRUE(eventually([&] { return dead_letters() == kKeys * kMessages; }));

  const auto dry = lines_of({"redrive", "dead", "--dry-run"});
  EXPECT_THAT(dry, SizeIs(kKeys));
  EXPECT_THAT(dry,
              Each(AllOf(HasSubstr(R"("origin":")" + kSubscription), HasSubstr("\"count\":3"))));
  EXPECT_EQ(dead_letters(), kKeys * kMessages);

  const std::int64_t begin = BrokerHistory::now();
  EXPECT_THAT(lines_of({"redrive", "dead", "--key", "k1"}),
              testing::ElementsAre("3 dead letters put back, 3 to orders"));
  EXPECT_THAT(lines_of({"redrive", "dead"}),
              testing::ElementsAre("6 dead letters put back, 6 to orders"));
  for (int key = 0; key < kKeys; ++key) {
    for (int i = 0; i < kMessages; ++i) {
      const std::string name = "k" + std::to_string(key);
      history.published({.publisher = "redrive",
                         .topic = "T",
                         .uid = name + "#" + std::to_string(i),
                         .key = name,
                         .seq = static_cast<std::uint64_t>(i)},
                        begin, BrokerHistory::Outcome::ok, 0);
    }
  }
  std::size_t count = 0;
  receive(kSubscription, [&](const IncomingMessage& message) {
    history.delivered("billing", "c1", message.data, message.key, message.ack_id, 0,
                      std::stoull(message.id));
    EXPECT_EQ(message.attributes, (pubsub_client::Attributes{{"colour", "blue"}}));
    const std::int64_t acked = BrokerHistory::now();
    EXPECT_TRUE(client_->acknowledge(kSubscription, {message.ack_id}));
    history.settled("ack", "billing", message.ack_id, acked, BrokerHistory::Outcome::ok);
    return ++count == kKeys * kMessages;
  });
  history.end();
  EXPECT_TRUE(history.write("redrive"));
  EXPECT_EQ(dead_letters(), 0);
  EXPECT_THAT(lines_of({"redrive", "dead", "--dry-run"}), IsEmpty());
}

TEST_F(OperatorProgramTest, RedriveSaysWhereItCannotKnowWhatToDo) {
  create(true);
  ASSERT_TRUE(client_->publish(kDeadTopic, {{.data = "lost", .key = "k"}}));
  const Finished unknown = ordo({"redrive", "dead"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.err,
              HasSubstr("does not say where it came from: say where it goes with --to"));
  pubsub_client::Subscription loose{.name = "projects/ordo/subscriptions/loose",
                                    .topic = kDeadTopic};
  ASSERT_TRUE(client_->create_subscription(loose));
  ASSERT_TRUE(client_->publish(kDeadTopic, {{.data = "again", .key = "k"}}));
  const Finished unordered = ordo({"redrive", "loose", "--to", "orders"});
  EXPECT_EQ(unordered.status, 1);
  EXPECT_THAT(unordered.err, HasSubstr("does not keep the order of keys"));
  EXPECT_THAT(lines_of({"redrive", "loose", "--to", "orders", "--any-order"}),
              testing::ElementsAre("1 dead letter put back, 1 to orders"));
}

TEST_F(OperatorProgramTest, TheDemoHasBlockedKeysToLookAtAndIsRemoved) {
  const Finished demo = ordo({"demo", "--for", "2s", "--rate", "100", "--keys", "5", "--bad", "1"});
  EXPECT_EQ(demo.status, 0) << demo.err;
  EXPECT_THAT(demo.out, AllOf(HasSubstr("ordo keys ordo-demo --blocked"), HasSubstr(" published, "),
                              HasSubstr("ordo demo --clean")));
  const auto stuck = lines_of({"keys", "ordo-demo", "--blocked"});
  ASSERT_FALSE(stuck.empty());
  EXPECT_THAT(stuck[0], HasSubstr(R"("key":"customer-0")"));
  EXPECT_THAT(lines_of({"keys", "ordo-demo", "--by", "deepest", "--top", "1"}), SizeIs(1));
  EXPECT_EQ(ordo({"demo", "--clean"}).status, 0);
  EXPECT_EQ(ordo({"demo", "--clean"}).status, 0);
  EXPECT_EQ(ordo({"keys", "ordo-demo"}).status, 1);
}

TEST(OperatorWordsTest, WithoutABrokerTheySayHowToStartOne) {
  for (const Words& words : {Words{"keys", "s-s"},
                             {"peek", "s-s"},
                             {"tail", "t-t"},
                             {"key", "skip", "s-s", "k"},
                             {"redrive", "s-s"},
                             {"demo"}}) {
    Words all = words;
    all.insert(all.end(), {"--host", "127.0.0.1:1"});
    const Finished end = run_ordo(all);
    EXPECT_EQ(end.status, 2) << words[0];
    EXPECT_THAT(end.err, HasSubstr("ordo serve")) << words[0];
  }
}

TEST(OperatorWordsTest, BenchMeasuresAndLeavesNothingBehind) {
  const Folder folder;
  const Finished end = run_ordo({"bench", "--seconds", "1", "--dir", folder.file("")});
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("\"publish_ns_p99\":"), HasSubstr("\"misordered\":0")));
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("")));
}

}  // namespace
}  // namespace ordo::flow

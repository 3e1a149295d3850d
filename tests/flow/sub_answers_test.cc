// ordo sub, against a broker that answers as the test says: late, with a refusal, or not at all.
#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <google/pubsub/v1/pubsub.pb.h>
#include <gtest/gtest.h>

#include "map_program.h"
#include "ordo/adapters/http2/server.h"
#include "ordo/app/unique_fd.h"

namespace ordo::flow {
namespace {

namespace v1 = google::pubsub::v1;
using http2::CallPtr;
using http2::Slice;
using testing::HasSubstr;

const std::string kSubscription = "projects/p/subscriptions/billing";

// A subscription whose next message comes when the one before is acknowledged. Its one I/O thread
// does everything.
class ScriptedBroker {
 public:
  using OnAck = std::function<void(const CallPtr& call, int number)>;  // The first has number 1.
  struct Script {
    OnAck on_ack = [](const CallPtr& call, int) { call->reply(Slice()); };
    bool is_starting = false;  // Streams are refused.
  };

  explicit ScriptedBroker(Script script) : script_(std::move(script)) {
    http2::Routes routes;
    routes.unary("/google.pubsub.v1.Subscriber/GetSubscription",
                 [](const CallPtr& call, std::string_view) {
                   v1::Subscription settings;
                   settings.set_name(kSubscription);
                   settings.set_enable_message_ordering(true);
                   call->reply(Slice::of(settings.SerializeAsString()));
                 });
    routes.unary("/google.pubsub.v1.Subscriber/Acknowledge",
                 [this](const CallPtr& call, std::string_view) {
                   const int number = ++acks_;
                   if (number > sent_ - 1) send_next();
                   script_.on_ack(call, number);
                 });
    routes.unary("/google.pubsub.v1.Subscriber/ModifyAckDeadline",
                 [](const CallPtr& call, std::string_view) { call->reply(Slice()); });
    routes.streaming("/google.pubsub.v1.Subscriber/StreamingPull", [this](const CallPtr& call) {
      ++streams_;
      stream_ = call;
      return std::make_unique<Handler>(*this);
    });
    http2::ServerOptions options;
    options.address = "127.0.0.1";
    options.port = 0;
    server_ = std::make_unique<http2::Server>(options, std::move(routes));
    EXPECT_TRUE(server_->start());
  }
  ScriptedBroker(const ScriptedBroker&) = delete;
  ScriptedBroker& operator=(const ScriptedBroker&) = delete;
  ~ScriptedBroker() { server_->stop(); }

  std::vector<std::string> sub(std::vector<std::string> more) const {
    std::vector<std::string> words = {"sub",    kSubscription,
                                      "--data", "--ack",
                                      "--host", "127.0.0.1:" + std::to_string(server_->port())};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  int streams() const { return streams_; }
  int acks() const { return acks_; }
  int sent() const { return sent_; }

 private:
  class Handler final : public http2::CallHandler {
   public:
    explicit Handler(ScriptedBroker& broker) : broker_(broker) {}
    void on_message(std::string_view bytes) override {
      if (bytes.empty()) return;  // Keep-alive.
      if (broker_.script_.is_starting) {
        broker_.stream_->finish({ErrorCode::unavailable, "the broker is starting"});
      } else {
        broker_.send_next();
      }
    }
    void on_half_close() override {}

   private:
    ScriptedBroker& broker_;
  };

  void send_next() {
    const std::string number = std::to_string(++sent_);
    v1::StreamingPullResponse response;
    response.mutable_subscription_properties()->set_message_ordering_enabled(true);
    v1::ReceivedMessage& received = *response.add_received_messages();
    received.set_ack_id("ack-" + number);
    received.mutable_message()->set_data(number);
    received.mutable_message()->set_message_id(number);
    received.mutable_message()->set_ordering_key("k");
    stream_->send(Slice::of(response.SerializeAsString()));
  }

  const Script script_;
  CallPtr stream_;
  std::atomic<int> streams_{0}, acks_{0}, sent_{0};
  std::unique_ptr<http2::Server> server_;
};

TEST(SubAnswersTest, TheNextMessageIsPrintedBeforeTheAckOfTheLastIsAnswered) {
  std::vector<CallPtr> unanswered;
  ScriptedBroker broker({.on_ack = [&](const CallPtr& call, int number) {
    unanswered.push_back(call);
    if (number < 5) return;
    for (const CallPtr& one : std::exchange(unanswered, {}))
      one->reply(Slice());
  }});
  const Finished end = run_ordo(broker.sub({"--count", "5"}));
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_EQ(end.out, "1\n2\n3\n4\n5\n");
}

TEST(SubAnswersTest, AnAckThatCannotBeStoredNowIsSaidAgain) {
  ScriptedBroker broker({.on_ack = [](const CallPtr& call, int number) {
    if (number < 3) return call->finish({ErrorCode::unavailable, "no room on the disk"});
    call->reply(Slice());
  }});
  const Finished end = run_ordo(broker.sub({"--count", "1"}));
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_EQ(end.out, "1\n");
  EXPECT_THAT(end.err, HasSubstr("are to be said again: no room on the disk"));
  EXPECT_EQ(broker.acks(), 3);
  EXPECT_EQ(broker.streams(), 1);
}

TEST(SubAnswersTest, AnAckThatCameTooLateEndsNothing) {
  ScriptedBroker broker({.on_ack = [](const CallPtr& call, int number) {
    if (number == 1) return call->finish({ErrorCode::invalid_argument, "expired"});
    call->reply(Slice());
  }});
  const Finished end = run_ordo(broker.sub({"--count", "2"}));
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_EQ(end.out, "1\n2\n");
  EXPECT_THAT(end.err, HasSubstr("came too late: expired"));
}

TEST(SubAnswersTest, ARefusalOfAnAckIsTheEnd) {
  ScriptedBroker broker({.on_ack = [](const CallPtr& call, int) {
    call->finish({ErrorCode::not_found, "the subscription is gone"});
  }});
  const Finished end = run_ordo(broker.sub({"--count", "1"}));
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.err, HasSubstr("the subscription is gone"));
}

// Asked without a pause it would be asked thousands of times, and never be idle.
TEST(SubAnswersTest, ABrokerThatIsStartingIsAskedLessAndLessOften) {
  ScriptedBroker broker({.is_starting = true});
  const Finished end = run_ordo(broker.sub({"--idle", "300ms"}));
  EXPECT_EQ(end.status, 0) << end.err;
  EXPECT_EQ(end.out, "");
  EXPECT_LT(broker.streams(), 10);
  EXPECT_EQ(end.err, "ordo: the broker is starting; looking for it again\n");
}

TEST(SubAnswersTest, ASecondSignalEndsTheWaitForAnAnswer) {
  std::vector<CallPtr> unanswered;
  ScriptedBroker broker({.on_ack = [&](const CallPtr& call, int) { unanswered.push_back(call); }});
  const Folder folder;
  FifoReader errors(folder.fifo("errors"));
  const app::UniqueFd err(::open(folder.file("errors").c_str(), O_WRONLY | O_CLOEXEC));
  Program sub(broker.sub({}), err.get());
  EXPECT_EQ(sub.read_line(), "1");
  sub.signal(SIGTERM);
  EXPECT_THAT(errors.read_line(), HasSubstr("waiting for the broker to answer"));
  sub.signal(SIGTERM);
  EXPECT_THAT(errors.read_line(), HasSubstr("has not answered"));
  EXPECT_EQ(sub.finish().status, 2);
}

}  // namespace
}  // namespace ordo::flow

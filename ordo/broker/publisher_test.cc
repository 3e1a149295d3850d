#include "ordo/broker/publisher.h"

#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/waiting.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;
using broker::MessageBody;
using broker::MessageId;
using broker::NewMessage;
using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::Background;
using testing_support::eventually;
using testing_support::Watchdog;

// Takes batches, and answers when it is told to.
class Wire {
 public:
  struct Sent {
    std::string key;
    std::vector<std::string> data;
    Publisher::OnPublished answer;
  };

  Publisher::SendBatch sender() {
    return [this](std::vector<MessageBody>&& bodies, Publisher::OnPublished answer) {
      Sent sent;
      sent.key = bodies.front().key();
      for (const MessageBody& body : bodies)
        sent.data.emplace_back(broker::decode_message(body.bytes)->data);
      sent.answer = std::move(answer);
      const std::lock_guard lock(mutex_);
      order_.insert(order_.end(), sent.data.begin(), sent.data.end());
      sent_.push_back(std::move(sent));
    };
  }

  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return sent_.size();
  }
  std::vector<std::string> order() const {
    const std::lock_guard lock(mutex_);
    return order_;
  }
  std::vector<std::string> batch(std::size_t index) const {
    const std::lock_guard lock(mutex_);
    return sent_[index].data;
  }
  void accept(std::size_t index, std::uint64_t first_id = 1) {
    take_answer(index)(MessageId(first_id));
  }
  void refuse(std::size_t index) {
    take_answer(index)(Error{ErrorCode::unavailable, "the disk is on fire"});
  }
  // Accepts everything, now and later, until all of `count` messages have been sent.
  void accept_all(std::size_t message_count) {
    ASSERT_TRUE(eventually([&] {
      for (std::size_t index = 0; index < count(); ++index) {
        if (is_open(index)) accept(index, 1);
      }
      return order().size() == message_count;
    }));
    for (std::size_t index = 0; index < count(); ++index) {
      if (is_open(index)) accept(index, 1);
    }
  }

 private:
  bool is_open(std::size_t index) const {
    const std::lock_guard lock(mutex_);
    return sent_[index].answer != nullptr;
  }
  Publisher::OnPublished take_answer(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return std::exchange(sent_[index].answer, nullptr);
  }

  mutable std::mutex mutex_;
  std::deque<Sent> sent_;
  std::vector<std::string> order_;
};

class PublisherTest : public testing::Test {
 protected:
  Publisher make(const PublisherOptions& options) {
    return Publisher(options, clock_, timer_, wire_.sender());
  }
  static NewMessage keyed(std::string key, std::string data) {
    return {.data = std::move(data), .ordering_key = std::move(key)};
  }
  Publisher::OnPublished note(std::string name) {
    return [this, name = std::move(name)](const Result<MessageId>& id) {
      const std::lock_guard lock(mutex_);
      answers_.push_back(name + (id ? "=" + std::to_string(id->value())
                                    : " " + std::string(error_code_name(id.error().code))));
    };
  }
  std::vector<std::string> answers() {
    const std::lock_guard lock(mutex_);
    return answers_;
  }

  ManualClock clock_;
  Timer timer_{clock_};
  Wire wire_;
  std::mutex mutex_;
  std::vector<std::string> answers_;
  Watchdog watchdog_{"PublisherTest"};
};

TEST_F(PublisherTest, SendsABatchWhenItHasAllItsMessages) {
  Publisher publisher = make({.batch_messages_max = 2});
  publisher.publish(keyed("k", "1"), note("1"));
  EXPECT_EQ(wire_.count(), 0u);
  publisher.publish(keyed("k", "2"), note("2"));

  ASSERT_EQ(wire_.count(), 1u);
  EXPECT_THAT(wire_.batch(0), ElementsAre("1", "2"));
  wire_.accept(0, 7);
  EXPECT_THAT(answers(), ElementsAre("1=7", "2=8"));
}

TEST_F(PublisherTest, SendsABatchWhenItHasItsBytes) {
  Publisher publisher = make({.batch_bytes_max = 1000});
  publisher.publish(keyed("k", std::string(600, 'a')), note("1"));
  publisher.publish(keyed("k", std::string(600, 'b')), note("2"));

  ASSERT_EQ(wire_.count(), 1u) << "the second would make the first batch too large";
  wire_.accept(0);
  publisher.flush();
  wire_.accept(1);
  EXPECT_EQ(answers().size(), 2u);
}

TEST_F(PublisherTest, SendsABatchThatIsOldEnough) {
  Publisher publisher = make({.batch_delay_max = 10ms});
  publisher.publish(keyed("k", "1"), note("1"));
  clock_.wait_for_waiters(1);
  clock_.advance(10ms);

  ASSERT_TRUE(eventually([&] { return wire_.count() == 1; }));
  wire_.accept(0);
}

TEST_F(PublisherTest, ABatchHoldsOneKey) {
  Publisher publisher = make({});
  publisher.publish(keyed("a", "1"), note("1"));
  publisher.publish(keyed("b", "2"), note("2"));
  publisher.flush();

  ASSERT_EQ(wire_.count(), 2u);
  wire_.accept(0);
  wire_.accept(1);
}

TEST_F(PublisherTest, TheNextBatchOfAKeyWaitsForTheAnswerToTheOneBefore) {
  Publisher publisher = make({.batch_messages_max = 1});
  publisher.publish(keyed("k", "1"), note("1"));
  publisher.publish(keyed("k", "2"), note("2"));
  publisher.flush();
  EXPECT_THAT(wire_.order(), ElementsAre("1"));

  wire_.accept(0);
  EXPECT_THAT(wire_.order(), ElementsAre("1", "2"));
  wire_.accept(1);
}

TEST_F(PublisherTest, MessagesWithoutAKeyDoNotWaitForEachOther) {
  Publisher publisher = make({.batch_messages_max = 1});
  publisher.publish({.data = "1"}, note("1"));
  publisher.publish({.data = "2"}, note("2"));

  EXPECT_EQ(wire_.count(), 2u);
  wire_.accept(1, 2);
  wire_.accept(0, 1);
  EXPECT_THAT(answers(), ElementsAre("2=2", "1=1"));
}

TEST_F(PublisherTest, AFailedPublishPausesItsKeyUntilItIsResumed) {
  Publisher publisher = make({.batch_messages_max = 1});
  publisher.publish(keyed("k", "1"), note("1"));
  publisher.publish(keyed("k", "2"), note("2"));
  publisher.publish(keyed("other", "3"), note("3"));
  wire_.refuse(0);
  wire_.accept(1, 9);
  publisher.publish(keyed("k", "4"), note("4"));

  EXPECT_THAT(answers(), ElementsAre("1 UNAVAILABLE", "2 FAILED_PRECONDITION", "3=9",
                                     "4 FAILED_PRECONDITION"));
  EXPECT_EQ(publisher.stats().paused_keys, 1u);
  EXPECT_TRUE(publisher.resume_publish("k"));
  EXPECT_FALSE(publisher.resume_publish("k"));
  publisher.publish(keyed("k", "1"), note("again"));
  wire_.accept(2, 10);
  EXPECT_THAT(wire_.order(), ElementsAre("1", "3", "1"));
  EXPECT_EQ(answers().back(), "again=10");
}

TEST_F(PublisherTest, AFailedPublishWithoutAKeyPausesNothing) {
  Publisher publisher = make({.batch_messages_max = 1});
  publisher.publish({.data = "1"}, note("1"));
  wire_.refuse(0);
  publisher.publish({.data = "2"}, note("2"));
  wire_.accept(1);
  EXPECT_THAT(answers(), ElementsAre("1 UNAVAILABLE", "2=1"));
}

TEST_F(PublisherTest, WaitsWhileAsManyMessagesAreUnderWayAsMayBe) {
  Publisher publisher = make({.batch_messages_max = 1, .outstanding_messages_max = 2});
  publisher.publish({.data = "1"}, note("1"));
  publisher.publish({.data = "2"}, note("2"));
  Background third([&] { publisher.publish({.data = "3"}, note("3")); });
  EXPECT_EQ(publisher.stats().outstanding_messages, 2u);

  wire_.accept(0);
  ASSERT_TRUE(third.finished());
  EXPECT_THAT(wire_.order(), ElementsAre("1", "2", "3"));
  wire_.accept(1);
  wire_.accept(2);
}

TEST_F(PublisherTest, ASmallMessageNeverOvertakesALargeOne) {
  Publisher publisher = make({.batch_messages_max = 1, .outstanding_bytes_max = 1000});
  publisher.publish(keyed("k", std::string(800, 'a')), note("first"));
  Background large([&] { publisher.publish(keyed("k", std::string(900, 'b')), note("large")); });
  testing_support::let_others_fall_asleep();
  Background small([&] { publisher.publish(keyed("k", "c"), note("small")); });
  testing_support::let_others_fall_asleep();

  wire_.accept_all(3);
  ASSERT_TRUE(large.finished() && small.finished());
  const std::vector<std::string> order = wire_.order();
  EXPECT_EQ(order[1].size(), 900u);
  EXPECT_EQ(order[2], "c");
}

TEST_F(PublisherTest, AMessageLargerThanTheLimitGoesAlone) {
  Publisher publisher = make({.batch_messages_max = 1, .outstanding_bytes_max = 100});
  publisher.publish({.data = std::string(5000, 'x')}, note("huge"));
  ASSERT_EQ(wire_.count(), 1u);
  wire_.accept(0);
}

TEST_F(PublisherTest, RefusesInsteadOfWaitingWhenToldSoAndPausesTheKey) {
  Publisher publisher = make({.batch_messages_max = 1,
                              .outstanding_messages_max = 1,
                              .when_full = PublisherOptions::WhenFull::error});
  publisher.publish({.data = "1"}, note("1"));
  publisher.publish(keyed("k", "2"), note("2"));
  wire_.accept(0);
  publisher.publish(keyed("k", "3"), note("3"));

  EXPECT_THAT(answers(), ElementsAre("2 RESOURCE_EXHAUSTED", "1=1", "3 FAILED_PRECONDITION"));
  publisher.resume_publish("k");
  publisher.publish(keyed("k", "2"), note("2"));
  wire_.accept(1);
}

TEST_F(PublisherTest, WhoWaitsForRoomSendsWhatWaitsForItsBatch) {
  Publisher publisher = make({.outstanding_messages_max = 1});
  publisher.publish({.data = "1"}, note("1"));  // Not sent: its batch may still grow.
  Background second([&] { publisher.publish({.data = "2"}, note("2")); });

  ASSERT_TRUE(eventually([&] { return wire_.count() == 1; }));
  wire_.accept(0);
  ASSERT_TRUE(second.finished());
  publisher.flush();
  wire_.accept(1);
}

TEST_F(PublisherTest, AFlushReachesWhatWaitsBehindABatchThatIsNotAnswered) {
  Publisher publisher = make({});
  publisher.publish(keyed("k", "1"), note("1"));
  publisher.flush();
  publisher.publish(keyed("k", "2"), note("2"));
  publisher.flush();
  EXPECT_EQ(wire_.count(), 1u);
  wire_.accept(0);
  ASSERT_EQ(wire_.count(), 2u);
  wire_.accept(1);
}

TEST_F(PublisherTest, AFlushDoesNotHurryWhatIsPublishedAfterIt) {
  Publisher publisher = make({});
  publisher.publish(keyed("k", "1"), note("1"));
  publisher.flush();
  publisher.publish(keyed("k", "2"), note("2"));
  wire_.accept(0);
  EXPECT_EQ(wire_.count(), 1u);
  publisher.flush();
  wire_.accept(1);
}

// A flush that looked at every key would take minutes here.
TEST_F(PublisherTest, AFlushCostsTheSameHoweverManyKeysArePausedOrWaitForAnAnswer) {
  std::vector<Publisher::OnPublished> unanswered;
  Publisher publisher({.batch_messages_max = 1, .outstanding_messages_max = 100'000}, clock_,
                      timer_, [&](std::vector<MessageBody>&&, Publisher::OnPublished answer) {
                        unanswered.push_back(std::move(answer));
                        if (unanswered.size() % 2 == 0) return;
                        unanswered.back()(Error{ErrorCode::unavailable, "no"});
                      });
  for (int i = 0; i < 50'000; ++i)
    publisher.publish(keyed(std::to_string(i), "1"), [](const Result<MessageId>&) {});
  EXPECT_EQ(publisher.stats().paused_keys, 25'000u);
  for (int i = 0; i < 400'000; ++i)
    publisher.flush();
  for (std::size_t i = 1; i < unanswered.size(); i += 2)
    unanswered[i](MessageId(i));
  EXPECT_EQ(publisher.stats().published, 25'000u);
}

TEST_F(PublisherTest, AnInvalidMessageIsRefusedAndPausesNothing) {
  Publisher publisher = make({.batch_messages_max = 1});
  publisher.publish(keyed("", "1"), note("empty key"));
  publisher.publish(keyed("k", ""), note("empty message"));
  publisher.publish(keyed("k", "1"), note("good"));
  wire_.accept(0);
  EXPECT_THAT(answers(), ElementsAre("empty key INVALID_ARGUMENT", "empty message INVALID_ARGUMENT",
                                     "good=1"));
}

TEST_F(PublisherTest, ClosingSendsWhatWaitsAndWaitsForTheAnswers) {
  Publisher publisher = make({});
  publisher.publish({.data = "1"}, note("1"));
  Background closing([&] { EXPECT_TRUE(publisher.close(TimePoint::max())); });
  ASSERT_TRUE(eventually([&] { return wire_.count() == 1; }));
  wire_.accept(0);
  ASSERT_TRUE(closing.finished());
  EXPECT_THAT(answers(), ElementsAre("1=1"));

  publisher.publish({.data = "2"}, note("2"));
  EXPECT_EQ(answers().back(), "2 CANCELLED");
}

TEST_F(PublisherTest, ManyThreadsKeepTheOrderOfEachKey) {
  Publisher publisher = make({.batch_messages_max = 7, .outstanding_messages_max = 20});
  constexpr int kThreads = 4;
  constexpr int kEach = 200;
  std::vector<std::unique_ptr<Background>> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.push_back(std::make_unique<Background>([&publisher, this, thread] {
      for (int i = 0; i < kEach; ++i)
        publisher.publish(keyed(std::string("k").append(std::to_string(thread)),
                                std::to_string(thread).append(":").append(std::to_string(i))),
                          note("x"));
      publisher.flush();
    }));
  }
  wire_.accept_all(kThreads * kEach);
  for (auto& thread : threads)
    ASSERT_TRUE(thread->finished());
  std::vector<int> next(kThreads, 0);
  for (const std::string& data : wire_.order()) {
    const auto thread = static_cast<std::size_t>(data[0] - '0');
    EXPECT_EQ(data.substr(2), std::to_string(next[thread]++));
  }
  ASSERT_TRUE(eventually([&] { return answers().size() == kThreads * kEach; }));
}

TEST(PublisherOptionsTest, ValuesThatMakeNoSenseAreNamed) {
  EXPECT_TRUE(check_options(PublisherOptions{}));
  EXPECT_FALSE(check_options(PublisherOptions{.batch_messages_max = 0}));
  EXPECT_FALSE(check_options(PublisherOptions{.batch_messages_max = 1001}));
  EXPECT_FALSE(check_options(PublisherOptions{.batch_bytes_max = 10'000'001}));
  EXPECT_FALSE(check_options(PublisherOptions{.batch_delay_max = -1ns}));
  EXPECT_FALSE(check_options(PublisherOptions{.outstanding_messages_max = 0}));
  const Status status = check_options(PublisherOptions{.outstanding_bytes_max = 0});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, testing::HasSubstr("outstanding_bytes_max"));
}

}  // namespace
}  // namespace ordo

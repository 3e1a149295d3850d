// NATS JetStream with file storage, through its C client. It syncs now and then, not before it
// answers.
//
// Without keys: one stream, one consumer that is pushed to. JetStream has no order by key: with
// keys there are `lanes` streams, each with a consumer that has one message in flight.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <nats/nats.h>

#include "bench/wire/load.h"
#include "bench/wire/system.h"

namespace ordo::bench {
namespace {

constexpr std::int64_t kPatienceMs = 60'000;

void check(natsStatus status, const char* what) {
  if (status == NATS_OK) return;
  const char* const more = nats_GetLastError(nullptr);
  give_up(std::string(what) + ": " + natsStatus_GetText(status) + " " + (more ? more : ""));
}

std::string subject_of(std::size_t lane) {
  return "wire." + std::to_string(lane);
}
std::string stream_of(std::size_t lane) {
  return "WIRE" + std::to_string(lane);
}

// Counts what the library's thread tells of, and wakes who waits for it.
class Count {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++count_;
    if (is_awaited_) grew_.notify_one();
  }
  // Waits until it is above `seen`, `wait_ns` at most; returns what it is.
  std::uint64_t await_above(std::uint64_t seen, std::uint64_t wait_ns) {
    std::unique_lock lock(mutex_);
    is_awaited_ = true;
    grew_.wait_for(lock, std::chrono::nanoseconds(wait_ns), [&] { return count_ > seen; });
    is_awaited_ = false;
    return count_;
  }

 private:
  std::mutex mutex_{};
  std::condition_variable grew_{};
  std::uint64_t count_ = 0;
  bool is_awaited_ = false;
};

class Connection {
 public:
  // `answers` counts publishes that were answered; it may be null.
  Connection(const WirePlan& plan, Count* answers) {
    natsOptions* options = nullptr;
    check(natsOptions_Create(&options), "options");
    check(natsOptions_SetURL(options, ("nats://127.0.0.1:" + std::to_string(plan.port)).c_str()),
          "address");
    check(natsOptions_SetMaxPendingMsgs(options, 1'000'000), "options");
    if (plan.lanes > 0) check(natsOptions_UseGlobalMessageDelivery(options, true), "options");
    // It would else gather what is sent for a while, which is good for many and bad for few.
    if (plan.rate > 0 || plan.window == 1) check(natsOptions_SetSendAsap(options, true), "options");
    check(natsConnection_Connect(&connection_, options), "connect");
    natsOptions_Destroy(options);
    jsOptions of_stream;
    check(jsOptions_Init(&of_stream), "options");
    of_stream.PublishAsync.MaxPending = 1'000'000;  // The load keeps its own window.
    of_stream.PublishAsync.StallWait = kPatienceMs;
    of_stream.Wait = kPatienceMs;
    if (answers != nullptr) {
      of_stream.PublishAsync.AckHandler = on_answer;
      of_stream.PublishAsync.AckHandlerClosure = answers;
    }
    check(natsConnection_JetStream(&stream_, connection_, &of_stream), "JetStream");
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    jsCtx_Destroy(stream_);
    natsConnection_Destroy(connection_);
  }

  jsCtx* stream() const { return stream_; }
  void flush() { check(natsConnection_FlushTimeout(connection_, kPatienceMs), "flush"); }

 private:
  static void on_answer(jsCtx* /*stream*/, natsMsg* message, jsPubAck* /*answer*/,
                        jsPubAckErr* error, void* answers) {
    if (error != nullptr) give_up(std::string("publish: ") + error->ErrText);
    natsMsg_Destroy(message);
    static_cast<Count*>(answers)->add();
  }

  natsConnection* connection_ = nullptr;
  jsCtx* stream_ = nullptr;
};

class NatsPublisher final : public Publisher {
 public:
  explicit NatsPublisher(const WirePlan& plan) : lanes_(plan.lanes), connection_(plan, &answers_) {}

  void send(std::uint64_t key, const std::vector<std::string>& bodies) override {
    const std::string subject = subject_of(key == kNoKey ? 0 : key % lanes_);
    for (const std::string& body : bodies)
      check(js_PublishAsync(connection_.stream(), subject.c_str(), body.data(),
                            static_cast<int>(body.size()), nullptr),
            "publish");
    sent_ += bodies.size();
    under_way_.push_back(sent_);
  }

  void receive(std::uint64_t wait_ns, std::vector<std::uint64_t>& answered) override {
    const std::uint64_t awaited = under_way_.empty() ? sent_ : under_way_.front() - 1;
    const std::uint64_t count = answers_.await_above(awaited, wait_ns);
    while (!under_way_.empty() && under_way_.front() <= count) {
      under_way_.pop_front();
      answered.push_back(requests_answered_++);
    }
  }

 private:
  const std::size_t lanes_;
  Count answers_{};
  Connection connection_;
  std::uint64_t sent_ = 0;
  std::deque<std::uint64_t> under_way_{};  // Messages sent up to each request's end.
  std::uint64_t requests_answered_ = 0;
};

// The library's thread collects; receive() takes all of it.
class NatsConsumer final : public Consumer {
 public:
  explicit NatsConsumer(const WirePlan& plan)
      : connection_(plan, nullptr),
        subscriptions_(std::max<std::size_t>(plan.lanes, 1)) {
    constexpr std::int64_t kAckWaitNs = 60'000'000'000;
    for (std::size_t lane = 0; lane < subscriptions_.size(); ++lane) {
      jsSubOptions options;
      check(jsSubOptions_Init(&options), "options");
      options.ManualAck = true;
      options.Config.AckPolicy = js_AckExplicit;
      options.Config.AckWait = kAckWaitNs;
      options.Config.MaxAckPending = plan.lanes > 0 ? 1 : 10'000;
      const std::string name = "consumer" + std::to_string(lane);
      options.Config.Durable = name.c_str();
      jsErrCode error{};
      natsSubscription*& subscription = subscriptions_[lane];
      check(js_Subscribe(&subscription, connection_.stream(), subject_of(lane).c_str(), on_message,
                         this, nullptr, &options, &error),
            "subscribe");
      check(natsSubscription_SetPendingLimits(subscription, -1, -1), "subscribe");
    }
  }
  ~NatsConsumer() override {
    for (natsSubscription* subscription : subscriptions_)
      natsSubscription_Destroy(subscription);
  }

  void receive(std::uint64_t wait_ns, const Sink& sink) override {
    {
      std::unique_lock lock(mutex_);
      came_.wait_for(lock, std::chrono::nanoseconds(wait_ns), [this] { return !waiting_.empty(); });
      taken_.swap(waiting_);
    }
    for (natsMsg* const message : taken_) {
      Receipt receipt;
      receipt.number = reinterpret_cast<std::uintptr_t>(message);
      sink({natsMsg_GetData(message), static_cast<std::size_t>(natsMsg_GetDataLength(message))},
           std::move(receipt));
    }
    taken_.clear();
  }

  void acknowledge(std::vector<Receipt>& receipts) override {
    for (const Receipt& receipt : receipts) {
      auto* const message = reinterpret_cast<natsMsg*>(receipt.number);
      check(natsMsg_Ack(message, nullptr), "acknowledge");
      natsMsg_Destroy(message);
    }
  }

  void finish() override { connection_.flush(); }

 private:
  static void on_message(natsConnection* /*connection*/, natsSubscription* /*subscription*/,
                         natsMsg* message, void* consumer) {
    auto& self = *static_cast<NatsConsumer*>(consumer);
    const std::lock_guard lock(self.mutex_);
    self.waiting_.push_back(message);
    if (self.waiting_.size() == 1) self.came_.notify_one();
  }

  std::mutex mutex_{};
  std::condition_variable came_{};
  std::vector<natsMsg*> waiting_{};
  std::vector<natsMsg*> taken_{};
  Connection connection_;
  std::vector<natsSubscription*> subscriptions_;
};

class NatsSystem final : public System {
 public:
  explicit NatsSystem(const WirePlan& plan) : plan_(plan), connection_(plan, nullptr) {
    if (plan.keys > 0 && plan.lanes == 0) give_up("JetStream needs lanes for its keys");
    nats_SetMessageDeliveryPoolSize(1);
    clear();
    for (std::size_t lane = 0; lane < lanes(); ++lane) {
      jsStreamConfig config;
      check(jsStreamConfig_Init(&config), "options");
      const std::string name = stream_of(lane);
      const std::string subject = subject_of(lane);
      const char* subjects[] = {subject.c_str()};
      config.Name = name.c_str();
      config.Subjects = subjects;
      config.SubjectsLen = 1;
      config.Storage = js_FileStorage;
      config.Replicas = 1;
      jsErrCode error{};
      check(js_AddStream(nullptr, connection_.stream(), &config, nullptr, &error), "stream");
    }
  }

  std::unique_ptr<Publisher> publisher() override { return std::make_unique<NatsPublisher>(plan_); }
  std::unique_ptr<Consumer> consumer() override { return std::make_unique<NatsConsumer>(plan_); }
  void clear() override {
    for (std::size_t lane = 0; lane < lanes(); ++lane) {
      jsErrCode error{};
      js_DeleteStream(connection_.stream(), stream_of(lane).c_str(), nullptr, &error);
    }
  }

 private:
  std::size_t lanes() const { return std::max<std::size_t>(plan_.lanes, 1); }

  const WirePlan plan_;
  Connection connection_;
};

}  // namespace

std::unique_ptr<System> make_system(const WirePlan& plan) {
  return std::make_unique<NatsSystem>(plan);
}

}  // namespace ordo::bench

int main(int argc, char** argv) {
  return ordo::bench::run_driver(argc, argv);
}

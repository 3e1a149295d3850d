// bench_wire_shell: what gRPC's own C++ library makes of the same API, with nearly nothing behind.
//
//   bench_wire_shell broker FILE     publishes are appended to FILE and synced by a thread that
//                                    takes all that wait, then answered; of a key one at a time
//   bench_wire_shell echo FORM       answers the health service's Check: cq1, cq2 (completion
//                                    queues, each with a thread) or callback
//
// It says `listening 127.0.0.1:PORT`, and serves until it is killed. It cannot redeliver, recover
// or refuse: it shows what the library, the bookkeeping of keys and the disk cost.
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <utility>
#include <vector>

#include <google/pubsub/v1/pubsub.grpc.pb.h>
#include <grpcpp/grpcpp.h>

#include "bench/wire/shell_parts.h"

namespace ordo::bench {
namespace {

namespace api = google::pubsub::v1;
struct StoredMessage {
  std::uint64_t id = 0;
  std::string data{};
  std::string key{};
};

// The messages of one subscription.
// Threads: whoever holds `mutex`.
class Backlog {
 public:
  std::mutex mutex;

  void reset(bool is_ordered) {
    is_ordered_ = is_ordered;
    ready_.clear();
    keys_.clear();
    key_of_.clear();
  }
  std::uint64_t next_id() { return next_id_++; }
  bool empty() const { return ready_.empty(); }

  void add(StoredMessage message) {
    if (is_ordered_ && !message.key.empty()) {
      Key& key = keys_[message.key];
      if (std::exchange(key.is_in_flight, true)) {
        key.waiting.push_back(std::move(message));
        return;
      }
    }
    ready_.push_back(std::move(message));
  }

  StoredMessage take() {
    StoredMessage message = std::move(ready_.front());
    ready_.pop_front();
    if (is_ordered_ && !message.key.empty()) key_of_.emplace(message.id, message.key);
    return message;
  }

  void acknowledge(const std::string& id) {
    if (!is_ordered_) return;
    const auto found = key_of_.find(std::stoull(id));
    if (found == key_of_.end()) return;
    Key& key = keys_[found->second];
    key_of_.erase(found);
    if (key.waiting.empty()) {
      key.is_in_flight = false;
    } else {
      ready_.push_back(std::move(key.waiting.front()));
      key.waiting.pop_front();
    }
  }

 private:
  struct Key {
    std::deque<StoredMessage> waiting{};
    bool is_in_flight = false;
  };

  bool is_ordered_ = false;
  std::uint64_t next_id_ = 1;
  std::deque<StoredMessage> ready_{};
  std::unordered_map<std::string, Key> keys_{};
  std::unordered_map<std::uint64_t, std::string> key_of_{};  // Of those in flight.
};

class Stream;
class PublishCall;

// The file, and who waits for it.
// Threads: add(): any; run(): one that is its own.
class Log {
 public:
  explicit Log(const std::string& path)
      : file_(::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600)) {
    if (file_ < 0) give_up("cannot write " + path);
  }

  void add(PublishCall* call) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(call);
    if (waiting_.size() == 1) has_work_.notify_one();
  }
  void run();

 private:
  const int file_;
  std::mutex mutex_{};
  std::condition_variable has_work_{};
  std::vector<PublishCall*> waiting_{};
};

struct Shell {
  explicit Shell(const std::string& path) : log(path) {}

  api::Publisher::AsyncService publisher{};
  api::Subscriber::AsyncService subscriber{};
  Queue* queue = nullptr;
  Backlog backlog{};
  Stream* stream = nullptr;  // The newest.
  Log log;
};

// Threads: its events on the queue's; send(): whoever holds the backlog's mutex.
class Stream {
 public:
  explicit Stream(Shell& shell) : shell_(shell) {
    shell_.subscriber.RequestStreamingPull(&context_, &stream_, shell_.queue, shell_.queue,
                                           &opened_);
  }

  void send() {
    constexpr int kMessagesMax = 100;
    if (is_writing_ || is_over_ || shell_.backlog.empty()) return;
    response_.Clear();
    while (!shell_.backlog.empty() && response_.received_messages_size() < kMessagesMax) {
      StoredMessage stored = shell_.backlog.take();
      api::ReceivedMessage& received = *response_.add_received_messages();
      const std::string id = std::to_string(stored.id);
      received.set_ack_id(id);
      api::PubsubMessage& message = *received.mutable_message();
      message.mutable_data()->swap(stored.data);
      message.set_message_id(id);
      message.mutable_publish_time()->set_seconds(1'700'000'000);
      if (!stored.key.empty()) message.mutable_ordering_key()->swap(stored.key);
    }
    is_writing_ = true;
    stream_.Write(response_, &written_);
  }

 private:
  using Happens = void (Stream::*)(bool is_ok);
  class Part final : public Event {
   public:
    Part(Stream& stream, Happens happens) : stream_(stream), happens_(happens) {}
    void happen(bool is_ok) override { (stream_.*happens_)(is_ok); }

   private:
    Stream& stream_;
    const Happens happens_;
  };

  void on_open(bool is_ok) {
    if (!is_ok) return;
    new Stream(shell_);  // For the next one. None is ever freed: a run has few.
    const std::lock_guard lock(shell_.backlog.mutex);
    shell_.stream = this;
    stream_.Read(&request_, &read_);
    send();
  }
  void on_read(bool is_ok) {
    const std::lock_guard lock(shell_.backlog.mutex);
    if (!is_ok) return end();
    for (const std::string& id : request_.ack_ids())
      shell_.backlog.acknowledge(id);
    stream_.Read(&request_, &read_);
    send();
  }
  void on_written(bool is_ok) {
    const std::lock_guard lock(shell_.backlog.mutex);
    is_writing_ = false;
    if (!is_ok) return end();
    send();
  }
  void on_finished(bool /*is_ok*/) {}
  void end() {
    if (std::exchange(is_over_, true)) return;
    if (shell_.stream == this) shell_.stream = nullptr;
    stream_.Finish(grpc::Status::OK, &finished_);
  }

  Shell& shell_;
  grpc::ServerContext context_{};
  grpc::ServerAsyncReaderWriter<api::StreamingPullResponse, api::StreamingPullRequest> stream_{
      &context_};
  api::StreamingPullRequest request_{};
  api::StreamingPullResponse response_{};
  bool is_writing_ = false;
  bool is_over_ = false;
  Part opened_{*this, &Stream::on_open};
  Part read_{*this, &Stream::on_read};
  Part written_{*this, &Stream::on_written};
  Part finished_{*this, &Stream::on_finished};
};

class PublishCall final : public Event {
 public:
  explicit PublishCall(Shell& shell) : shell_(shell) {
    shell_.publisher.RequestPublish(&context_, &request_, &writer_, shell_.queue, shell_.queue,
                                    this);
  }

  void happen(bool is_ok) override {
    if (!is_ok || std::exchange(is_asked_, true)) {
      delete this;
      return;
    }
    new PublishCall(shell_);
    {
      const std::lock_guard lock(shell_.backlog.mutex);
      for (api::PubsubMessage& message : *request_.mutable_messages()) {
        StoredMessage& stored = messages_.emplace_back();
        stored.id = shell_.backlog.next_id();
        stored.data.swap(*message.mutable_data());
        stored.key.swap(*message.mutable_ordering_key());
        response_.add_message_ids(std::to_string(stored.id));
      }
    }
    shell_.log.add(this);
  }

  const std::vector<StoredMessage>& messages() const { return messages_; }
  // REQUIRES: the backlog's mutex is held.
  void deliver() {
    for (StoredMessage& message : messages_)
      shell_.backlog.add(std::move(message));
    if (shell_.stream != nullptr) shell_.stream->send();
  }
  void answer() { writer_.Finish(response_, grpc::Status::OK, this); }
  Backlog& backlog() { return shell_.backlog; }

 private:
  Shell& shell_;
  grpc::ServerContext context_{};
  api::PublishRequest request_{};
  api::PublishResponse response_{};
  grpc::ServerAsyncResponseWriter<api::PublishResponse> writer_{&context_};
  std::vector<StoredMessage> messages_{};
  bool is_asked_ = false;
};

void Log::run() {
  std::vector<PublishCall*> calls;
  std::string bytes;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      has_work_.wait(lock, [this] { return !waiting_.empty(); });
      calls.swap(waiting_);
    }
    bytes.clear();
    for (const PublishCall* call : calls) {
      for (const StoredMessage& message : call->messages()) {
        const std::uint64_t head[] = {message.id, message.key.size(), message.data.size()};
        bytes.append(reinterpret_cast<const char*>(head), sizeof(head));
        bytes.append(message.key).append(message.data);
      }
    }
    if (::write(file_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
        ::fdatasync(file_) != 0)
      give_up("cannot write the log");
    {
      const std::lock_guard lock(calls.front()->backlog().mutex);
      for (PublishCall* call : calls)
        call->deliver();
    }
    for (PublishCall* call : calls)
      call->answer();
    calls.clear();
  }
}

// `answer` is given the request and fills the response.
template <class Request, class Response, class Service, class Answer>
void offer(Service& service, Queue& queue,
           typename PlainCall<Service, Request, Response, Answer>::Ask ask, Answer answer) {
  new PlainCall<Service, Request, Response, Answer>(service, queue, ask, answer);
}

void offer_resources(Shell& shell, Queue& queue) {
  using PublisherService = api::Publisher::AsyncService;
  using SubscriberService = api::Subscriber::AsyncService;
  using google::protobuf::Empty;
  offer<api::Topic, api::Topic>(
      shell.publisher, queue, &PublisherService::RequestCreateTopic,
      [](const api::Topic& asked, api::Topic& answer) { answer = asked; });
  offer<api::DeleteTopicRequest, Empty>(shell.publisher, queue,
                                        &PublisherService::RequestDeleteTopic,
                                        [](const api::DeleteTopicRequest&, Empty&) {});
  offer<api::Subscription, api::Subscription>(
      shell.subscriber, queue, &SubscriberService::RequestCreateSubscription,
      [&shell](const api::Subscription& asked, api::Subscription& answer) {
        answer = asked;
        const std::lock_guard lock(shell.backlog.mutex);
        shell.backlog.reset(asked.enable_message_ordering());
      });
  offer<api::DeleteSubscriptionRequest, Empty>(
      shell.subscriber, queue, &SubscriberService::RequestDeleteSubscription,
      [&shell](const api::DeleteSubscriptionRequest&, Empty&) {
        const std::lock_guard lock(shell.backlog.mutex);
        shell.backlog.reset(false);
      });
}

}  // namespace

void serve_broker(const std::string& path) {
  Shell shell(path);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(&shell.publisher);
  builder.RegisterService(&shell.subscriber);
  const std::unique_ptr<Queue> queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  shell.queue = queue.get();
  offer_resources(shell, *queue);
  constexpr int kPublishesAsked = 64;
  for (int i = 0; i < kPublishesAsked; ++i)
    new PublishCall(shell);
  new Stream(shell);
  std::thread logging([&shell] { shell.log.run(); });
  announce(port);
  serve(*queue);
  give_up("the server has ended");
}

}  // namespace ordo::bench

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 2 && words[0] == "broker") {
    ordo::bench::serve_broker(words[1]);
  } else if (words.size() == 2 && words[0] == "echo") {
    ordo::bench::serve_echo(words[1]);
  } else {
    ordo::bench::give_up("usage: bench_wire_shell broker FILE | echo cq1|cq2|callback");
  }
  return 0;
}

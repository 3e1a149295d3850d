// Redis Streams through hiredis: XADD, XREADGROUP, XACK, pipelined as the batch asks.
//
// Without keys there is one stream with one group. Redis has no order by key: with keys there are
// `lanes` streams, a key belongs to one of them, and one message of each is in flight.
#include <cstdarg>
#include <cstdint>
#include <cstring>
#include <deque>
#include <poll.h>
#include <string>
#include <utility>
#include <vector>

#include <hiredis/hiredis.h>

#include "bench/wire/load.h"
#include "bench/wire/system.h"

namespace ordo::bench {
namespace {

struct ReplyDeleter {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, ReplyDeleter>;

std::string stream_of(std::uint64_t lane) {
  return "stream-" + std::to_string(lane);
}

class Connection {
 public:
  explicit Connection(std::uint16_t port) : context_(redisConnect("127.0.0.1", port)) {
    if (context_ == nullptr || context_->err != 0) give_up("cannot connect to redis");
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { redisFree(context_); }

  void append(const std::vector<std::string_view>& words) {
    words_.clear();
    sizes_.clear();
    for (const std::string_view word : words) {
      words_.push_back(word.data());
      sizes_.push_back(word.size());
    }
    redisAppendCommandArgv(context_, static_cast<int>(words_.size()), words_.data(), sizes_.data());
  }

  void flush() {
    int is_done = 0;
    while (is_done == 0) {
      if (redisBufferWrite(context_, &is_done) != REDIS_OK) give_up("redis has gone");
    }
  }

  // The next reply; blocks.
  Reply reply() {
    void* reply = nullptr;
    if (redisGetReply(context_, &reply) != REDIS_OK) give_up("redis has gone");
    return checked(reply);
  }

  // The next reply if it has come.
  Reply reply_if_any() {
    void* reply = nullptr;
    if (redisGetReplyFromReader(context_, &reply) != REDIS_OK) give_up("redis has gone");
    return reply == nullptr ? Reply() : checked(reply);
  }

  void read() {
    if (redisBufferRead(context_) != REDIS_OK) give_up("redis has gone");
  }

  Reply ask(const std::vector<std::string_view>& words) {
    append(words);
    return reply();
  }

  int socket() const { return context_->fd; }

 private:
  static Reply checked(void* reply) {
    Reply owned(static_cast<redisReply*>(reply));
    if (owned->type == REDIS_REPLY_ERROR) give_up(std::string("redis: ") + owned->str);
    return owned;
  }

  redisContext* context_;
  std::vector<const char*> words_{};
  std::vector<std::size_t> sizes_{};
};

// Whether any of them has input within the time.
bool await_input(std::vector<pollfd> sockets, std::uint64_t wait_ns) {
  const timespec wait = {static_cast<time_t>(wait_ns / 1'000'000'000),
                         static_cast<long>(wait_ns % 1'000'000'000)};
  return ::ppoll(sockets.data(), sockets.size(), &wait, nullptr) > 0;
}

class RedisPublisher final : public Publisher {
 public:
  explicit RedisPublisher(const WirePlan& plan) : lanes_(plan.lanes), connection_(plan.port) {}

  void send(std::uint64_t key, const std::vector<std::string>& bodies) override {
    const std::string stream = stream_of(key == kNoKey ? 0 : key % lanes_);
    for (const std::string& body : bodies)
      connection_.append({"XADD", stream, "*", "d", body});
    connection_.flush();
    under_way_.push_back(bodies.size());
  }

  void receive(std::uint64_t wait_ns, std::vector<std::uint64_t>& answered) override {
    if (take(answered)) return;
    if (!await_input({{connection_.socket(), POLLIN, 0}}, wait_ns)) return;
    connection_.read();
    take(answered);
  }

 private:
  bool take(std::vector<std::uint64_t>& answered) {
    const std::size_t before = answered.size();
    while (!under_way_.empty() && connection_.reply_if_any()) {
      if (--under_way_.front() > 0) continue;
      under_way_.pop_front();
      answered.push_back(requests_answered_++);
    }
    return answered.size() > before;
  }

  const std::size_t lanes_;
  Connection connection_;
  std::deque<std::size_t> under_way_{};  // Replies that each request still waits for.
  std::uint64_t requests_answered_ = 0;
};

// Calls `sink(stream, id, body)` for each entry of a reply of XREADGROUP.
template <class Sink>
std::size_t for_each_entry(const redisReply& reply, const Sink& sink) {
  if (reply.type == REDIS_REPLY_NIL) return 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < reply.elements; ++i) {
    const redisReply& stream = *reply.element[i];
    const redisReply& entries = *stream.element[1];
    for (std::size_t j = 0; j < entries.elements; ++j) {
      const redisReply& entry = *entries.element[j];
      const redisReply& body = *entry.element[1]->element[1];
      sink(std::string_view(stream.element[0]->str, stream.element[0]->len),
           std::string(entry.element[0]->str, entry.element[0]->len),
           std::string_view(body.str, body.len));
      ++count;
    }
  }
  return count;
}

// The next read goes out together with the acknowledgements of the one before.
class RedisConsumer final : public Consumer {
 public:
  explicit RedisConsumer(const WirePlan& plan)
      : batch_(std::to_string(plan.batch)),
        connection_(plan.port) {}

  void receive(std::uint64_t wait_ns, const Sink& sink) override {
    if (!is_reading_) {
      connection_.append({"XREADGROUP", "GROUP", "g", "c", "COUNT", batch_, "BLOCK", "100",
                          "STREAMS", stream_, ">"});
      connection_.flush();
      is_reading_ = true;
    }
    Reply reply = next();
    if (!reply) {
      if (!await_input({{connection_.socket(), POLLIN, 0}}, wait_ns)) return;
      connection_.read();
      reply = next();
    }
    if (!reply) return;
    is_reading_ = false;
    for_each_entry(*reply, [&](std::string_view, std::string id, std::string_view body) {
      sink(body, {kNoKey, 0, std::move(id)});
    });
  }

  void acknowledge(std::vector<Receipt>& receipts) override {
    std::vector<std::string_view> words = {"XACK", stream_, "g"};
    for (const Receipt& receipt : receipts)
      words.emplace_back(receipt.text);
    connection_.append(words);
    ++acks_unanswered_;
  }

  void finish() override {
    connection_.flush();
    for (; acks_unanswered_ > 0; --acks_unanswered_)
      connection_.reply();
  }

 private:
  // The reply of the read, if it has come; those of acknowledgements before it are dropped.
  Reply next() {
    Reply reply = connection_.reply_if_any();
    while (reply && acks_unanswered_ > 0) {
      --acks_unanswered_;
      reply = connection_.reply_if_any();
    }
    return reply;
  }

  const std::string stream_ = stream_of(0);
  const std::string batch_;
  Connection connection_;
  std::size_t acks_unanswered_ = 0;
  bool is_reading_ = false;
};

// One message of each lane in flight: lanes without any are read together by a blocking read; the
// acknowledgement of a message brings the next of its lane.
class RedisLaneConsumer final : public Consumer {
 public:
  explicit RedisLaneConsumer(const WirePlan& plan)
      : is_idle_(plan.lanes, true),
        acks_(plan.port),
        blocking_(plan.port) {
    for (std::size_t lane = 0; lane < plan.lanes; ++lane)
      streams_.push_back(stream_of(lane));
  }

  void receive(std::uint64_t wait_ns, const Sink& sink) override {
    if (!is_blocking_) read_idle_lanes();
    await_input({{acks_.socket(), POLLIN, 0}, {blocking_.socket(), POLLIN, 0}}, wait_ns);
    if (await_input({{acks_.socket(), POLLIN, 0}}, 0)) acks_.read();
    while (const Reply reply = acks_.reply_if_any()) {
      const std::size_t lane = expected_.front();
      expected_.pop_front();
      if (lane != kAck && hand_over(*reply, sink) == 0) is_idle_[lane] = true;
    }
    if (await_input({{blocking_.socket(), POLLIN, 0}}, 0)) blocking_.read();
    while (const Reply reply = blocking_.reply_if_any()) {
      is_blocking_ = false;
      hand_over(*reply, sink);
    }
  }

  void acknowledge(std::vector<Receipt>& receipts) override {
    for (const Receipt& receipt : receipts) {
      const std::string& stream = streams_[receipt.number];
      acks_.append({"XACK", stream, "g", receipt.text});
      expected_.push_back(kAck);
      acks_.append({"XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", stream, ">"});
      expected_.push_back(receipt.number);
    }
    acks_.flush();
  }

  void finish() override {
    for (; !expected_.empty(); expected_.pop_front())
      acks_.reply();
  }

 private:
  static constexpr std::size_t kAck = ~std::size_t{0};

  void read_idle_lanes() {
    std::vector<std::string_view> words = {"XREADGROUP", "GROUP", "g", "c",      "COUNT",
                                           "1",          "BLOCK", "5", "STREAMS"};
    std::size_t count = 0;
    for (std::size_t lane = 0; lane < streams_.size(); ++lane) {
      if (!is_idle_[lane]) continue;
      words.emplace_back(streams_[lane]);
      ++count;
    }
    if (count == 0) return;
    words.insert(words.end(), count, ">");
    blocking_.append(words);
    blocking_.flush();
    is_blocking_ = true;
  }

  std::size_t hand_over(const redisReply& reply, const Sink& sink) {
    return for_each_entry(
        reply, [&](std::string_view stream, std::string id, std::string_view body) {
          const std::size_t lane = std::stoul(std::string(stream.substr(stream.find('-') + 1)));
          is_idle_[lane] = false;
          sink(body, {kNoKey, lane, std::move(id)});
        });
  }

  std::vector<std::string> streams_{};
  std::vector<bool> is_idle_;
  Connection acks_;
  Connection blocking_;
  std::deque<std::size_t> expected_{};  // Replies on `acks_`: kAck, or the lane that was read.
  bool is_blocking_ = false;
};

class RedisSystem final : public System {
 public:
  explicit RedisSystem(const WirePlan& plan) : plan_(plan), connection_(plan.port) {
    if (plan.keys > 0 && plan.lanes == 0) give_up("redis needs lanes for its keys");
    for (std::size_t lane = 0; lane < std::max<std::size_t>(plan.lanes, 1); ++lane) {
      connection_.ask({"DEL", stream_of(lane)});
      connection_.ask({"XGROUP", "CREATE", stream_of(lane), "g", "$", "MKSTREAM"});
    }
  }

  std::unique_ptr<Publisher> publisher() override {
    return std::make_unique<RedisPublisher>(plan_);
  }
  std::unique_ptr<Consumer> consumer() override {
    if (plan_.keys > 0) return std::make_unique<RedisLaneConsumer>(plan_);
    return std::make_unique<RedisConsumer>(plan_);
  }
  void clear() override { connection_.ask({"FLUSHALL"}); }

 private:
  const WirePlan plan_;
  Connection connection_;
};

}  // namespace

std::unique_ptr<System> make_system(const WirePlan& plan) {
  return std::make_unique<RedisSystem>(plan);
}

}  // namespace ordo::bench

int main(int argc, char** argv) {
  return ordo::bench::run_driver(argc, argv);
}

// The Pub/Sub API through a client of our own: see lean_connection.h. Messages are written and read
// by hand, so that the client takes as little of the machine as it can.
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/wire/lean_connection.h"
#include "bench/wire/load.h"
#include "bench/wire/pubsub_names.h"
#include "bench/wire/system.h"

namespace ordo::bench {
namespace {

constexpr std::uint64_t kPatienceNs = 30'000'000'000;

// ------------------------------------------------------------------- protobuf, as far as it goes

void put_varint(std::string& bytes, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7)
    bytes += static_cast<char>(number | 0x80);
  bytes += static_cast<char>(number);
}

void put_text(std::string& bytes, unsigned field, std::string_view text) {
  put_varint(bytes, field << 3 | 2);
  put_varint(bytes, text.size());
  bytes += text;
}

void put_number(std::string& bytes, unsigned field, std::uint64_t number) {
  put_varint(bytes, field << 3);
  put_varint(bytes, number);
}

std::size_t text_size(std::size_t bytes) {
  std::size_t head = 2;
  for (std::size_t rest = bytes; rest >= 0x80; rest >>= 7)
    ++head;
  return head + bytes;
}

class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  // The next field; its text if it is one.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint();
    number_ = static_cast<unsigned>(tag >> 3);
    text_ = {};
    if ((tag & 7) == 0) {
      varint();
    } else if ((tag & 7) == 2) {
      const std::uint64_t size = varint();
      if (size > rest_.size()) give_up("a message is cut short");
      text_ = rest_.substr(0, size);
      rest_.remove_prefix(size);
    } else {
      give_up("a field of an unknown kind");
    }
    return true;
  }
  unsigned number() const { return number_; }
  std::string_view text() const { return text_; }

 private:
  std::uint64_t varint() {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) give_up("a message is cut short");
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      number |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return number;
  }

  std::string_view rest_;
  unsigned number_ = 0;
  std::string_view text_{};
};

// ------------------------------------------------------------------------------------- the roles

class LeanPublisher final : public Publisher {
 public:
  LeanPublisher(const WirePlan& plan, std::string topic)
      : topic_(std::move(topic)),
        connection_(plan.port,
                    {.on_message = [this](std::int32_t call,
                                          std::string_view message) { check(call, message); },
                     .on_end = [this](std::int32_t call) { end(call); }}) {}

  void send(std::uint64_t key, const std::vector<std::string>& bodies) override {
    const std::string name = key == kNoKey ? std::string() : PubsubNames::key(key);
    request_.clear();
    put_text(request_, 1, topic_);
    for (const std::string& body : bodies) {
      const std::size_t key_size = name.empty() ? 0 : text_size(name.size());
      put_varint(request_, 2 << 3 | 2);
      put_varint(request_, text_size(body.size()) + key_size);
      put_text(request_, 1, body);
      if (!name.empty()) put_text(request_, 5, name);
    }
    const std::int32_t call = connection_.call("/google.pubsub.v1.Publisher/Publish", request_);
    under_way_[call] = {requests_++, bodies.size()};
  }

  void receive(std::uint64_t wait_ns, std::vector<std::uint64_t>& answered) override {
    if (answered_.empty()) connection_.turn(wait_ns);
    answered.insert(answered.end(), answered_.begin(), answered_.end());
    answered_.clear();
  }

 private:
  struct Request {
    std::uint64_t number = 0;
    std::size_t messages = 0;  // Whose ids have not come.
  };

  void check(std::int32_t call, std::string_view message) {
    Request& request = under_way_.at(call);
    for (Fields fields(message); fields.next();) {
      if (fields.number() == 1) --request.messages;
    }
  }

  void end(std::int32_t call) {
    const Request request = under_way_.at(call);
    if (request.messages != 0) give_up("ids are missing");
    under_way_.erase(call);
    answered_.push_back(request.number);
  }

  const std::string topic_;
  std::string request_{};
  std::unordered_map<std::int32_t, Request> under_way_{};
  std::vector<std::uint64_t> answered_{};
  std::uint64_t requests_ = 0;
  LeanConnection connection_;
};

class LeanConsumer final : public Consumer {
 public:
  LeanConsumer(const WirePlan& plan, const std::string& subscription)
      : connection_(plan.port, {.on_message = [this](std::int32_t,
                                                     std::string_view message) { take(message); },
                                .on_end = [this](std::int32_t) { is_over_ = true; }}) {
    std::string request;
    put_text(request, 1, subscription);
    put_number(request, 5, PubsubNames::kAckDeadlineSeconds);
    stream_ = connection_.open("/google.pubsub.v1.Subscriber/StreamingPull", request);
    connection_.turn(0);
  }

  void receive(std::uint64_t wait_ns, const Sink& sink) override {
    sink_ = &sink;
    connection_.turn(wait_ns);
    sink_ = nullptr;
    if (is_over_) give_up("the stream has ended");
  }

  void acknowledge(std::vector<Receipt>& receipts) override {
    std::string request;
    for (const Receipt& receipt : receipts)
      put_text(request, 2, receipt.text);
    connection_.send(stream_, request);
  }

  // The server ends the stream when it has taken all that was sent on it.
  void finish() override {
    connection_.half_close(stream_);
    while (!is_over_)
      connection_.turn(kPatienceNs);
  }

 private:
  void take(std::string_view response) {
    for (Fields fields(response); fields.next();) {
      if (fields.number() != 1) continue;
      if (sink_ == nullptr) give_up("a message came that was not sent");
      Receipt receipt;
      std::string_view body;
      for (Fields received(fields.text()); received.next();) {
        if (received.number() == 1) receipt.text = received.text();
        if (received.number() != 2) continue;
        for (Fields message(received.text()); message.next();) {
          if (message.number() == 1) body = message.text();
        }
      }
      (*sink_)(body, std::move(receipt));
    }
  }

  const Sink* sink_ = nullptr;
  bool is_over_ = false;
  std::int32_t stream_ = 0;
  LeanConnection connection_;
};

class LeanSystem final : public System {
 public:
  explicit LeanSystem(const WirePlan& plan)
      : plan_(plan),
        connection_(plan.port, {.on_message = [](std::int32_t, std::string_view) {},
                                .on_end = [this](std::int32_t) { ++ended_; }}) {
    if (plan.mode == "unary") return;
    std::string topic;
    put_text(topic, 1, names_.topic);
    ask("/google.pubsub.v1.Publisher/CreateTopic", topic);
    std::string subscription;
    put_text(subscription, 1, names_.subscription);
    put_text(subscription, 2, names_.topic);
    put_number(subscription, 5, PubsubNames::kAckDeadlineSeconds);
    if (plan.keys > 0) put_number(subscription, 10, 1);
    ask("/google.pubsub.v1.Subscriber/CreateSubscription", subscription);
  }

  std::unique_ptr<Publisher> publisher() override {
    return std::make_unique<LeanPublisher>(plan_, names_.topic);
  }
  std::unique_ptr<Consumer> consumer() override {
    return std::make_unique<LeanConsumer>(plan_, names_.subscription);
  }

  void clear() override {
    std::string subscription;
    put_text(subscription, 1, names_.subscription);
    ask("/google.pubsub.v1.Subscriber/DeleteSubscription", subscription);
    std::string topic;
    put_text(topic, 1, names_.topic);
    ask("/google.pubsub.v1.Publisher/DeleteTopic", topic);
  }

  Measures unary(const WirePlan& plan) override {
    std::unordered_map<std::int32_t, std::uint64_t> begun;
    std::vector<double> latencies;
    LeanConnection connection(
        plan.port, {.on_message =
                        [](std::int32_t, std::string_view message) {
                          if (message.size() != 2) give_up("Check: not the answer");
                        },
                    .on_end =
                        [&](std::int32_t call) {
                          const auto found = begun.find(call);
                          latencies.push_back(static_cast<double>(now_ns() - found->second) / 1000);
                          begun.erase(found);
                        }});
    for (std::uint64_t sent = 0; latencies.size() < plan.count;) {
      for (; sent < plan.count && begun.size() < plan.window; ++sent) {
        const std::uint64_t begin_ns = now_ns();
        begun.emplace(connection.call("/grpc.health.v1.Health/Check", {}), begin_ns);
      }
      connection.turn(kPatienceNs);
    }
    Measures measures;
    measures.set("p50_us", percentile(latencies, 0.5));
    measures.set("p99_us", percentile(latencies, 0.99));
    measures.set("errors", 0);
    return measures;
  }

 private:
  void ask(const char* path, const std::string& request) {
    const std::uint64_t before = ended_;
    connection_.call(path, request);
    while (ended_ == before)
      connection_.turn(kPatienceNs);
  }

  const WirePlan plan_;
  const PubsubNames names_ = PubsubNames::of_this_run();
  std::uint64_t ended_ = 0;
  LeanConnection connection_;
};

}  // namespace

std::unique_ptr<System> make_system(const WirePlan& plan) {
  return std::make_unique<LeanSystem>(plan);
}

}  // namespace ordo::bench

int main(int argc, char** argv) {
  return ordo::bench::run_driver(argc, argv);
}

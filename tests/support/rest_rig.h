// RestRig: a broker in memory and the JSON form of its Pub/Sub API, asked without a socket.
//
//   RestRig rig;
//   const RestAnswer made = rig.ask("PUT", "/v1/projects/p/topics/t");
//   EXPECT_EQ(made.status, 200) << made.body;
//   ExchangeLine& line = rig.open("POST", "/v1/projects/p/subscriptions/s:pull", "{...}");
//   ASSERT_TRUE(rig.wait([&] { return line.is_ended(); }));
//
// Answers come without line breaks, unless the target says otherwise. Time is the rig's.
//
// Threads: the test's, which is the I/O thread of all requests.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/adapters/pubsub_rest/json_service.h"
#include "tests/support/wire_rig.h"

namespace ordo::testing_support {

struct RestAnswer {
  unsigned status = 0;
  std::string type;  // content-type
  std::string body;
};

// The client's end of one request.
class ExchangeLine final : private http2::Channel {
 public:
  ExchangeLine(http2::RequestHead head, std::string body,
               const std::shared_ptr<http2::Mailbox>& mailbox,
               const std::shared_ptr<http2::OutputAccount>& account)
      : exchange_(
            std::make_shared<http2::Exchange>(std::move(head), std::move(body), mailbox, account)) {
    exchange_->attach(this);
  }
  ExchangeLine(const ExchangeLine&) = delete;
  ExchangeLine& operator=(const ExchangeLine&) = delete;
  ~ExchangeLine() override { exchange_->attach(nullptr); }

  const http2::ExchangePtr& exchange() const { return exchange_; }
  bool is_ended() const { return is_ended_; }
  const RestAnswer& answer() const { return answer_; }
  // The client goes without a word.
  void cancel() {
    exchange_->attach(nullptr);
    exchange_->mark_cancelled();
    exchange_->tell_cancelled();
  }

 private:
  void take(http2::Part&& part) override {
    if (is_ended_) return;
    if (part.status != 0) {
      answer_.status = part.status;
      answer_.type = part.headers.find("content-type").value_or("");
    }
    for (const http2::Chunk& chunk : part.body)
      answer_.body += chunk.slice.bytes;
    is_ended_ = part.is_end;
  }
  void hold_input(bool /*is_held*/) override {}

  const http2::ExchangePtr exchange_;
  RestAnswer answer_;
  bool is_ended_ = false;
};

class RestRig {
 public:
  explicit RestRig(const pubsub_rest::JsonServiceOptions& options = {},
                   BrokerOptions broker_options = {})
      : wire_(std::move(broker_options)),
        json_(wire_.service(), options) {
    json_.add_to(routes_);
    mailbox_->make_this_threads_own();
  }
  RestRig(const RestRig&) = delete;
  RestRig& operator=(const RestRig&) = delete;
  ~RestRig() {
    json_.close();
    mailbox_->close();
  }

  ExchangeLine& open(const std::string& verb, const std::string& target, std::string body = {},
                     http2::HeaderList headers = {}) {
    http2::RequestHead head;
    head.method = verb;
    head.path = target;
    if (target.find('?') == std::string::npos) head.path += "?prettyPrint=false";
    head.headers = std::move(headers);
    head.peer = std::make_shared<const std::string>("test");
    lines_.push_back(
        std::make_unique<ExchangeLine>(std::move(head), std::move(body), mailbox_, account_));
    routes_.serve(lines_.back()->exchange());
    return *lines_.back();
  }
  template <class Condition>
  bool wait(Condition condition) {
    return eventually([&] {
      mailbox_->take_all();
      return condition();
    });
  }
  RestAnswer ask(const std::string& verb, const std::string& target, std::string body = {},
                 http2::HeaderList headers = {}) {
    ExchangeLine& line = open(verb, target, std::move(body), std::move(headers));
    EXPECT_TRUE(wait([&] { return line.is_ended(); })) << "no answer";
    return line.answer();
  }

  static std::string topic() { return "/v1/projects/p/topics/orders"; }
  static std::string subscription() { return "/v1/projects/p/subscriptions/billing"; }
  // A topic and an ordered subscription; `more` fields of it.
  void create(const std::string& more = "") {
    const RestAnswer made = ask("PUT", topic(), "{}");
    ASSERT_EQ(made.status, 200u) << made.body;
    const RestAnswer subscribed =
        ask("PUT", subscription(),
            R"({"topic":"projects/p/topics/orders","enableMessageOrdering":true)" + more + "}");
    ASSERT_EQ(subscribed.status, 200u) << subscribed.body;
  }
  void publish(const std::string& messages) {
    const RestAnswer published =
        ask("POST", topic() + ":publish", R"({"messages":[)" + messages + "]}");
    ASSERT_EQ(published.status, 200u) << published.body;
  }

  WireRig& wire() { return wire_; }
  pubsub_rest::JsonService& json() { return json_; }

 private:
  WireRig wire_;
  pubsub_rest::JsonService json_;
  http2::Routes routes_;
  std::shared_ptr<http2::Mailbox> mailbox_ = std::make_shared<http2::Mailbox>([] {});
  std::shared_ptr<http2::OutputAccount> account_ = std::make_shared<http2::OutputAccount>(
      http2::Limits(), std::make_shared<http2::OutputBudget>(~std::size_t{0}));
  std::vector<std::unique_ptr<ExchangeLine>> lines_;
};

}  // namespace ordo::testing_support

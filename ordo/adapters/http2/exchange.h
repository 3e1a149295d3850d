// Exchange: one plain HTTP request with its whole body, and its response; HTTP/1.1 or HTTP/2.
//
//   routes.plain([](const ExchangePtr& exchange) {
//     if (exchange->path() != "/livez") return exchange->respond({.status = 404});
//     exchange->respond({.body = Slice::constant("ok\n")});
//   });
//
// A body of unknown length is streamed:
//
//   exchange->begin(200, {{"content-type", "text/event-stream"}});
//   exchange->on_writable([=] { send_more(); });
//   exchange->on_cancelled([=] { forget(); });
//   if (exchange->write(Slice::of(event))) ...      // false: full, or the client has gone
//   exchange->end();
//
// Names of headers are given in lower case. The length, and what HTTP/1.1 says of the connection,
// are set by the front. HEAD gets what GET would, without the body; a streamed one is cancelled
// once the head is sent. A client of HTTP/1.1 that ends its side of the connection has gone for
// those who ask by on_cancelled(); others still answer it.
//
// Threads: any thread; on_writable() and on_cancelled() before the handler returns, and what they
//          are given is called on the connection's I/O thread.
// Bounds:  see Conversation; the request's body has up to Limits::message_bytes_max bytes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "ordo/adapters/http2/conversation.h"

namespace ordo::http2 {

struct Response {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";  // Empty: none.
  HeaderList headers{};
  Slice body{};
};

class Exchange final : public Conversation {
 public:
  Exchange(RequestHead head, std::string body, std::shared_ptr<Mailbox> mailbox,
           std::shared_ptr<OutputAccount> account)
      : Conversation(std::move(head), std::move(mailbox), std::move(account)),
        body_(std::move(body)) {}

  std::string_view method() const { return head().method; }
  std::string_view body() const { return body_; }

  // Head, body and end, in one write.
  void respond(Response response);

  void begin(unsigned status, HeaderList headers);
  // REQUIRES: begin().
  bool write(Slice bytes);
  void end();

  void on_writable(std::function<void()> function) { on_writable_ = std::move(function); }
  void on_cancelled(std::function<void()> function) { on_cancelled_ = std::move(function); }

  // For the connection.
  bool ends_with_its_client() const { return on_cancelled_ != nullptr; }
  void tell_writable() const {
    if (on_writable_) on_writable_();
  }
  void tell_cancelled() const {
    if (on_cancelled_) on_cancelled_();
  }

 private:
  const std::string body_;
  std::function<void()> on_writable_;   // The I/O thread's.
  std::function<void()> on_cancelled_;  // The I/O thread's.
};

using ExchangePtr = std::shared_ptr<Exchange>;

}  // namespace ordo::http2

// http2_echo: a server of ordo::http2 that says everything back, for tests and load drivers.
//
//   http2_echo [io threads, 1] [timeout, 60]
//       prints the port; SIGTERM: drains, at most 5 s, and prints stats. The timeout, in seconds,
//       is that of handshakes and of output that nobody takes.
//
// gRPC, package test, service Echo: Say (unary), Later (unary, replied by another thread), Chat
// (each message comes back), Flood (as many messages of 64 KiB as the number it is sent, as fast as
// the client takes them), Listen (says nothing, however much it is told). Plain: GET /hello,
// POST /echo, GET /large (4 MiB), GET /events (chunked).
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "ordo/adapters/http2/server.h"
#include "ordo/core/clock.h"
#include "ordo/runtime/loop.h"

namespace ordo::http2 {
namespace {

class Chat final : public CallHandler {
 public:
  explicit Chat(CallPtr call) : call_(std::move(call)) {}
  void on_message(std::string_view bytes) override { call_->send(Slice::of(std::string(bytes))); }
  void on_half_close() override { call_->finish(0); }

 private:
  const CallPtr call_;
};

class Listen final : public CallHandler {
 public:
  explicit Listen(CallPtr call) : call_(std::move(call)) {}
  void on_message(std::string_view /*bytes*/) override {}
  void on_half_close() override { call_->finish(0); }

 private:
  const CallPtr call_;
};

class Flood final : public CallHandler {
 public:
  explicit Flood(CallPtr call) : call_(std::move(call)) {}
  void on_message(std::string_view bytes) override {
    std::from_chars(bytes.data(), bytes.data() + bytes.size(), left_);
    send_more();
  }
  void on_half_close() override {}
  void on_writable() override { send_more(); }

 private:
  void send_more() {
    static const Slice kMessage = Slice::of(std::string(std::size_t{64} * 1024, 'f'));
    while (left_ > 0 && call_->send(kMessage))
      --left_;
    if (left_ == 0) call_->finish(0);
  }

  const CallPtr call_;
  std::size_t left_ = 0;
};

void answer(const ExchangePtr& exchange) {
  static const Slice kLarge = Slice::of(std::string(std::size_t{4} << 20, 'l'));
  if (exchange->path() == "/hello") {
    exchange->respond({.body = Slice::constant("hello\n")});
  } else if (exchange->path() == "/echo") {
    exchange->respond({.body = Slice::of(std::string(exchange->body()))});
  } else if (exchange->path() == "/large") {
    exchange->respond({.body = kLarge});
  } else if (exchange->path() == "/events") {
    exchange->begin(200, {{"content-type", "text/event-stream"}});
    for (int i = 0; i < 3; ++i)
      exchange->write(Slice::of("data: " + std::to_string(i) + "\n\n"));
    exchange->end();
  } else {
    exchange->respond({.status = 404, .body = Slice::constant("not found\n")});
  }
}

Routes routes_with(Loop& loop) {
  Routes routes;
  routes.unary("/test.Echo/Say", [](const CallPtr& call, std::string_view request) {
    call->reply(Slice::of(std::string(request)));
  });
  routes.unary("/test.Echo/Later", [&loop](const CallPtr& call, std::string_view request) {
    loop.post(
        [call, text = std::string(request)]() mutable { call->reply(Slice::of(std::move(text))); });
  });
  routes.streaming("/test.Echo/Chat", [](const CallPtr& call) -> std::unique_ptr<CallHandler> {
    return std::make_unique<Chat>(call);
  });
  routes.streaming("/test.Echo/Flood", [](const CallPtr& call) -> std::unique_ptr<CallHandler> {
    return std::make_unique<Flood>(call);
  });
  routes.streaming("/test.Echo/Listen", [](const CallPtr& call) -> std::unique_ptr<CallHandler> {
    return std::make_unique<Listen>(call);
  });
  routes.plain(answer);
  return routes;
}

int run(std::size_t io_threads, std::chrono::seconds timeout) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Loop loop({.name = "test-later", .tasks_max = 65'536});
  ServerOptions options;
  options.io_threads = io_threads;
  options.limits.handshake_timeout = timeout;
  options.limits.write_timeout = timeout;
  options.input_bytes_max = std::size_t{32} << 20;
  Routes routes = routes_with(loop);
  const Server* serving = nullptr;
  routes.plain("/failed", [&serving](const ExchangePtr& exchange) {
    const std::uint64_t failed = serving->stats().accepts_failed;
    exchange->respond({.body = Slice::of("failed " + std::to_string(failed) + "!")});
  });
  Server server(options, std::move(routes));
  serving = &server;
  if (Status started = server.start(); !started) {
    std::fprintf(stderr, "%s\n", started.error().message.c_str());
    return 1;
  }
  std::printf("%u\n", static_cast<unsigned>(server.port()));
  std::fflush(stdout);
  int received = 0;
  sigwait(&signals, &received);
  server.drain(system_clock().now() + std::chrono::seconds(5));
  const ServerStats stats = server.stats();
  std::printf("calls %llu requests %llu calmed %llu timed_out %llu refused %llu failed %llu\n",
              static_cast<unsigned long long>(stats.calls),
              static_cast<unsigned long long>(stats.requests),
              static_cast<unsigned long long>(stats.calmed),
              static_cast<unsigned long long>(stats.timed_out),
              static_cast<unsigned long long>(stats.connections_refused),
              static_cast<unsigned long long>(stats.accepts_failed));
  return 0;
}

}  // namespace
}  // namespace ordo::http2

int main(int count, char** words) {
  const auto number = [&](int index, unsigned long usual) {
    return count > index ? std::strtoul(words[index], nullptr, 10) : usual;
  };
  return ordo::http2::run(number(1, 1), std::chrono::seconds(number(2, 60)));
}

#include "tests/fuzz/http_stream.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "ordo/adapters/http2/connection.h"
#include "ordo/adapters/http2/deframer.h"
#include "ordo/core/check.h"

namespace ordo::fuzz {
namespace {

using http2::CallPtr;
using http2::ExchangePtr;

// What the handlers of one connection saw.
struct Seen {
  std::vector<std::string> events{};
  int begun = 0;
  int gone = 0;
  bool is_cut_short = false;  // The connection was over before its bytes were.
};

class Watcher final : public http2::CallHandler {
 public:
  Watcher(CallPtr call, Seen& seen) : call_(std::move(call)), seen_(seen) { ++seen_.begun; }
  ~Watcher() override { ++seen_.gone; }
  void on_message(std::string_view bytes) override {
    seen_.events.push_back("message " + std::string(bytes));
    call_->send(http2::Slice::of(std::string(bytes)));
  }
  void on_half_close() override {
    seen_.events.emplace_back("half close");
    call_->finish(0);
  }
  void on_cancelled() override { seen_.events.emplace_back("cancelled"); }

 private:
  const CallPtr call_;
  Seen& seen_;
};

http2::Routes routes_to(Seen& seen) {
  http2::Routes routes;
  routes.unary("/u", [&seen](const CallPtr& call, std::string_view bytes) {
    seen.events.push_back("unary " + std::string(bytes));
    call->reply(http2::Slice::of(std::string(bytes)));
  });
  routes.streaming("/s", [&seen](const CallPtr& call) -> std::unique_ptr<http2::CallHandler> {
    return std::make_unique<Watcher>(call, seen);
  });
  routes.plain([&seen](const ExchangePtr& exchange) {
    std::string event(exchange->method());
    event.append(" ").append(exchange->path()).append(" ").append(exchange->body());
    seen.events.push_back(std::move(event));
    exchange->respond({.body = http2::Slice::of(std::string(exchange->body()))});
  });
  return routes;
}

// Small, so that too much is found soon.
http2::Limits small_limits() {
  http2::Limits limits;
  limits.header_bytes_max = 1'024;
  limits.message_bytes_max = 2'000;
  limits.input_bytes_max = 20'000;
  limits.streams_max = 4;
  limits.resets_burst = 8;
  limits.controls_burst = 32;
  return limits;
}

void send_all(http2::Connection& connection, TimePoint now) {
  std::array<iovec, 8> pieces{};
  for (connection.fill(now); !connection.output().empty(); connection.fill(now)) {
    const std::size_t count = connection.output().gather(pieces);
    std::size_t size = 0;
    for (std::size_t i = 0; i < count; ++i)
      size += pieces[i].iov_len;
    connection.sent(size, now);
  }
}

Seen seen_in(std::string_view stream, std::size_t piece_size, const http2::Limits& limits) {
  Seen seen;
  const http2::RouteSwitch routes(routes_to(seen));
  http2::InputBudget budget(limits.input_bytes_max * 4 / 5);
  http2::SessionCounters counters;
  http2::BufferStore store;
  const auto mailbox = std::make_shared<http2::Mailbox>([] {});
  mailbox->make_this_threads_own();
  const TimePoint now{std::chrono::hours(1)};
  {
    http2::Connection connection({.limits = limits,
                                  .routes = routes,
                                  .budget = budget,
                                  .counters = counters,
                                  .mailbox = mailbox},
                                 store, now);
    while (!stream.empty() && connection.wants_input() && !connection.is_finished()) {
      const std::vector<char> piece(
          stream.begin(),
          stream.begin() + static_cast<std::ptrdiff_t>(std::min(piece_size, stream.size())));
      stream.remove_prefix(piece.size());
      connection.receive({piece.data(), piece.size()}, now);
      send_all(connection, now);
    }
    seen.is_cut_short = connection.is_finished() || connection.is_broken();
    if (connection.wants_input()) connection.end_input(now);
    send_all(connection, now);
  }
  ORDO_CHECK(budget.used() == 0);
  ORDO_CHECK(seen.begun == seen.gone);
  return seen;
}

// What was served, in order. A call is cancelled when its reset has been sent, which may be before
// or after the next call is served.
std::vector<std::string> served(const Seen& seen) {
  std::vector<std::string> events;
  for (const std::string& event : seen.events) {
    if (event != "cancelled") events.push_back(event);
  }
  return events;
}

// Where a connection ends early, one may have served less of what came with the reason, as an
// answer that was on its way, or not, decides how bad a frame is. It never serves something else.
void expect_same(const Seen& whole, const Seen& pieces) {
  const std::vector<std::string> one = served(whole);
  const std::vector<std::string> other = served(pieces);
  if (!whole.is_cut_short && !pieces.is_cut_short) {
    ORDO_CHECK(one == other);
    ORDO_CHECK(whole.events.size() == pieces.events.size());
    return;
  }
  const auto both = static_cast<std::ptrdiff_t>(std::min(one.size(), other.size()));
  ORDO_CHECK(std::equal(one.begin(), one.begin() + both, other.begin()));
}

struct Messages {
  std::vector<std::string> texts{};
  std::string error{};
  friend bool operator==(const Messages&, const Messages&) = default;
};

Messages messages_in(std::string_view stream, std::size_t piece_size) {
  const http2::Limits limits = small_limits();
  http2::InputBudget budget(1 << 20);
  std::size_t connection_bytes = 0;
  Messages messages;
  {
    http2::Deframer deframer(limits, connection_bytes, budget);
    deframer.allow_gzip();
    while (!stream.empty() && !deframer.error()) {
      const std::vector<char> piece(
          stream.begin(),
          stream.begin() + static_cast<std::ptrdiff_t>(std::min(piece_size, stream.size())));
      stream.remove_prefix(piece.size());
      std::string_view bytes(piece.data(), piece.size());
      while (const auto message = deframer.next(bytes))
        messages.texts.emplace_back(*message);
      ORDO_CHECK(bytes.empty() || deframer.error());
    }
    if (deframer.error()) messages.error = deframer.error()->message;
  }
  ORDO_CHECK(budget.used() == 0 && connection_bytes == 0);
  return messages;
}

}  // namespace

void check_http_stream(std::string_view bytes) {
  const std::size_t all = bytes.size() + 1;
  const http2::Limits roomy;
  const Seen whole = seen_in(bytes, all, roomy);
  for (const std::size_t piece_size : {1, 7, 50})
    expect_same(whole, seen_in(bytes, piece_size, roomy));
  // At a limit it matters what is there at the same time: there are only the laws of seen_in().
  for (const std::size_t piece_size : {std::size_t{1}, std::size_t{7}, all})
    seen_in(bytes, piece_size, small_limits());
}

void check_messages(std::string_view bytes) {
  const Messages whole = messages_in(bytes, bytes.size() + 1);
  ORDO_CHECK(messages_in(bytes, 1) == whole);
  ORDO_CHECK(messages_in(bytes, 7) == whole);
}

}  // namespace ordo::fuzz

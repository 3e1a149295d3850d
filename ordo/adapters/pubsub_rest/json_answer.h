// JsonAnswer: the answer of a method as JSON, to a plain HTTP request.
//
//   auto answer = std::make_shared<JsonAnswer>(core, exchange, response_type, style);
//   exchange->on_cancelled([=] { answer->cancel(); });
//   method->serve(answer, bytes);            // what it replies is made JSON by the core's thread
//
// JsonCore: what all requests of a JsonService share: the thread that reads and writes JSON, and
// how much of bodies is held.
//
// Threads: any, all calls. JsonCore owns the thread "ordo-rest".
// Bounds:  JsonServiceOptions.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/adapters/http2/exchange.h"
#include "ordo/adapters/pubsub_rest/json_form.h"
#include "ordo/adapters/pubsub_wire/answer.h"
#include "ordo/runtime/loop.h"

namespace ordo::pubsub_rest {

// The answer to a request that failed.
void respond_with(const http2::ExchangePtr& exchange, const Error& error,
                  std::string_view details = {});

class JsonCore {
 public:
  JsonCore(std::size_t requests_max, std::size_t body_bytes_max);

  const JsonReader& reader() const { return reader_; }

  // Runs `work` on the thread. False: too many wait, or it is closed.
  [[nodiscard]] bool try_run(Task&& work) { return loop_.try_post(std::move(work)); }
  // Runs `work` on the thread or, when it cannot be that, on this one: it is always run.
  void run(Task work);

  // So much of a body is held from now on. False, and nothing is: others hold too much.
  [[nodiscard]] bool hold(std::size_t bytes);
  void release(std::size_t bytes) { held_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  // Runs what waits, and ends the thread. Idempotent.
  void close() { (void)loop_.stop(TimePoint::max()); }

 private:
  const std::size_t body_bytes_max_;
  std::atomic<std::size_t> held_bytes_{0};
  const JsonReader reader_;
  Loop loop_;
};

class JsonAnswer final : public pubsub_wire::Answer,
                         public std::enable_shared_from_this<JsonAnswer> {
 public:
  using Answer::fail;
  using Answer::reply;

  // The body of the exchange is held by `core` until this has gone. `type` is that of the response.
  JsonAnswer(std::shared_ptr<JsonCore> core, http2::ExchangePtr exchange, std::string type,
             JsonStyle style);
  ~JsonAnswer() override;

  void reply(std::vector<http2::Slice> pieces) override;
  void fail(const Error& error, std::string_view details) override;
  bool is_cancelled() const override { return exchange_->is_cancelled(); }
  void on_cancelled(std::function<void()> function) override;
  TimePoint deadline() const override { return TimePoint::max(); }

  // The client has gone.
  void cancel();

 private:
  void respond(const std::vector<http2::Slice>& pieces);

  const std::shared_ptr<JsonCore> core_;
  const http2::ExchangePtr exchange_;
  const std::string type_;
  const JsonStyle style_;

  std::mutex mutex_;  // Guards the two below.
  std::function<void()> on_cancelled_;
  bool is_cancelled_ = false;
};

}  // namespace ordo::pubsub_rest

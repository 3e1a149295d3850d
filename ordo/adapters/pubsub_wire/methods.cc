#include "ordo/adapters/pubsub_wire/methods.h"

#include <utility>

#include "ordo/adapters/pubsub_wire/requests.h"

namespace ordo::pubsub_wire {
namespace {

class GrpcAnswer final : public Answer {
 public:
  using Answer::fail;
  using Answer::reply;

  explicit GrpcAnswer(http2::CallPtr call) : call_(std::move(call)) {}

  void reply(std::vector<http2::Slice> pieces) override { call_->reply(std::move(pieces)); }
  void fail(const Error& error, std::string_view details) override {
    call_->finish(static_cast<int>(error.code), error.message, details);
  }
  std::size_t details_bytes_max() const override { return call_->details_bytes_max(); }
  bool is_cancelled() const override { return call_->is_cancelled(); }
  void on_cancelled(std::function<void()> function) override { function_ = std::move(function); }
  TimePoint deadline() const override { return call_->deadline(); }

  void tell_cancelled() const {
    if (function_) function_();
  }

 private:
  const http2::CallPtr call_;
  std::function<void()> function_;  // The I/O thread's.
};

// The front's unary calls do not hear that their client has gone; these have to.
class WaitingHandler final : public http2::CallHandler {
 public:
  WaitingHandler(Methods::Serve serve, http2::CallPtr call)
      : serve_(std::move(serve)),
        answer_(std::make_shared<GrpcAnswer>(std::move(call))) {}

  void on_message(std::string_view bytes) override {
    if (!std::exchange(has_begun_, true)) return serve_(answer_, bytes);
    answer_->fail(malformed_request());
    answer_->tell_cancelled();  // What the first one gets is for others.
  }
  void on_half_close() override {
    if (!has_begun_) answer_->fail(malformed_request());
  }
  void on_cancelled() override { answer_->tell_cancelled(); }

 private:
  const Methods::Serve serve_;
  const std::shared_ptr<GrpcAnswer> answer_;
  bool has_begun_ = false;
};

}  // namespace

void Methods::add(std::string path, Serve serve) {
  methods_[std::move(path)] = {.serve = std::move(serve)};
}

void Methods::add_waiting(std::string path, Serve serve) {
  methods_[std::move(path)] = {.serve = std::move(serve), .is_waiting = true};
}

const Methods::Method* Methods::find(std::string_view path) const {
  const auto found = methods_.find(path);
  return found == methods_.end() ? nullptr : &found->second;
}

void Methods::add_to(http2::Routes& routes) const {
  for (const auto& [path, method] : methods_) {
    if (method.is_waiting) {
      routes.streaming(path, [serve = method.serve](const http2::CallPtr& call) {
        return std::make_unique<WaitingHandler>(serve, call);
      });
    } else {
      routes.unary(path,
                   [serve = method.serve](const http2::CallPtr& call, std::string_view bytes) {
                     serve(std::make_shared<GrpcAnswer>(call), bytes);
                   });
    }
  }
}

}  // namespace ordo::pubsub_wire

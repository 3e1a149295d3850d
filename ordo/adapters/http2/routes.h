// Routes: which function serves which request.
//
//   Routes routes;
//   routes.unary("/shop.Orders/Get", [](const CallPtr& call, std::string_view request) { ... });
//   routes.streaming("/shop.Orders/Tail", [](const CallPtr& call) {
//     return std::make_unique<Tail>(call);
//   });
//   routes.plain([](const ExchangePtr& exchange) { ... });     // all that is not gRPC ...
//   routes.plain("/v1/", rest);                                // ... but what begins with this
//   Server server(options, std::move(routes));
//
// A unary handler is called when its message is complete; a second message, or none, is refused. A
// call of a method that is not here gets UNIMPLEMENTED, unless otherwise() says something else; a
// plain request without a handler 404. A handler that throws is an INTERNAL error or a 500, with
// what it said.
//
// RouteSwitch: the routes in force, which may be changed while they are used, as from those of a
// program that starts to those of one that is ready.
//
// Threads: Routes are filled by one owner; then read by all I/O threads, which call the handlers.
//          Handlers must not block: they hand over what takes long and reply from there.
//          RouteSwitch: now() any thread; change() one at a time.
// Bounds:  a switch keeps all routes it ever had, since calls that run may still use them.
// Cost:    a hash lookup for each call; for a plain request a comparison with each prefix.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ordo/adapters/http2/call.h"
#include "ordo/adapters/http2/exchange.h"
#include "ordo/core/result.h"

namespace ordo::http2 {

class Routes {
 public:
  using Unary = std::function<void(const CallPtr& call, std::string_view request)>;
  using Streaming = std::function<std::unique_ptr<CallHandler>(const CallPtr& call)>;
  using Plain = std::function<void(const ExchangePtr& exchange)>;

  struct Method {
    Unary unary;  // One of the two is set.
    Streaming streaming;
  };

  // `path` is "/package.Service/Method".
  void unary(std::string path, Unary handler) {
    methods_[std::move(path)].unary = std::move(handler);
  }
  void streaming(std::string path, Streaming handler) {
    methods_[std::move(path)].streaming = std::move(handler);
  }
  void plain(Plain handler) { plain("", std::move(handler)); }
  // Those whose path begins with `prefix`; the longest one decides.
  void plain(std::string prefix, Plain handler);
  // What a call of a method that is not here gets.
  void otherwise(Error error) { otherwise_ = std::move(error); }

  const Method* find(std::string_view path) const {
    const auto found = methods_.find(path);
    return found == methods_.end() ? nullptr : &found->second;
  }
  // Why a call of `path` is refused. REQUIRES: find(path) found nothing.
  Error refusal_of(std::string_view path) const;
  // Calls the handler; what it throws is answered.
  void serve(const ExchangePtr& exchange) const;

 private:
  struct Hash {
    // NOLINTNEXTLINE(readability-identifier-naming): the standard's name for it.
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  std::unordered_map<std::string, Method, Hash, std::equal_to<>> methods_;
  std::vector<std::pair<std::string, Plain>> plain_;  // Longest prefix first.
  std::optional<Error> otherwise_;
};

class RouteSwitch {
 public:
  explicit RouteSwitch(Routes first) { change(std::move(first)); }

  const Routes& now() const { return *now_.load(std::memory_order_acquire); }
  void change(Routes next) {
    kept_.push_back(std::make_unique<const Routes>(std::move(next)));
    now_.store(kept_.back().get(), std::memory_order_release);
  }

 private:
  std::vector<std::unique_ptr<const Routes>> kept_;
  std::atomic<const Routes*> now_{nullptr};
};

// What the exception that is being handled says. REQUIRES: inside a catch block.
std::string reason_of_exception();

}  // namespace ordo::http2

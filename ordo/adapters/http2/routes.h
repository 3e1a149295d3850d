// Routes: which function serves which request.
//
//   Routes routes;
//   routes.unary("/shop.Orders/Get", [](const CallPtr& call, std::string_view request) { ... });
//   routes.streaming("/shop.Orders/Tail", [](const CallPtr& call) {
//     return std::make_unique<Tail>(call);
//   });
//   routes.plain([](const ExchangePtr& exchange) { ... });     // all that is not gRPC
//   Server server(options, std::move(routes));
//
// A unary handler is called when its message is complete; a second message, or none, is refused. A
// call of a method that is not here gets UNIMPLEMENTED, a plain request without a handler 404. A
// handler that throws is an INTERNAL error or a 500, with what it said.
//
// Threads: filled by one owner; then read by all I/O threads, which call the handlers. Handlers
//          must not block: they hand over what takes long and reply from there.
// Cost:    a hash lookup for each call.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ordo/adapters/http2/call.h"
#include "ordo/adapters/http2/exchange.h"

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
  void plain(Plain handler) { plain_ = std::move(handler); }

  const Method* find(std::string_view path) const {
    const auto found = methods_.find(path);
    return found == methods_.end() ? nullptr : &found->second;
  }
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
  Plain plain_;
};

// What the exception that is being handled says. REQUIRES: inside a catch block.
std::string reason_of_exception();

}  // namespace ordo::http2

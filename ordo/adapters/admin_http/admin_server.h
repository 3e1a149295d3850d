// AdminServer: answers GET requests of people and monitors beside the real work.
//
//   AdminServer admin({.port = 7071}, [&](std::string_view path) -> AdminReply {
//     if (path == "/livez") return {.body = "ok\n"};
//     return {.status = 404, .body = "not found\n"};
//   });
//   Status started = admin.start();
//   ...
//   admin.stop();
//
// HTTP/1.1, GET and HEAD, keep-alive. It has a thread of its own, so a scrape never waits for the
// work it asks about, and the handler may take its time without holding that up. A request whose
// Host is a name other than localhost is refused: a web page cannot reach it by a name that was
// made to point here.
//
// Threads: owns one, named ordo-admin, which calls the handler. start(), stop(): one at a time.
// Bounds:  connections_max connections; more are closed at once. A request line with headers may
//          have header_bytes_max bytes and must come within idle_timeout; bodies are refused.
// Errors:  start() says why it cannot listen. A handler that throws is a 500 with what it said.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ordo/core/result.h"

namespace ordo::admin_http {

struct AdminReply {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

struct AdminOptions {
  std::string address = "127.0.0.1";                     // A numeric address.
  std::uint16_t port = 0;                                // 0: any free one.
  std::size_t connections_max = 64;                      // At the same time.
  std::size_t header_bytes_max = std::size_t{8} * 1024;  // Of one request.
  std::chrono::milliseconds idle_timeout{10'000};        // For a request to come, or a reply to go.
};

class AdminServer {
 public:
  // `path` is what was asked for, without the query.
  using Handler = std::function<AdminReply(std::string_view path)>;

  AdminServer(AdminOptions options, Handler handler);
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;
  ~AdminServer();

  // Listens and answers from now on.
  Status start();
  // Closes all connections and ends the thread. Idempotent.
  void stop();

  std::uint16_t port() const;  // The one it listens on, from start() on.

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace ordo::admin_http

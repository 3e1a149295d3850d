// LeanConnection: a gRPC client of one thread on one socket, with nothing in between: libnghttp2
// for frames, no queues, no locks. It shows what a server does when its client costs little.
//
//   LeanConnection connection(port, {.on_message = ..., .on_end = ...});
//   const std::int32_t call = connection.call("/shop.Orders/Get", request);    // unary
//   const std::int32_t stream = connection.open("/shop.Orders/Tail", first);   // more may be sent
//   connection.turn(1'000'000);   // sends what waits, takes what has come within the time
//
// Threads: one owner; turn() calls on_message and on_end.
// Bounds:  those of the caller. What goes wrong ends the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

struct nghttp2_session;

namespace ordo::bench {

class LeanConnection {
 public:
  struct Events {
    std::function<void(std::int32_t call, std::string_view message)> on_message;
    std::function<void(std::int32_t call)> on_end;  // With status OK; any other ends the process.
  };

  LeanConnection(std::uint16_t port, Events events);
  LeanConnection(const LeanConnection&) = delete;
  LeanConnection& operator=(const LeanConnection&) = delete;
  ~LeanConnection();

  // All are sent by the next turn. REQUIRES: `path` lives as long as the connection.
  std::int32_t call(const char* path, std::string_view message);
  std::int32_t open(const char* path, std::string_view message);
  void send(std::int32_t stream, std::string_view message);
  void half_close(std::int32_t stream);

  void turn(std::uint64_t wait_ns);

 private:
  friend struct LeanCallbacks;
  struct Call;
  struct LibraryDeleter {
    void operator()(nghttp2_session* session) const;
  };

  std::int32_t begin(const char* path, std::string_view message, bool is_last);
  void add(Call& call, std::string_view message);
  void write(std::uint64_t wait_ns);
  void take(Call& call, std::string_view bytes);
  Call& call_of(std::int32_t stream) const;

  const Events events_;
  int socket_ = -1;
  std::unique_ptr<nghttp2_session, LibraryDeleter> library_{};
  std::string output_{};
  std::unique_ptr<char[]> input_;
};

}  // namespace ordo::bench

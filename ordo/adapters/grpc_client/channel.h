// Channel: one connection to a gRPC server, used by one thread that waits for answers.
//
//   Result<std::unique_ptr<Channel>> channel = Channel::connect({"127.0.0.1", 8085});
//   if (!channel) return channel.error();
//   Result<std::string> answer = (*channel)->call("/test.Echo/Say", request_bytes, 10s);
//
//   Stream stream = (*channel)->open("/test.Echo/Chat");      // both sides may go on talking
//   stream.write(message);
//   Result<Event> event = stream.read(clock.now() + 1s);
//   if (event && event->message) use(*event->message);
//   stream.cancel();
//
// Messages are bytes; who calls knows what they are. The status of an answer becomes an Error with
// the same code. Several calls may be under way: open() some, then read() them in any order.
//
// Threads: one owner, also of its streams; a blocked read() ends early when `wake_fd` is readable.
// Bounds:  a message up to message_bytes_max, read or written; of a stream nobody reads the server
//          may send kWindowBytes ahead. What is written waits in memory until the server takes it:
//          flush() waits for that.
// Errors:  unavailable: no connection, or it was lost; deadline_exceeded: no answer in time;
//          what the server says. All sentences are for a person.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ordo/adapters/grpc_client/address.h"
#include "ordo/core/clock.h"
#include "ordo/core/result.h"

namespace ordo::grpc_client {

struct ChannelOptions {
  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(5);
  std::size_t message_bytes_max = std::size_t{64} << 20;
  const Clock* clock = nullptr;  // None: the system's.
};

// What read() came back with. Neither a message nor the end: it was time, or it was woken.
struct Event {
  std::optional<std::string> message = {};
  bool is_end = false;  // The server has said all it had to say, and that it went well.
};

class Session;
struct StreamState;

class Stream {
 public:
  Stream() = default;
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&& other) noexcept;
  // Cancels what has not ended.
  ~Stream() { cancel(); }

  // Queues a message and sends what the server takes without waiting.
  // REQUIRES: half_close() was not called.
  Status write(std::string_view message);
  // Says that no more will be written.
  void half_close();
  // Waits until all that was written is with the system.
  Status flush(TimePoint deadline);
  // The next message, the end, or nothing by `deadline` (or when `wake_fd` is readable, if it is
  // not -1). An Error is the end as well: read() gives it again.
  Result<Event> read(TimePoint deadline, int wake_fd = -1);
  // As read(), of what is there already: does not touch the socket.
  Result<Event> read_ready();
  void cancel();

  explicit operator bool() const { return state_ != nullptr; }

 private:
  friend class Channel;
  Stream(std::shared_ptr<Session> session, std::shared_ptr<StreamState> state);

  std::shared_ptr<Session> session_;
  std::shared_ptr<StreamState> state_;
};

class Channel {
 public:
  static constexpr std::size_t kWindowBytes = std::size_t{4} << 20;

  static Result<std::unique_ptr<Channel>> connect(const Address& address,
                                                  const ChannelOptions& options = {});
  explicit Channel(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  // One message there, one back. `path` is "/package.Service/Method".
  Result<std::string> call(std::string_view path, std::string_view request,
                           std::chrono::nanoseconds timeout);
  // `timeout` is told to the server; none: as long as it takes.
  Stream open(std::string_view path, std::optional<std::chrono::nanoseconds> timeout = {});
  // The answer of a call that was begun with open(), write() and half_close().
  Result<std::string> answer_of(Stream& stream, std::string_view path, TimePoint deadline);
  // Whether the server is there.
  Status ping(std::chrono::nanoseconds timeout);
  // Nothing more can be said: the connection has gone. Known when a read or a write has found out.
  bool is_lost() const;

  const Address& address() const;
  const Clock& clock() const;

 private:
  std::shared_ptr<Session> session_;
};

}  // namespace ordo::grpc_client

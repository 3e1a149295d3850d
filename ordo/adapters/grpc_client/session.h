// Session: the connection of a Channel: its socket, the library's state, the streams under way.
//
// Threads: one owner, as the channel.
// Bounds:  see channel.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ordo/adapters/grpc_client/channel.h"
#include "ordo/adapters/sockets/descriptor.h"

struct nghttp2_session;

namespace ordo::grpc_client {

// A message that nobody has taken yet.
struct WaitingMessage {
  std::string bytes = {};
  std::size_t withheld = 0;  // Of the window, until it is taken.
};

struct StreamState {
  std::int32_t id = -1;
  std::string unsent = {};      // Framed.
  std::size_t sent = 0;         // Bytes of `unsent` that are gone.
  bool is_half_closed = false;  // Nothing follows `unsent`.
  std::string input = {};       // The beginning of a message.
  std::deque<WaitingMessage> messages = {};
  std::string http_status = {};
  std::string grpc_status = {};
  std::string grpc_message = {};
  std::optional<Status> end = {};
};

class Session {
 public:
  Session(Address address, sockets::Descriptor socket, const ChannelOptions& options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  std::shared_ptr<StreamState> open(std::string_view path,
                                    std::optional<std::chrono::nanoseconds> timeout);
  Status write(StreamState& stream, std::string_view message);
  void half_close(StreamState& stream);
  void cancel(StreamState& stream);
  // Hands out the next message, if there is one.
  std::optional<std::string> take_message(StreamState& stream);

  // Sends and receives once: waits until the socket is ready, `deadline` or `wake_fd`. False: it
  // was time, or woken.
  bool turn(TimePoint deadline, int wake_fd);
  // Sends what the system takes at once.
  void send_some();
  bool has_output() const;

  void send_ping();
  std::uint64_t pongs() const { return pongs_; }

  const std::optional<Error>& lost() const { return lost_; }
  const Address& address() const { return address_; }
  const Clock& clock() const { return clock_; }

 private:
  friend struct SessionCalls;  // What the library calls.

  void receive_some();
  void lose(std::string why);
  void end(StreamState& stream, Status status);
  void take_data(StreamState& stream, std::string_view bytes);
  void take_header(StreamState& stream, std::string_view name, std::string_view value);
  void close_stream(std::int32_t id, std::uint32_t error_code);
  Status end_of(const StreamState& stream, std::uint32_t error_code) const;

  const Address address_;
  const std::string authority_;
  const sockets::Descriptor socket_;
  const std::size_t message_bytes_max_;
  const Clock& clock_;
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, std::shared_ptr<StreamState>> streams_;
  std::string output_;  // Taken from the library, not from us.
  std::optional<Error> lost_;
  bool has_heard_ = false;  // The server has sent something that is HTTP/2.
  std::uint64_t pongs_ = 0;
};

}  // namespace ordo::grpc_client

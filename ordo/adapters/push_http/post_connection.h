// PostConnection: one connection to an HTTP/1.1 server, which takes one request at a time.
//
//   auto connection = std::make_unique<PostConnection>(context, limits, "localhost", 8080);
//   connection->post(request, timeout, {.answered = [](const PostResult& result) { ... },
//                                       .freed = [](bool is_usable) { ... }});
//   ...
//   connection->rest(idle_time, [] { /* it has closed, or waited long enough */ });
//
// The answer is the status of the response, and is given as soon as its head is there. What follows
// the head is read to keep the connection for the next request, and thrown away; when there is too
// much of it, or it takes too long, the connection is closed instead.
//
// Threads: one owner, the thread that runs the context; so are the calls it makes.
// Bounds:  PostLimits; the time limit of post() spans everything from the name's look-up to the
//          head of the response.
// Errors:  outcomes of PostResult; nothing throws.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

namespace ordo::push_http {

enum class PostOutcome : std::uint8_t {
  accepted,     // With a status that says so.
  refused,      // With any other status.
  timed_out,    // No head of a response within the time limit.
  unreachable,  // The name is not known, or nobody listens there.
  broken,       // The connection ended before a response, or what came is none.
  stale,        // As broken, but of a connection that was used before, which the server may have
                // closed just then: to be tried on a new one.
  aborted,      // By us.
};

struct PostResult {
  PostOutcome outcome = PostOutcome::aborted;
  unsigned status = 0;  // Of a response; else 0.
};

struct PostLimits {
  std::size_t head_bytes_max = std::size_t{16} << 10;  // Of a response.
  std::size_t body_bytes_max = std::size_t{64} << 10;  // Of a response, to keep the connection.
  std::chrono::nanoseconds body_time_max = std::chrono::seconds(5);  // Likewise.
};

class PostConnection {
 public:
  struct Events {
    std::function<void(const PostResult&)> answered;  // Once.
    std::function<void(bool is_usable)> freed;        // Once, after that.
  };

  PostConnection(boost::asio::io_context& context, const PostLimits& limits, std::string host,
                 std::uint16_t port);
  PostConnection(const PostConnection&) = delete;
  PostConnection& operator=(const PostConnection&) = delete;
  ~PostConnection();

  // Connects first, where it is not connected. REQUIRES: the last one was freed, usable.
  void post(std::string request, std::chrono::nanoseconds time_max, Events events);

  // Nothing is to be sent for now. `gone` is called, once, when the server closes or says something
  // unasked, and after `time_max`; not when post() or abort() came first.
  void rest(std::chrono::nanoseconds time_max, std::function<void()> gone);

  // Ends what is under way (aborted, freed), and the connection.
  void abort();

 private:
  class Wire;  // Asio and Beast.
  const std::shared_ptr<Wire> wire_;
};

}  // namespace ordo::push_http

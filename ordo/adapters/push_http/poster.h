// Poster: posts requests to HTTP/1.1 servers, on connections that it keeps for the next ones.
//
//   Poster poster(context, {.connections_max = 100});
//   poster.post({.host = "localhost", .port = 8080, .time_max = 10s,
//                .make_request = [=] { return push_request(target, delivery); },
//                .answered = [](const PostResult& result) { ... }});
//
// One request at a time on a connection. A request that meets a connection which its server has
// just closed is sent again, once, on a new one. What could not be sent by its `until` is answered
// `aborted`.
//
// Threads: one owner, the thread that runs the context; so are the calls it makes.
// Bounds:  connections_max; more requests wait for a connection, first come first served, and are
//          made when they get one. A connection nobody uses is closed after idle_time_max, or when
//          its place is needed.
// Cost:    a lookup for each request.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "ordo/adapters/push_http/post_connection.h"
#include "ordo/core/clock.h"

namespace ordo::push_http {

struct PosterOptions {
  std::size_t connections_max = 1'000;
  std::chrono::nanoseconds idle_time_max = std::chrono::seconds(30);
  PostLimits limits{};
};

struct Post {
  std::string host;
  std::uint16_t port = 0;
  std::chrono::nanoseconds time_max{};        // From when it has a connection, or makes one.
  TimePoint until = TimePoint::max();         // It is not sent later, and has its answer by then.
  std::function<std::string()> make_request;  // Called once or twice.
  std::function<void(const PostResult&)> answered;
};

class Poster {
 public:
  // `clock` is that of Post::until.
  Poster(boost::asio::io_context& context, const PosterOptions& options,
         Clock& clock = system_clock());
  Poster(const Poster&) = delete;
  Poster& operator=(const Poster&) = delete;
  ~Poster();

  void post(Post post);
  // All that wait or are under way are answered `aborted`.
  void abort_all();

  // Any thread.
  std::size_t connection_count() const { return count_.load(std::memory_order_relaxed); }
  std::size_t waiting_count() const { return waiting_count_.load(std::memory_order_relaxed); }

 private:
  using Place = std::pair<std::string, std::uint16_t>;

  struct Peer {
    Place place;
    std::unique_ptr<PostConnection> connection;
  };
  using Peers = std::list<Peer>;

  void begin(Post post);
  void send(Peers::iterator peer, Post post);
  void freed(Peers::iterator peer, bool is_usable);
  void forget_idle(Peers::iterator peer);
  Peers::iterator take_idle(const Place& place);
  bool make_room();
  void serve_waiting();
  bool is_late(const Post& post) const { return clock_.now() >= post.until; }
  void note_counts();

  boost::asio::io_context& context_;
  const PosterOptions options_;
  Clock& clock_;
  Peers busy_;
  Peers idle_;  // The longest idle first.
  std::multimap<Place, Peers::iterator> idle_by_place_;
  std::deque<Post> waiting_;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> waiting_count_{0};
};

}  // namespace ordo::push_http

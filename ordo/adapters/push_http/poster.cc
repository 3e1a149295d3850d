#include "ordo/adapters/push_http/poster.h"

#include <algorithm>
#include <vector>

namespace ordo::push_http {

Poster::Poster(boost::asio::io_context& context, const PosterOptions& options, Clock& clock)
    : context_(context),
      options_(options),
      clock_(clock) {}

Poster::~Poster() = default;

void Poster::post(Post post) {
  waiting_.push_back(std::move(post));
  serve_waiting();
}

void Poster::abort_all() {
  std::deque<Post> waiting = std::exchange(waiting_, {});
  note_counts();
  for (const Post& post : waiting)
    post.answered({});
  std::vector<PostConnection*> connections;
  for (const Peer& peer : busy_)
    connections.push_back(peer.connection.get());
  for (PostConnection* const connection : connections)
    connection->abort();
}

void Poster::serve_waiting() {
  while (!waiting_.empty()) {
    if (is_late(waiting_.front())) {
      const Post late = std::move(waiting_.front());
      waiting_.pop_front();
      late.answered({});
      continue;
    }
    const bool is_full = busy_.size() + idle_.size() >= options_.connections_max;
    const Post& next = waiting_.front();
    if (is_full && !idle_by_place_.contains({next.host, next.port}) && !make_room()) break;
    Post post = std::move(waiting_.front());
    waiting_.pop_front();
    begin(std::move(post));
  }
  note_counts();
}

// Closes the connection that nobody has used for longest. False: all are in use.
bool Poster::make_room() {
  if (idle_.empty()) return false;
  forget_idle(idle_.begin());
  return true;
}

// REQUIRES: there is room, or an idle connection to the same place.
void Poster::begin(Post post) {
  const Place place{post.host, post.port};
  auto peer = take_idle(place);
  if (peer == busy_.end()) {
    peer = busy_.insert(busy_.end(),
                        Peer{place, std::make_unique<PostConnection>(context_, options_.limits,
                                                                     post.host, post.port)});
  }
  send(peer, std::move(post));
}

void Poster::send(Peers::iterator peer, Post post) {
  std::string request = post.make_request();
  const std::chrono::nanoseconds time_max =
      std::min<std::chrono::nanoseconds>(post.time_max, post.until - clock_.now());
  auto sent = std::make_shared<Post>(std::move(post));
  PostConnection::Events events;
  events.answered = [this, sent](const PostResult& result) {
    if (result.outcome != PostOutcome::stale) return sent->answered(result);
    if (is_late(*sent)) return sent->answered({});
    // On a new connection: the place of this one is about to be free.
    busy_.push_back(
        Peer{{sent->host, sent->port},
             std::make_unique<PostConnection>(context_, options_.limits, sent->host, sent->port)});
    send(std::prev(busy_.end()), std::move(*sent));
  };
  events.freed = [this, peer](bool is_usable) { freed(peer, is_usable); };
  peer->connection->post(std::move(request), time_max, std::move(events));
}

void Poster::freed(Peers::iterator peer, bool is_usable) {
  if (is_usable) {
    idle_.splice(idle_.end(), busy_, peer);
    idle_by_place_.emplace(peer->place, peer);
    peer->connection->rest(options_.idle_time_max, [this, peer] { forget_idle(peer); });
  } else {
    busy_.erase(peer);
  }
  serve_waiting();
}

void Poster::forget_idle(Peers::iterator peer) {
  const auto [first, last] = idle_by_place_.equal_range(peer->place);
  idle_by_place_.erase(std::find_if(first, last, [&](const auto& e) { return e.second == peer; }));
  idle_.erase(peer);
  note_counts();
}

// The one that was used last; busy_.end(): none.
Poster::Peers::iterator Poster::take_idle(const Place& place) {
  const auto [first, last] = idle_by_place_.equal_range(place);
  if (first == last) return busy_.end();
  const auto newest = std::prev(last);
  const Peers::iterator peer = newest->second;
  idle_by_place_.erase(newest);
  busy_.splice(busy_.end(), idle_, peer);
  return peer;
}

void Poster::note_counts() {
  count_.store(busy_.size() + idle_.size(), std::memory_order_relaxed);
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
}

}  // namespace ordo::push_http

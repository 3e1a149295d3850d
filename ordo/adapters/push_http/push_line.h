// PushLine: one push subscription on its way to its endpoint: its stream, its window, and what is
// under way.
//
//   auto line = std::make_shared<PushLine>(name, aim, office);
//   if (Status opened = line->open(broker); !opened) return opened;
//   line->aim_at(aim);       // another endpoint or time limit, for pushes from now on
//   line->leave();           // no new ones; office.ended(line) when those under way have ended
//
// Every message that the broker delivers is sent at once: what may be outstanding on the stream is
// what the window allows. An accepted one is acknowledged, any other is given back as a failed
// attempt, and the broker does the rest: the place in its key, the back-off, the dead letter. The
// stream's leases are longer than a push may take, so none expires under way.
//
// Threads: one owner, the thread that runs the context.
// Bounds:  the window; kBytesMax of messages under way.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "ordo/adapters/push_http/poster.h"
#include "ordo/adapters/push_http/push_request.h"
#include "ordo/adapters/push_http/push_window.h"
#include "ordo/broker.h"
#include "ordo/core/counter.h"

namespace ordo::push_http {

// Written by the thread of the context; read by any.
struct PushCounters {
  Counter accepted;
  Counter refused;
  Counter timed_out;
  Counter unreachable;
  Counter broken;
  Counter given_back;  // Not sent: there was a pause, or an end.
};

class PushLine : public std::enable_shared_from_this<PushLine> {
 public:
  static constexpr std::int64_t kBytesMax = std::int64_t{64} << 20;

  // What the lines of a courier share; outlives them.
  struct Office {
    // Shared with the events of streams, which may come late.
    std::shared_ptr<boost::asio::io_context> context;
    Poster& poster;
    PushCounters& counters;
    Clock& clock;
    PushWindowOptions window;
    // The line has left, or its subscription is gone, and nothing of it is under way.
    std::function<void(const std::shared_ptr<PushLine>& line)> ended;
  };

  struct Aim {
    std::shared_ptr<const PushTarget> target;
    std::chrono::nanoseconds time_max{};  // Of a push: the ack deadline of the subscription.
  };

  PushLine(std::string name, Aim aim, const Office& office);
  PushLine(const PushLine&) = delete;
  PushLine& operator=(const PushLine&) = delete;

  // Errors: those of Broker::open_stream.
  Status open(Broker& broker);
  void aim_at(Aim aim);
  void leave();

  const std::string& name() const { return name_; }
  std::size_t under_way() const { return under_way_; }

 private:
  void deliver(std::vector<broker::Delivery>&& deliveries);
  void push(broker::Delivery&& delivery);
  void finish(const broker::AckId& id, std::uint64_t round, const PostResult& result);
  void follow_window();
  void say_if_stuck(const PostResult& result);
  void end_if_done();

  const std::string name_;
  const Office& office_;
  Aim aim_;
  Stream stream_;
  PushWindow window_;
  boost::asio::steady_timer pause_;
  std::uint32_t limit_;  // As the stream knows it.
  std::size_t under_way_ = 0;
  bool is_leaving_ = false;
  bool is_quiet_ = false;  // The stream delivers no more.
  bool is_stuck_ = false;  // Somebody was told that nothing is accepted.
};

}  // namespace ordo::push_http

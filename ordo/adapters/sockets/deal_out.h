// deal_out: hands a new connection to the next of several I/O threads, in turn.
//
//   deal_out(fronts, next_front, std::move(socket));     // Front: context() and adopt(Descriptor)
//
// Threads: on the thread of the first front, which needs no detour.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>

#include "ordo/adapters/sockets/descriptor.h"

namespace ordo::sockets {

// REQUIRES: `fronts` is not empty; their threads end before they do.
template <class Front>
void deal_out(const std::vector<std::unique_ptr<Front>>& fronts, std::size_t& next,
              Descriptor socket) {
  Front& front = *fronts[next];
  next = (next + 1) % fronts.size();
  if (&front == fronts.front().get()) {
    front.adopt(std::move(socket));
    return;
  }
  boost::asio::post(front.context(), [&front, taken = std::move(socket)]() mutable {
    front.adopt(std::move(taken));
  });
}

}  // namespace ordo::sockets

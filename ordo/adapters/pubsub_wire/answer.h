// Answer: the way back of a method with one request and one answer, however the request came.
//
//   void publish(ServiceCore& core, const AnswerPtr& answer, std::string_view request) {
//     if (!is_good(request)) return answer->fail(malformed_request());
//     answer->reply(http2::Slice::of(response.SerializeAsString()));
//   }
//
// reply() and fail() are the last word; what comes after it is dropped. An answer that nobody gives
// leaves the client waiting.
//
// Threads: any, all calls.
// Cost:    the pieces are not copied on their way to a gRPC call.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "ordo/adapters/http2/slice.h"
#include "ordo/core/clock.h"
#include "ordo/core/result.h"

namespace ordo::pubsub_wire {

class Answer {
 public:
  Answer() = default;
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  virtual ~Answer() = default;

  // The response, serialised, of one piece or several.
  virtual void reply(std::vector<http2::Slice> pieces) = 0;
  void reply(http2::Slice response) {
    std::vector<http2::Slice> pieces;
    pieces.push_back(std::move(response));
    reply(std::move(pieces));
  }
  // `details` is a serialised google.rpc.Status, or empty.
  virtual void fail(const Error& error, std::string_view details) = 0;
  void fail(const Error& error) { fail(error, {}); }

  // More details than this do not reach the client.
  virtual std::size_t details_bytes_max() const { return std::numeric_limits<std::size_t>::max(); }

  // The client has gone: nobody will see the answer.
  virtual bool is_cancelled() const = 0;
  // `function` is called when the client goes, at once when it has gone, at most once.
  // REQUIRES: the method was added as one that waits, has not returned, and asks once.
  virtual void on_cancelled(std::function<void()> function) = 0;
  // When the client's patience ends; TimePoint::max() when it has not said.
  virtual TimePoint deadline() const = 0;
};

using AnswerPtr = std::shared_ptr<Answer>;

}  // namespace ordo::pubsub_wire

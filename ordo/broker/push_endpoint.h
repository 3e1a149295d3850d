// PushEndpoint: where the messages of a push subscription are sent, taken apart.
//
//   Result<PushEndpoint> endpoint = PushEndpoint::parse("http://localhost:8080/orders?shop=7");
//   endpoint->host, endpoint->port, endpoint->target     // localhost, 8080, /orders?shop=7
//
// Only what a request line and a Host header can carry as it is: nothing in it can end a line.
//
// Threads: pure functions.
// Bounds:  kBytesMax.
// Errors:  invalid_argument, which says what is wrong with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ordo/broker/config.h"
#include "ordo/core/result.h"

namespace ordo::broker {

struct PushEndpoint {
  static constexpr std::size_t kBytesMax = 2'048;

  std::string host;  // A name, or an address without brackets.
  std::uint16_t port = 80;
  std::string authority;  // As it was given: for the Host header.
  std::string target;     // Path and query; "/" at least.

  static Result<PushEndpoint> parse(std::string_view url);
};

// Why a consumer may not have the messages of a subscription: those of a push subscription are for
// the one who pushes, all others for those who fetch them.
std::optional<Error> refuse_consumer(const SubscriptionConfig& config, bool pushes);

}  // namespace ordo::broker

// connect_to(): a connected TCP socket that does not block, or why there is none.
//
//   Result<sockets::Descriptor> socket = connect_to(address, 5s, system_clock());
//
// Every address that the name of the host has is tried, one after the other.
//
// Threads: blocks the caller, up to `timeout` after the name was looked up.
// Errors:  unavailable: nobody listens there, no way there, no such host; for a person.
#pragma once

#include <chrono>

#include "ordo/adapters/grpc_client/address.h"
#include "ordo/adapters/sockets/descriptor.h"
#include "ordo/core/clock.h"
#include "ordo/core/result.h"

namespace ordo::grpc_client {

Result<sockets::Descriptor> connect_to(const Address& address, std::chrono::nanoseconds timeout,
                                       const Clock& clock);

// Milliseconds for poll() until `deadline`, rounded up; -1: for ever.
int milliseconds_until(TimePoint deadline, TimePoint now);

}  // namespace ordo::grpc_client

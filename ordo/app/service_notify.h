// notify_service(): tells the system's service manager how this process is doing.
//
//   notify_service("READY=1\nSTATUS=ready");     // of a unit with Type=notify
//
// One datagram to the socket that NOTIFY_SOCKET names, as sd_notify(3) describes; without that
// variable nobody waits to be told, and nothing happens.
//
// Threads: any, while the environment does not change.
// Errors:  false: there is nobody to tell, or it could not be told, which is no reason to end.
#pragma once

#include <string_view>

namespace ordo::app {

bool notify_service(std::string_view state);

}  // namespace ordo::app

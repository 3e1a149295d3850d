// is_own_host(): whether the Host of an HTTP request is an address or localhost.
//
//   if (!is_own_host(request.host)) return refuse(421);
//
// A server that only this machine may use can still be reached by a web page of somebody else: he
// makes a name of his point to 127.0.0.1, and the browser takes what is there for his own. The name
// then stands in Host.
//
// Threads: a pure function.
#pragma once

#include <string_view>

namespace ordo {

// `host` may have a port. Empty is allowed: old clients do not say it, browsers do.
bool is_own_host(std::string_view host);

}  // namespace ordo

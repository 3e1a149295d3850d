// run_gateway(): `ordo gateway`, from its words to its exit status.
//
// Threads: call it from main(); it blocks the signals it waits for before it makes any thread.
#pragma once

#include "ordo/app/gateway_options.h"

namespace ordo::app {

inline constexpr int kExitUndone = 1;  // Stopped, and some of what was admitted was not done.

int run_gateway(const CommandWords& words);

// run_gateway_client(): `ordo gateway-client`. 1: some replies were REJ, or missing.
int run_gateway_client(const ClientOptions& options);

}  // namespace ordo::app

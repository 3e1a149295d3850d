// run_serve(): `ordo serve`, from its words to its exit status.
//
// Threads: call it from main(); it blocks the signals it waits for before it makes any thread.
#pragma once

#include "ordo/app/settings.h"

namespace ordo::app {

int run_serve(const CommandWords& words);

}  // namespace ordo::app

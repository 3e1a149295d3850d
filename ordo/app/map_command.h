// run_map(): the subcommand `ordo map`, from checked options to exit status.
//
// Everything that can be wrong before the first line is read is found before the first line is
// read: the command, the journal, the dead-letter and output files, the limits of the system.
#pragma once

#include "ordo/app/map_options.h"

namespace ordo::app {

// Returns the exit status. REQUIRES: called once, while the process has one thread.
int run_map(MapOptions options);

}  // namespace ordo::app

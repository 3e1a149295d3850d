// The public door of the dispatcher: ordo::Dispatcher, ordo::DispatcherOptions, ordo::Completion,
// ordo::steps, and the failure policies ordo::skip, park, dead_letter, retry.
#pragma once

#include "ordo/dispatcher/dispatcher.h"

// The public door of the priority bus: ordo::Bus, ordo::Subscription, ordo::BusOptions.
#pragma once

#include "ordo/bus/bus.h"

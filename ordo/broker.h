// The public door of the broker: ordo::Broker, ordo::Publisher, ordo::Subscriber, ordo::Stream, and
// what they take and give.
#pragma once

#include "ordo/broker/broker.h"

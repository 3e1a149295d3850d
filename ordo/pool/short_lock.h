// ShortLock by the name the pool knows it by.
#pragma once

#include "ordo/runtime/short_lock.h"

namespace ordo::pool {

using ordo::ShortLock;

}  // namespace ordo::pool

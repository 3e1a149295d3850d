// The public door of the ordered worker pool: ordo::Pool, ordo::PoolOptions, ordo::map_ordered.
#pragma once

#include "ordo/pool/pool.h"

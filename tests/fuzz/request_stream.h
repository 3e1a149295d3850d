// check_request_stream: any bytes, given whole and byte by byte, must mean the same.
//
//   check_request_stream(Encoding::text, bytes);   // aborts when they do not
//
// Also: every task that comes out, encoded again, comes out again, in both encodings. Used by the
// fuzz targets, and by the normal tests on the corpus.
//
// Threads: pure functions.
#pragma once

#include <string_view>

#include "ordo/adapters/order_tcp/wire.h"

namespace ordo::fuzz {

// The bytes of a client that speaks `encoding`; the first byte is made to say so.
void check_request_stream(order_tcp::Encoding encoding, std::string_view bytes);

}  // namespace ordo::fuzz

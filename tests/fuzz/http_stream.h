// check_http_stream, check_messages: any bytes, given whole and in pieces, must mean the same.
//
//   check_http_stream(bytes);   // to a Connection of the HTTP front: aborts when they do not
//   check_messages(bytes);      // to the Deframer
//
// Also: nothing stays counted as kept when the connection has gone, and every handler that began is
// told of an end. Used by the fuzz targets, and by the normal tests on the corpus.
//
// Threads: pure functions.
#pragma once

#include <string_view>

namespace ordo::fuzz {

// The bytes of a client, from its first on.
void check_http_stream(std::string_view bytes);
// The DATA of a gRPC call.
void check_messages(std::string_view bytes);

}  // namespace ordo::fuzz

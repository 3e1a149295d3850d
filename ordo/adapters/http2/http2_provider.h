// provider_of: how the library gets the DATA of a stream.
//
// Threads: the stream's.
#pragma once

#include <nghttp2/nghttp2.h>

namespace ordo::http2 {

class Http2Stream;

// REQUIRES: `stream` lives until the library has closed it.
nghttp2_data_provider provider_of(Http2Stream& stream);

}  // namespace ordo::http2

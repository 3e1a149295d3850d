// check_pubsub_request, check_filter, check_rest_request: what clients of the Pub/Sub API may send,
// whatever it is, is read without harm, and as others read it.
//
//   check_pubsub_request(bytes);   // to the readers of gRPC requests: aborts when a law is broken
//   check_filter(text);            // to the parser of filters
//   check_rest_request(text);      // "POST /v1/projects/p/topics/t:publish\n" and a body
//
// The laws stand with the functions. Used by the fuzz targets, and by the normal tests on the
// corpus.
//
// Threads: pure functions.
#pragma once

#include <string_view>

namespace ordo::fuzz {

void check_pubsub_request(std::string_view bytes);
void check_filter(std::string_view text);
void check_rest_request(std::string_view text);

}  // namespace ordo::fuzz

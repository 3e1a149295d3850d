// libFuzzer target: a request of a gRPC client of the Pub/Sub API.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/pubsub_requests.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ordo::fuzz::check_pubsub_request({reinterpret_cast<const char*>(data), size});
  return 0;
}

// libFuzzer target: the filter of a subscription.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/pubsub_requests.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ordo::fuzz::check_filter({reinterpret_cast<const char*>(data), size});
  return 0;
}

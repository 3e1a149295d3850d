// libFuzzer target: the DATA of a gRPC call.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/http_stream.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ordo::fuzz::check_messages({reinterpret_cast<const char*>(data), size});
  return 0;
}

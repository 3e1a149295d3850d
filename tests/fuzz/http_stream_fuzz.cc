// libFuzzer target: the bytes of a client of the HTTP front.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/http_stream.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ordo::fuzz::check_http_stream({reinterpret_cast<const char*>(data), size});
  return 0;
}

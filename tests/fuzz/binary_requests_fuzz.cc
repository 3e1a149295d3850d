// libFuzzer target: requests in the binary encoding.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/request_stream.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ordo::fuzz::check_request_stream(ordo::order_tcp::Encoding::binary,
                                   {reinterpret_cast<const char*>(data), size});
  return 0;
}

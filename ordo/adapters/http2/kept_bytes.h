// KeptBytes: input that has come and cannot be used yet, within the bounds of its connection and of
// the server.
//
//   KeptBytes body(limits, connection_bytes, budget);
//   if (const char* reason = body.append(bytes, expected)) return refuse(reason);
//   use(body.text());
//   body.clear();
//
// Threads: one owner.
// Bounds:  Limits::input_bytes_max for all of a connection, the budget for all of the server.
//          Memory is taken as bytes come, in doubling steps, not as the client announces them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "ordo/adapters/http2/limits.h"

namespace ordo::http2 {

class KeptBytes {
 public:
  // `connection_bytes` is what all of the connection keep. REQUIRES: all three outlive this.
  KeptBytes(const Limits& limits, std::size_t& connection_bytes, InputBudget& budget)
      : limits_(limits),
        connection_bytes_(connection_bytes),
        budget_(budget) {}
  KeptBytes(const KeptBytes&) = delete;
  KeptBytes& operator=(const KeptBytes&) = delete;
  ~KeptBytes() { clear(); }

  // Says why it does not take them, or nothing. `expected` bytes will come in all, perhaps.
  [[nodiscard]] const char* append(std::string_view bytes, std::size_t expected) {
    const std::size_t size = text_.size() + bytes.size();
    if (size > reserved_) {
      const std::size_t wanted = std::max(size, std::min(expected, 2 * size));
      const std::size_t more = wanted - reserved_;
      if (connection_bytes_ + more > limits_.input_bytes_max)
        return "too many bytes of incomplete requests on this connection";
      if (!budget_.take(more)) return "the server holds too many bytes of incomplete requests";
      connection_bytes_ += more;
      reserved_ = wanted;
      text_.reserve(wanted);
    }
    text_.append(bytes);
    return nullptr;
  }

  const std::string& text() const { return text_; }
  std::size_t size() const { return text_.size(); }
  bool empty() const { return text_.empty(); }

  void clear() { release(); }
  // The bytes, which count no more.
  std::string release() {
    connection_bytes_ -= reserved_;
    if (reserved_ > 0) budget_.give(reserved_);
    reserved_ = 0;
    return std::exchange(text_, {});
  }

 private:
  const Limits& limits_;
  std::size_t& connection_bytes_;
  InputBudget& budget_;
  std::string text_;
  std::size_t reserved_ = 0;
};

}  // namespace ordo::http2

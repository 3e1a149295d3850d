// KeptBytes: input that has come and cannot be used yet, within the bounds of its connection and of
// the server.
//
//   KeptBytes body(limits, connection_bytes, budget);
//   if (const char* reason = body.append(bytes, expected)) return refuse(reason);
//   use(body.text());
//   body.clear();
//
// InputShare: what one has taken of those bounds.
//
// Threads: one owner.
// Bounds:  Limits::input_bytes_max for all of a connection, the budget for all of the server, and
//          for heads kFirstBytes of each connection beside it.
//          Memory is taken as bytes come, in doubling steps, not as the client announces them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "ordo/adapters/http2/limits.h"

namespace ordo::http2 {

class InputShare {
 public:
  static constexpr std::size_t kFirstBytes = std::size_t{64} * 1024;

  // `connection_bytes` is what all of the connection have. REQUIRES: all three outlive this.
  InputShare(const Limits& limits, std::size_t& connection_bytes, InputBudget& budget)
      : limits_(limits),
        connection_bytes_(connection_bytes),
        budget_(budget) {}
  InputShare(const InputShare&) = delete;
  InputShare& operator=(const InputShare&) = delete;
  ~InputShare() { clear(); }

  // Says why there is no room for so many more, or nothing.
  [[nodiscard]] const char* grow(std::size_t more) {
    if (connection_bytes_ + more > limits_.input_bytes_max)
      return "too many bytes of incomplete requests on this connection";
    if (!budget_.take(more)) return "the server holds too many bytes of incomplete requests";
    note(more);
    return nullptr;
  }
  // As grow(); but the first bytes of a connection are granted, whatever the others have taken: who
  // wants little is served.
  [[nodiscard]] const char* grow_or_begin(std::size_t more) {
    if (connection_bytes_ + more > kFirstBytes) return grow(more);
    budget_.add(more);
    note(more);
    return nullptr;
  }

  std::size_t bytes() const { return bytes_; }

  void clear() {
    connection_bytes_ -= bytes_;
    if (bytes_ > 0) budget_.give(bytes_);
    bytes_ = 0;
  }

 private:
  void note(std::size_t more) {
    connection_bytes_ += more;
    bytes_ += more;
  }

  const Limits& limits_;
  std::size_t& connection_bytes_;
  InputBudget& budget_;
  std::size_t bytes_ = 0;
};

class KeptBytes {
 public:
  // As InputShare.
  KeptBytes(const Limits& limits, std::size_t& connection_bytes, InputBudget& budget)
      : share_(limits, connection_bytes, budget) {}

  // Says why it does not take them, or nothing. `expected` bytes will come in all, perhaps.
  [[nodiscard]] const char* append(std::string_view bytes, std::size_t expected) {
    const std::size_t size = text_.size() + bytes.size();
    if (size > share_.bytes()) {
      const std::size_t wanted = std::max(size, std::min(expected, 2 * size));
      if (const char* reason = share_.grow(wanted - share_.bytes())) return reason;
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
    share_.clear();
    return std::exchange(text_, {});
  }

 private:
  InputShare share_;
  std::string text_;
};

}  // namespace ordo::http2

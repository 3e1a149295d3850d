// InlineText: text that is nearly always short, without an allocation when it is.
//
//   using RequestId = InlineText<23>;
//   RequestId id("r-1");
//   write(id.view());
//
// Threads: a plain value; one owner.
// Bounds:  2^32 - 1 bytes; up to kInlineMax of them lie inside the object.
// Cost:    moving copies the object's bytes; text longer than kInlineMax costs one allocation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <string_view>
#include <utility>

#include "ordo/core/check.h"

namespace ordo {

template <std::size_t kInlineMax>
class InlineText {
  static_assert(kInlineMax >= sizeof(char*));

 public:
  InlineText() = default;
  InlineText(std::string_view text) { set(text); }
  InlineText(const char* text) { set(text); }
  InlineText(const InlineText& other) { set(other.view()); }
  InlineText(InlineText&& other) noexcept { take(other); }
  InlineText& operator=(const InlineText& other) {
    if (this != &other) *this = InlineText(other.view());
    return *this;
  }
  InlineText& operator=(InlineText&& other) noexcept {
    if (this == &other) return *this;
    free_memory();
    take(other);
    return *this;
  }
  ~InlineText() { free_memory(); }

  std::string_view view() const { return {is_inline() ? bytes_ : allocated(), size_}; }
  operator std::string_view() const { return view(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  friend bool operator==(const InlineText& a, const InlineText& b) { return a.view() == b.view(); }
  friend bool operator==(const InlineText& a, std::string_view b) { return a.view() == b; }
  friend bool operator==(const InlineText& a, const char* b) { return a.view() == b; }
  friend std::ostream& operator<<(std::ostream& out, const InlineText& text) {
    return out << text.view();
  }

 private:
  bool is_inline() const { return size_ <= kInlineMax; }

  char* allocated() const {
    char* memory = nullptr;
    std::memcpy(static_cast<void*>(&memory), bytes_, sizeof(memory));
    return memory;
  }

  // REQUIRES: it is empty.
  void set(std::string_view text) {
    ORDO_CHECK(text.size() <= std::numeric_limits<std::uint32_t>::max());
    char* memory = bytes_;
    if (text.size() > kInlineMax) {
      memory = new char[text.size()];
      std::memcpy(bytes_, static_cast<const void*>(&memory), sizeof(memory));
    }
    std::copy(text.begin(), text.end(), memory);
    size_ = static_cast<std::uint32_t>(text.size());
  }

  // REQUIRES: no memory is held.
  void take(InlineText& other) noexcept {
    std::memcpy(bytes_, other.bytes_, sizeof(bytes_));
    size_ = std::exchange(other.size_, 0);
  }

  void free_memory() {
    if (!is_inline()) delete[] allocated();
  }

  std::uint32_t size_ = 0;
  char bytes_[kInlineMax] = {};  // The text, or where it is.
};

}  // namespace ordo

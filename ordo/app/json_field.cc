#include "ordo/app/json_field.h"

#include <charconv>
#include <cstdint>
#include <utility>

namespace ordo::app {
namespace {

void append_utf8(std::string& text, std::uint32_t code) {
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

class Scanner {
 public:
  Scanner(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Result<std::optional<std::string>> run() {
    skip_blanks();
    if (!object(0, true)) return wrong();
    skip_blanks();
    if (at_ != text_.size()) return wrong();
    if (is_nested_) {
      return Error{ErrorCode::invalid_argument,
                   "field '" + std::string(name_) + "' is an object or a list, and no key"};
    }
    return std::move(found_);
  }

 private:
  Error wrong() const {
    return {ErrorCode::invalid_argument,
            "no JSON object (at character " + std::to_string(at_ + 1) + ")"};
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string::npos)
      ++at_;
  }

  bool hex(std::uint32_t& code) {
    const std::string_view digits = text_.substr(at_, 4);
    const char* end = digits.data() + digits.size();
    if (digits.size() < 4 || std::from_chars(digits.data(), end, code, 16).ptr != end) return false;
    at_ += 4;
    return true;
  }
  // \uXXXX, or two of them for one character.
  bool escaped_code(std::string& to) {
    std::uint32_t code = 0;
    if (!hex(code)) return false;
    if (code >= 0xD800 && code < 0xDC00) {
      std::uint32_t low = 0;
      if (!take('\\') || !take('u') || !hex(low) || low < 0xDC00 || low > 0xDFFF) return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      return false;
    }
    append_utf8(to, code);
    return true;
  }
  bool escape(std::string& to) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (take('u')) return escaped_code(to);
    const std::size_t letter = at_ < text_.size() ? kLetters.find(peek()) : std::string::npos;
    if (letter == std::string::npos) return false;
    to += kMeanings[letter];
    ++at_;
    return true;
  }
  bool string(std::string& to) {
    if (!take('"')) return false;
    while (at_ < text_.size()) {
      if (take('"')) return true;
      if (take('\\')) {
        if (!escape(to)) return false;
      } else if (static_cast<unsigned char>(peek()) < 0x20) {
        return false;
      } else {
        to += text_[at_++];
      }
    }
    return false;
  }
  // A number or one of the three words, by its characters.
  bool bare(std::string& to) {
    const std::size_t begin = at_;
    constexpr std::string_view kEnd = " \t\r\n,:]}[{\"";
    while (at_ < text_.size() && kEnd.find(text_[at_]) == std::string::npos)
      ++at_;
    to = text_.substr(begin, at_ - begin);
    if (to == "true" || to == "false" || to == "null") return true;
    double number = 0;
    const bool begins_well = !to.empty() && (to[0] == '-' || (to[0] >= '0' && to[0] <= '9'));
    return begins_well &&
           std::from_chars(to.data(), to.data() + to.size(), number).ptr == to.data() + to.size();
  }

  bool value(int depth, std::string& to, bool& is_nested) {
    if (depth > kJsonDepthMax) return false;
    is_nested = peek() == '{' || peek() == '[';
    if (peek() == '{') return object(depth, false);
    if (peek() == '[') return list(depth);
    if (peek() == '"') return string(to);
    return bare(to);
  }
  bool list(int depth) {
    take('[');
    skip_blanks();
    if (take(']')) return true;
    do {
      skip_blanks();
      std::string ignored;
      bool is_nested = false;
      if (!value(depth + 1, ignored, is_nested)) return false;
      skip_blanks();
    } while (take(','));
    return take(']');
  }
  bool object(int depth, bool is_top) {
    if (!take('{')) return false;
    skip_blanks();
    if (take('}')) return true;
    do {
      skip_blanks();
      std::string name;
      std::string text;
      bool is_nested = false;
      if (!string(name)) return false;
      skip_blanks();
      if (!take(':')) return false;
      skip_blanks();
      if (!value(depth + 1, text, is_nested)) return false;
      if (is_top && name == name_) {
        found_ = std::move(text);
        is_nested_ = is_nested;
      }
      skip_blanks();
    } while (take(','));
    return take('}');
  }

  const std::string_view text_;
  const std::string_view name_;
  std::size_t at_ = 0;
  std::optional<std::string> found_;
  bool is_nested_ = false;
};

}  // namespace

Result<std::optional<std::string>> json_field(std::string_view line, std::string_view name) {
  return Scanner(line, name).run();
}

}  // namespace ordo::app

#include "ordo/broker/filter.h"

#include <optional>
#include <utility>

#include "ordo/broker/message_codec.h"
#include "ordo/core/utf8.h"

namespace ordo::broker {
namespace {

struct Token {
  enum class Kind : std::uint8_t { end, word, text, symbol, bad };
  Kind kind = Kind::end;
  std::size_t at = 0;      // Where it begins.
  std::string_view shown;  // As it was written.
  std::string value;       // What it means; of a bad one: what is wrong with it.
};

bool is_word_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || byte >= 0x80;
}

void put_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token next() {
    constexpr std::string_view kSpace = " \t\r\n";
    while (at_ < text_.size() && kSpace.find(text_[at_]) != std::string_view::npos)
      ++at_;
    Token token;
    token.at = at_;
    if (at_ == text_.size()) return token;
    const char c = text_[at_];
    if (c == '"') {
      read_text(token);
    } else if (is_word_byte(c) && c != '-') {
      token.kind = Token::Kind::word;
      while (at_ < text_.size() && is_word_byte(text_[at_]))
        ++at_;
    } else {
      token.kind = Token::Kind::symbol;
      at_ += text_.substr(at_, 2) == "!=" ? 2 : 1;
    }
    token.shown = text_.substr(token.at, at_ - token.at);
    if (token.kind == Token::Kind::word) token.value = token.shown;
    return token;
  }

 private:
  void read_text(Token& token) {
    token.kind = Token::Kind::text;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') {
        token.value += text_[at_];
        continue;
      }
      if (!read_escape(token.value)) {
        token.kind = Token::Kind::bad;
        token.value = "expected \\\", \\\\ or \\uXXXX after a backslash";
        return;
      }
    }
    if (at_ == text_.size()) {
      token.kind = Token::Kind::bad;
      token.value = "this quote is never closed";
      return;
    }
    ++at_;
  }

  // From the backslash to the last character of what it escapes.
  bool read_escape(std::string& out) {
    ++at_;
    if (at_ == text_.size()) return false;
    if (text_[at_] == '"' || text_[at_] == '\\') {
      out += text_[at_];
      return true;
    }
    std::optional<std::uint32_t> code = read_code();
    if (!code || (*code >= 0xdc00 && *code < 0xe000)) return false;
    if (*code >= 0xd800 && *code < 0xdc00) {  // The first half of a character beyond U+FFFF.
      if (text_.substr(at_ + 1, 1) != "\\") return false;
      at_ += 2;
      const std::optional<std::uint32_t> low = read_code();
      if (!low || *low < 0xdc00 || *low >= 0xe000) return false;
      code = 0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00);
    }
    put_utf8(out, *code);
    return true;
  }

  // At a `u`; afterwards at its last digit.
  std::optional<std::uint32_t> read_code() {
    if (text_.substr(at_, 1) != "u" || text_.size() - at_ < 5) return std::nullopt;
    std::uint32_t code = 0;
    for (const char c : text_.substr(at_ + 1, 4)) {
      const std::size_t digit =
          std::string_view("0123456789abcdef").find(c >= 'A' && c <= 'F' ? char(c + 32) : c);
      if (digit == std::string_view::npos) return std::nullopt;
      code = code << 4 | static_cast<std::uint32_t>(digit);
    }
    at_ += 4;
    return code;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string quoted(std::string_view text) {
  std::string out(1, '\'');
  out += text;
  out += '\'';
  return out;
}

Error invalid(std::string message) {
  return Error{ErrorCode::invalid_argument, std::move(message)};
}

}  // namespace

class FilterParser {
 public:
  explicit FilterParser(std::string_view text) : lexer_(text) { step(); }

  Result<Filter> parse() {
    if (Status done = expression(); !done) return done.error();
    if (token_.kind != Token::Kind::end) return unexpected("AND, OR or the end").error();
    return std::move(filter_);
  }

 private:
  using Node = Filter::Node;
  using Kind = Filter::Node::Kind;

  void step() { token_ = lexer_.next(); }
  bool is_word(std::string_view word) const {
    return token_.kind == Token::Kind::word && token_.shown == word;
  }
  bool is_symbol(std::string_view symbol) const {
    return token_.kind == Token::Kind::symbol && token_.shown == symbol;
  }

  Status fail(const std::string& what) const {
    return invalid("Invalid filter at position " + std::to_string(token_.at + 1) + ": " + what);
  }
  Status unexpected(std::string_view expected) const {
    if (token_.kind == Token::Kind::bad) return fail(token_.value);
    std::string what = "expected " + std::string(expected) + ", found ";
    if (token_.kind == Token::Kind::end) return fail(what + "the end");
    what += quoted(token_.shown);
    for (const std::string_view word : {"and", "or", "not"}) {
      if (is_word(word)) what += "; operators are written in upper case";
    }
    return fail(what);
  }

  Status take_symbol(std::string_view symbol) {
    if (!is_symbol(symbol)) return unexpected(quoted(symbol));
    step();
    return {};
  }

  Result<std::string> take_text(std::string_view expected) {
    if (token_.kind != Token::Kind::text) return unexpected(expected).error();
    std::string text = std::move(token_.value);
    step();
    return text;
  }

  // A key: in quotes, or words joined by dots.
  Result<std::string> take_key() {
    if (token_.kind == Token::Kind::text) return take_text("");
    std::string key;
    while (token_.kind == Token::Kind::word) {
      key += token_.shown;
      step();
      if (!is_symbol(".")) return key;
      key += '.';
      step();
    }
    return unexpected("the key of an attribute").error();
  }

  std::uint32_t add(Kind kind) {
    const auto index = static_cast<std::uint32_t>(filter_.nodes_.size());
    filter_.nodes_.push_back({kind, 0, {}, {}});
    return index;
  }
  void close(std::uint32_t index) {
    filter_.nodes_[index].end = static_cast<std::uint32_t>(filter_.nodes_.size());
  }

  Status expression() {
    const std::uint32_t index = add(Kind::all);
    if (Status done = term(); !done) return done;
    if (is_word("AND") || is_word("OR")) {
      const std::string joint = token_.value;
      if (joint == "OR") filter_.nodes_[index].kind = Kind::any;
      while (is_word(joint)) {
        step();
        if (Status done = term(); !done) return done;
      }
      if (is_word("AND") || is_word("OR")) {
        return fail("AND and OR are mixed: put parentheses around one of them");
      }
    }
    close(index);
    return {};
  }

  Status term() {
    if (depth_ == Filter::kDepthMax) {
      return fail("nested more than " + std::to_string(Filter::kDepthMax) + " levels deep");
    }
    ++depth_;
    Status done = term_inside();
    --depth_;
    return done;
  }

  Status term_inside() {
    if (is_word("NOT") || is_symbol("-")) {
      const std::uint32_t index = add(Kind::negation);
      step();
      if (Status done = term(); !done) return done;
      close(index);
      return {};
    }
    if (is_symbol("(")) {
      step();
      if (Status done = expression(); !done) return done;
      return take_symbol(")");
    }
    if (is_word("hasPrefix")) return prefix();
    if (is_word("attributes")) return comparison();
    return unexpected("attributes, hasPrefix, NOT or '('");
  }

  Status prefix() {
    const std::uint32_t index = add(Kind::prefix);
    step();
    if (Status done = take_symbol("("); !done) return done;
    if (!is_word("attributes")) return unexpected("attributes");
    step();
    if (Status done = take_symbol("."); !done) return done;
    Result<std::string> key = take_key();
    if (!key) return key.error();
    if (Status done = take_symbol(","); !done) return done;
    Result<std::string> value = take_text("a prefix in quotes");
    if (!value) return value.error();
    if (Status done = take_symbol(")"); !done) return done;
    filter_.nodes_[index].key = *std::move(key);
    filter_.nodes_[index].value = *std::move(value);
    close(index);
    return {};
  }

  Status comparison() {
    const std::uint32_t index = add(Kind::exists);
    step();
    const bool is_existence = is_symbol(":");
    if (!is_existence && !is_symbol(".")) return unexpected("':' or '.'");
    step();
    Result<std::string> key = take_key();
    if (!key) return key.error();
    filter_.nodes_[index].key = *std::move(key);
    if (!is_existence) {
      if (!is_symbol("=") && !is_symbol("!=")) return unexpected("'=' or '!='");
      filter_.nodes_[index].kind = is_symbol("=") ? Kind::equal : Kind::not_equal;
      step();
      Result<std::string> value = take_text("a value in quotes");
      if (!value) return value.error();
      filter_.nodes_[index].value = *std::move(value);
    }
    close(index);
    return {};
  }

  Lexer lexer_;
  Token token_;
  Filter filter_;
  std::size_t depth_ = 0;
};

Result<Filter> Filter::parse(std::string_view text) {
  if (text.size() > kBytesMax) {
    return invalid("Invalid filter: it has " + std::to_string(text.size()) +
                   " bytes, the maximum is " + std::to_string(kBytesMax));
  }
  if (!is_utf8(text)) return invalid("Invalid filter: it is not valid UTF-8");
  return FilterParser(text).parse();
}

bool Filter::is_true(std::uint32_t index, std::string_view body) const {
  const Node& node = nodes_[index];
  switch (node.kind) {
    case Node::Kind::negation:
      return !is_true(index + 1, body);
    case Node::Kind::all:
    case Node::Kind::any: {
      const bool decides = node.kind == Node::Kind::any;  // The first of these settles it.
      for (std::uint32_t part = index + 1; part < node.end; part = nodes_[part].end) {
        if (is_true(part, body) == decides) return decides;
      }
      return !decides;
    }
    case Node::Kind::exists:
    case Node::Kind::equal:
    case Node::Kind::not_equal:
    case Node::Kind::prefix:
      break;
  }
  const std::optional<std::string_view> value = find_attribute(body, node.key);
  if (!value) return node.kind == Node::Kind::not_equal;
  if (node.kind == Node::Kind::equal) return *value == node.value;
  if (node.kind == Node::Kind::not_equal) return *value != node.value;
  return node.kind == Node::Kind::exists || value->starts_with(node.value);
}

}  // namespace ordo::broker

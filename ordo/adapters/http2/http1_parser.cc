#include "ordo/adapters/http2/http1_parser.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace ordo::http2 {
namespace {

constexpr std::size_t kChunkLineBytesMax = 256;
constexpr std::size_t kChunkDigitsMax = 8;
constexpr std::size_t kLengthDigitsMax = 15;

bool is_token_character(char character) {
  const bool is_letter = (character >= 'a' && character <= 'z') ||
                         (character >= 'A' && character <= 'Z') ||
                         (character >= '0' && character <= '9');
  return is_letter || std::string_view("!#$%&'*+-.^_`|~").find(character) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_character);
}

// What may stand in a value: no control characters but tabs.
bool is_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char character) {
    const auto byte = static_cast<unsigned char>(character);
    return byte == '\t' || (byte >= 0x20 && byte != 0x7F);
  });
}

bool is_target(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char character) {
    return character > 0x20 && character < 0x7F;
  });
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& character : lower) {
    if (character >= 'A' && character <= 'Z') character = static_cast<char>(character + 32);
  }
  return lower;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

// Whether `word` (in lower case) is one of a list with commas.
bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (lower_case(trimmed(list.substr(0, comma))) == word) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

bool parse_number(std::string_view text, int base, std::uint64_t& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
}

}  // namespace

Http1Parser::Http1Parser(const Limits& limits, std::size_t& connection_bytes, InputBudget& budget)
    : limits_(limits),
      body_(limits, connection_bytes, budget) {}

Http1Parser::State Http1Parser::feed(std::string_view& bytes) {
  if (state_ == State::head) feed_head(bytes);
  if (state_ == State::body) is_chunked_ ? feed_chunks(bytes) : feed_body(bytes);
  return state_;
}

void Http1Parser::reset() {
  state_ = State::head;
  raw_.clear();
  head_ = {};
  authority_.clear();
  body_.clear();
  body_left_ = 0;
  chunk_state_ = ChunkState::size;
  trailer_bytes_ = 0;
  host_count_ = 0;
  has_length_ = is_chunked_ = is_old_ = wants_continue_ = false;
  is_keep_alive_ = true;
}

bool Http1Parser::fail(unsigned status, std::string_view words) {
  state_ = State::failed;
  body_.clear();
  error_status_ = status;
  error_words_ = words;
  return false;
}

// One line into raw_, without its end. False: it is not complete, or failed.
bool Http1Parser::take_line(std::string_view& bytes, std::size_t size_max) {
  const std::size_t newline = bytes.find('\n');
  const bool is_whole = newline != std::string_view::npos;
  const std::string_view piece = bytes.substr(0, is_whole ? newline + 1 : bytes.size());
  if (raw_.size() + piece.size() > size_max) return fail(400, "a line is too long\n");
  raw_.append(piece);
  bytes.remove_prefix(piece.size());
  if (!is_whole) return false;
  if (!raw_.ends_with("\r\n")) return fail(400, "a line does not end in CRLF\n");
  raw_.resize(raw_.size() - 2);
  return true;
}

void Http1Parser::feed_head(std::string_view& bytes) {
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    const bool is_whole = newline != std::string_view::npos;
    const std::string_view piece = bytes.substr(0, is_whole ? newline + 1 : bytes.size());
    if (raw_.size() + piece.size() > limits_.header_bytes_max) {
      fail(431, "the request's headers are too long\n");
      return;
    }
    raw_.append(piece);
    bytes.remove_prefix(piece.size());
    if (!is_whole) return;
    if (!raw_.ends_with("\r\n")) {
      fail(400, "a line does not end in CRLF\n");
      return;
    }
    if (raw_.size() == 2) {
      raw_.clear();  // An empty line before a request is forgiven.
    } else if (raw_.ends_with("\r\n\r\n")) {
      parse_head();
      return;
    }
  }
}

void Http1Parser::parse_head() {
  std::string_view rest = raw_;
  bool is_first = true;
  while (rest.size() > 2) {
    const std::size_t end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    if (!(is_first ? parse_request_line(line) : parse_field(line))) return;
    is_first = false;
  }
  if (!check_fields()) return;
  raw_.clear();
  raw_.shrink_to_fit();
  const bool has_body = is_chunked_ || body_left_ > 0;
  state_ = has_body ? State::body : State::complete;
  if (!has_body) wants_continue_ = false;
}

bool Http1Parser::parse_request_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t second = line.find(' ', std::min(first, line.size() - 1) + 1);
  if (first == std::string_view::npos || second == std::string_view::npos)
    return fail(400, "not a request line\n");
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, second - first - 1);
  const std::string_view version = line.substr(second + 1);
  if (!is_token(method) || !is_target(target)) return fail(400, "not a request line\n");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return version.starts_with("HTTP/") ? fail(505, "the version is not HTTP/1.0 or HTTP/1.1\n")
                                        : fail(400, "not a request line\n");
  }
  is_old_ = version == "HTTP/1.0";
  is_keep_alive_ = !is_old_;
  head_.method = method;
  return parse_target(target);
}

// A path; the whole address, as proxies are sent it; or * for the server itself.
bool Http1Parser::parse_target(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (target.front() == '/' || target == "*") {
    head_.path = target;
    return true;
  }
  if (lower_case(target.substr(0, kScheme.size())) != kScheme)
    return fail(400, "not a request line\n");
  target.remove_prefix(kScheme.size());
  const std::size_t slash = std::min(target.find('/'), target.size());
  authority_ = lower_case(target.substr(0, slash));
  if (authority_.empty()) return fail(400, "not a request line\n");
  head_.path = slash == target.size() ? "/" : target.substr(slash);
  return true;
}

bool Http1Parser::parse_field(std::string_view line) {
  if (line.front() == ' ' || line.front() == '\t') return fail(400, "a folded header line\n");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon)))
    return fail(400, "not a header line\n");
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!is_value(value)) return fail(400, "a header has a control character\n");
  const std::string name = lower_case(line.substr(0, colon));
  head_.headers.add(name, value);
  return note_field(name, value);
}

bool Http1Parser::note_field(std::string_view name, std::string_view value) {
  if (name == "content-length") {
    if (std::exchange(has_length_, true)) return fail(400, "more than one Content-Length\n");
    const bool is_number = !value.empty() && value.size() <= kLengthDigitsMax &&
                           value.find_first_not_of("0123456789") == std::string_view::npos &&
                           parse_number(value, 10, body_left_);
    if (!is_number) return fail(400, "Content-Length is not a number\n");
  } else if (name == "transfer-encoding") {
    if (is_chunked_) return fail(400, "more than one Transfer-Encoding\n");
    if (lower_case(value) != "chunked") return fail(501, "Transfer-Encoding is not chunked\n");
    is_chunked_ = true;
  } else if (name == "host") {
    ++host_count_;
  } else if (name == "connection") {
    if (has_word(value, "close")) is_keep_alive_ = false;
    if (is_old_ && has_word(value, "keep-alive")) is_keep_alive_ = true;
  } else if (name == "expect") {
    if (lower_case(value) != "100-continue") return fail(417, "Expect is not 100-continue\n");
    wants_continue_ = !is_old_;
  }
  return true;
}

bool Http1Parser::check_fields() {
  if (is_chunked_ && has_length_) return fail(400, "both Content-Length and Transfer-Encoding\n");
  if (is_chunked_ && is_old_) return fail(400, "Transfer-Encoding in HTTP/1.0\n");
  if (host_count_ > 1 || (host_count_ == 0 && !is_old_))
    return fail(400, "a request has one Host\n");
  const std::string_view host = head_.headers.find("host").value_or("");
  if (!authority_.empty() && host_count_ > 0 && lower_case(host) != authority_)
    return fail(400, "the address and Host differ\n");
  if (body_left_ > limits_.message_bytes_max) return fail(413, "the request's body is too long\n");
  return true;
}

void Http1Parser::feed_body(std::string_view& bytes) {
  const std::string_view piece =
      bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, bytes.size())));
  keep(piece);
  if (state_ == State::failed) return;
  bytes.remove_prefix(piece.size());
  body_left_ -= piece.size();
  if (body_left_ == 0) state_ = State::complete;
}

void Http1Parser::keep(std::string_view bytes) {
  if (!bytes.empty()) wants_continue_ = false;
  if (body_.size() + bytes.size() > limits_.message_bytes_max) {
    fail(413, "the request's body is too long\n");
  } else if (body_.append(bytes, body_.size() + static_cast<std::size_t>(body_left_)) != nullptr) {
    fail(503, "too many bytes of incomplete requests\n");
  }
}

void Http1Parser::feed_chunks(std::string_view& bytes) {
  while (!bytes.empty() && state_ == State::body) {
    switch (chunk_state_) {
      case ChunkState::size:
        if (take_line(bytes, kChunkLineBytesMax)) parse_chunk_size();
        break;
      case ChunkState::data:
        take_chunk_data(bytes);
        break;
      case ChunkState::data_end:
        if (!take_line(bytes, 2)) break;
        if (!raw_.empty()) fail(400, "a chunk is longer than it says\n");
        chunk_state_ = ChunkState::size;
        break;
      case ChunkState::trailers:
        if (!take_line(bytes, limits_.header_bytes_max)) break;
        trailer_bytes_ += raw_.size() + 2;
        if (raw_.empty()) {
          state_ = State::complete;
        } else if (trailer_bytes_ > limits_.header_bytes_max) {
          fail(431, "the request's trailers are too long\n");
        } else if (raw_.find(':') == std::string::npos || raw_.front() == ' ' ||
                   raw_.front() == '\t' || !is_value(raw_)) {
          fail(400, "not a trailer line\n");
        }
        raw_.clear();
        break;
    }
  }
}

void Http1Parser::take_chunk_data(std::string_view& bytes) {
  const std::string_view piece =
      bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(body_left_, bytes.size())));
  keep(piece);
  bytes.remove_prefix(piece.size());
  body_left_ -= piece.size();
  if (body_left_ == 0) chunk_state_ = ChunkState::data_end;
}

void Http1Parser::parse_chunk_size() {
  const std::string_view line = raw_;
  const std::string_view digits = line.substr(0, line.find(';'));
  const bool is_number =
      !digits.empty() && digits.size() <= kChunkDigitsMax &&
      digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos &&
      parse_number(digits, 16, body_left_);
  if (!is_number || !is_value(line)) {
    fail(400, "not a chunk size\n");
    return;
  }
  wants_continue_ = false;
  raw_.clear();
  if (body_left_ > limits_.message_bytes_max) {
    fail(413, "the request's body is too long\n");
    return;
  }
  chunk_state_ = body_left_ == 0 ? ChunkState::trailers : ChunkState::data;
}

}  // namespace ordo::http2

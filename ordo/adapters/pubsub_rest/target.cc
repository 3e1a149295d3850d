#include "ordo/adapters/pubsub_rest/target.h"

#include <charconv>
#include <optional>

#include "ordo/core/utf8.h"

namespace ordo::pubsub_rest {
namespace {

enum class Part { path, query };

// The character that `%XX` stands for, at the front of `text`.
std::optional<char> unescaped(std::string_view text) {
  if (text.size() < 3) return std::nullopt;
  unsigned value = 0;
  const char* const end = text.data() + 3;
  const auto [stop, error] = std::from_chars(text.data() + 1, end, value, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return static_cast<char>(value);
}

Result<std::string> decoded(std::string_view text, Part part) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && part == Part::query) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const std::optional<char> character = unescaped(text.substr(i));
      if (!character)
        return Error{ErrorCode::invalid_argument, "The URL has a % that no two digits follow."};
      if (*character == '/' && part == Part::path) {
        out += text.substr(i, 3);
      } else {
        out += *character;
      }
      i += 2;
    }
  }
  if (!is_utf8(out)) return Error{ErrorCode::invalid_argument, "The URL is not valid UTF-8."};
  return out;
}

// The text up to `mark`, which is taken away with it; all of it when there is none.
std::string_view take_until(std::string_view& text, char mark) {
  const std::size_t end = text.find(mark);
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return taken;
}

Status parse_path(std::string_view path, Target& target) {
  if (path.starts_with('/')) path.remove_prefix(1);
  std::string_view action;
  const std::size_t last = path.rfind('/') + 1;  // 0 when there is none.
  const std::size_t colon = path.rfind(':');
  if (colon != std::string_view::npos && colon >= last) {
    action = path.substr(colon + 1);
    path = path.substr(0, colon);
  }
  bool is_more = true;
  while (is_more) {
    is_more = path.find('/') != std::string_view::npos;
    Result<std::string> segment = decoded(take_until(path, '/'), Part::path);
    if (!segment) return std::move(segment).error();
    target.segments.push_back(std::move(*segment));
  }
  Result<std::string> name = decoded(action, Part::path);
  if (!name) return std::move(name).error();
  target.action = std::move(*name);
  return {};
}

Status parse_query(std::string_view query, Target& target) {
  while (!query.empty()) {
    std::string_view value = take_until(query, '&');
    if (value.empty()) continue;
    Result<std::string> name = decoded(take_until(value, '='), Part::query);
    if (!name) return std::move(name).error();
    Result<std::string> text = decoded(value, Part::query);
    if (!text) return std::move(text).error();
    target.query.emplace_back(std::move(*name), std::move(*text));
  }
  return {};
}

}  // namespace

Result<Target> Target::parse(std::string_view text) {
  Target target;
  const std::string_view path = take_until(text, '?');
  if (Status parsed = parse_path(path, target); !parsed) return std::move(parsed).error();
  if (Status parsed = parse_query(text, target); !parsed) return std::move(parsed).error();
  return target;
}

}  // namespace ordo::pubsub_rest

#include "ordo/app/message_format.h"

#include <algorithm>

#include "ordo/app/json_text.h"
#include "ordo/app/resource_text.h"
#include "ordo/core/log.h"
#include "ordo/core/utf8.h"

namespace ordo::app {
namespace {

using pubsub_client::IncomingMessage;

constexpr std::string_view kLetters = "kdita";
constexpr std::size_t kShownBytesMax = std::size_t{16} << 20;

std::string attributes_json(const pubsub_client::Attributes& attributes) {
  std::string object = "{";
  for (const auto& [name, value] : attributes)
    append_text_field(object, name, value);
  return object + "}";
}

std::string value_of(char letter, const IncomingMessage& message) {
  switch (letter) {
    case 'k':
      return message.key;
    case 'd':
      return message.data;
    case 'i':
      return message.id;
    case 't':
      return moment_text(message.published_at);
    default:
      return attributes_json(message.attributes);
  }
}

}  // namespace

void append_field(std::string& object, std::string_view name, std::string_view json_value) {
  if (object.size() > 1) object += ',';
  object.append("\"").append(name).append("\":").append(json_value);
}

std::string rough_time(std::chrono::nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  if (seconds < 120) return std::to_string(std::max<long>(seconds, 0)) + " s";
  if (seconds < 7'200) return std::to_string(seconds / 60) + " min";
  if (seconds < 172'800) return std::to_string(seconds / 3'600) + " h";
  return std::to_string(seconds / 86'400) + " d";
}

std::string one_line(std::string_view text, std::size_t bytes_max) {
  if (!is_utf8(text)) return std::to_string(text.size()).insert(0, 1, '(').append(" bytes)");
  if (text.size() <= bytes_max) return printable(text, kShownBytesMax);
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;  // Not inside of a character.
  return printable(text.substr(0, end), kShownBytesMax) + "...";
}

Result<MessageFormat> MessageFormat::parse(std::string_view option, std::string_view text) {
  MessageFormat format;
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool has_next = at + 1 < text.size();
    if (text[at] == '\\' && has_next && (text[at + 1] == 'n' || text[at + 1] == 't')) {
      plain += text[++at] == 'n' ? '\n' : '\t';
    } else if (text[at] != '%') {
      plain += text[at];
    } else if (has_next && text[at + 1] == '%') {
      plain += text[++at];
    } else if (has_next && kLetters.find(text[at + 1]) != std::string_view::npos) {
      if (!plain.empty()) format.parts_.push_back({0, plain});
      plain.clear();
      format.parts_.push_back({text[++at], {}});
    } else {
      return Error{ErrorCode::invalid_argument,
                   std::string(option) + ": '" + std::string(text.substr(at, 2)) +
                       "' is not known; there are %k key, %d data, %i id, %t time, %a attributes, "
                       "and %%"};
    }
  }
  if (!plain.empty()) format.parts_.push_back({0, plain});
  return format;
}

std::string MessageFormat::text(const IncomingMessage& message, bool is_escaped) const {
  std::string line;
  for (const Part& part : parts_) {
    if (part.letter == 0) {
      line += part.text;
    } else if (is_escaped) {
      line += printable(value_of(part.letter, message), kShownBytesMax);
    } else {
      line += value_of(part.letter, message);
    }
  }
  return line + "\n";
}

}  // namespace ordo::app

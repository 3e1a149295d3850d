#include "ordo/app/line_key.h"

#include <array>

#include "ordo/core/check.h"

namespace ordo::app {
namespace {

constexpr std::string_view kBlanks = " \t";

std::optional<std::string_view> blank_field(std::string_view line, std::size_t number) {
  std::size_t begin = line.find_first_not_of(kBlanks);
  while (begin != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    if (--number == 0) return line.substr(begin, end - begin);
    begin = line.find_first_not_of(kBlanks, end);
  }
  return std::nullopt;
}

std::optional<std::string_view> separated_field(std::string_view line, std::size_t number,
                                                char separator) {
  while (true) {
    const std::size_t end = line.find(separator);
    if (--number == 0) return line.substr(0, end);
    if (end == std::string_view::npos) return std::nullopt;
    line.remove_prefix(end + 1);
  }
}

}  // namespace

LineKey LineKey::field(std::size_t number, char separator) {
  ORDO_CHECK(number >= 1);
  LineKey key;
  key.number_ = number;
  key.separator_ = separator;
  return key;
}

Result<LineKey> LineKey::regex(const std::string& pattern) {
  auto compiled = std::make_unique<regex_t>();
  if (const int error = ::regcomp(compiled.get(), pattern.c_str(), REG_EXTENDED); error != 0) {
    std::array<char, 256> reason{};
    ::regerror(error, compiled.get(), reason.data(), reason.size());
    return Error{ErrorCode::invalid_argument,
                 "'" + pattern + "' is not a POSIX extended regular expression: " + reason.data()};
  }
  LineKey key;
  key.pattern_.reset(compiled.release());
  return key;
}

std::optional<std::string_view> LineKey::of(std::string_view line) const {
  if (!pattern_) {
    return separator_ == 0 ? blank_field(line, number_)
                           : separated_field(line, number_, separator_);
  }
  std::array<regmatch_t, 2> match{};
  match[0].rm_so = 0;
  match[0].rm_eo = static_cast<regoff_t>(line.size());
  if (::regexec(pattern_.get(), line.data(), match.size(), match.data(), REG_STARTEND) != 0) {
    return std::nullopt;
  }
  const regmatch_t& part = pattern_->re_nsub > 0 ? match[1] : match[0];
  if (part.rm_so < 0) return std::nullopt;
  return line.substr(static_cast<std::size_t>(part.rm_so),
                     static_cast<std::size_t>(part.rm_eo - part.rm_so));
}

}  // namespace ordo::app

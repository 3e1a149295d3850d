#include "ordo/core/units.h"

#include <array>
#include <limits>
#include <optional>

#include "ordo/core/check.h"
#include "ordo/core/log.h"

namespace ordo {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t scale;
};

constexpr std::array<Unit, 7> kDurationUnits = {{{"d", 86'400'000'000'000},
                                                 {"h", 3'600'000'000'000},
                                                 {"m", 60'000'000'000},
                                                 {"s", 1'000'000'000},
                                                 {"ms", 1'000'000},
                                                 {"us", 1'000},
                                                 {"ns", 1}}};

// Larger units first, and of two the binary one: the order in which format_size() tries them.
constexpr std::array<Unit, 12> kSizeUnits = {{{"EiB", std::uint64_t{1} << 60},
                                              {"E", 1'000'000'000'000'000'000},
                                              {"PiB", std::uint64_t{1} << 50},
                                              {"P", 1'000'000'000'000'000},
                                              {"TiB", std::uint64_t{1} << 40},
                                              {"T", 1'000'000'000'000},
                                              {"GiB", std::uint64_t{1} << 30},
                                              {"G", 1'000'000'000},
                                              {"MiB", std::uint64_t{1} << 20},
                                              {"M", 1'000'000},
                                              {"KiB", std::uint64_t{1} << 10},
                                              {"k", 1'000}}};

constexpr std::size_t kGivenBytesMax = 40;  // Of the given text, in a message.

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool equal_in_any_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

// What is wrong with a text, in words that complete "..., but ...".
struct Fault {
  const char* reason = nullptr;
};

struct Term {
  std::string_view digits;    // Before the point; perhaps none.
  std::string_view fraction;  // After it; perhaps none.
  std::string_view unit;
};

template <class Accept>
std::string_view cut_front(std::string_view& text, Accept accept) {
  std::size_t length = 0;
  while (length < text.size() && accept(text[length]))
    ++length;
  const std::string_view front = text.substr(0, length);
  text.remove_prefix(length);
  return front;
}

// Takes one number and its unit from the front of `text`.
std::optional<Term> cut_term(std::string_view& text, Fault& fault) {
  Term term;
  term.digits = cut_front(text, is_digit);
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    term.fraction = cut_front(text, is_digit);
  }
  if (term.digits.empty() && term.fraction.empty()) {
    fault.reason = "a number was expected";
    return std::nullopt;
  }
  term.unit = cut_front(text, is_letter);
  return term;
}

// `term` in units of one, exactly; nothing when it is too large or not whole.
std::optional<std::uint64_t> scaled(const Term& term, std::uint64_t scale, Fault& fault) {
  __extension__ using Wide = unsigned __int128;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  Wide whole = 0;
  for (const char digit : term.digits) {
    whole = whole * 10 + static_cast<unsigned>(digit - '0');
    if (whole * scale > kMost) {
      fault.reason = "it is too large";
      return std::nullopt;
    }
  }
  Wide result = whole * scale;
  Wide numerator = 0;
  Wide denominator = 1;
  std::string_view fraction = term.fraction;
  while (!fraction.empty() && fraction.back() == '0')
    fraction.remove_suffix(1);
  constexpr std::size_t kFractionDigitsMax = 18;
  if (fraction.size() > kFractionDigitsMax) {
    fault.reason = "the fraction is too fine";
    return std::nullopt;
  }
  for (const char digit : fraction) {
    numerator = numerator * 10 + static_cast<unsigned>(digit - '0');
    denominator *= 10;
  }
  if (numerator * scale % denominator != 0) {
    fault.reason = "the fraction is too fine";
    return std::nullopt;
  }
  result += numerator * scale / denominator;
  if (result > kMost) {
    fault.reason = "it is too large";
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(result);
}

Error invalid(const char* what, std::string_view text, const Fault& fault, const char* allowed) {
  return Error{ErrorCode::invalid_argument, std::string("not a ") + what + ": \"" +
                                                printable(text, kGivenBytesMax) + "\" (" +
                                                fault.reason + "); allowed is " + allowed};
}

std::optional<std::size_t> duration_unit(std::string_view name) {
  for (std::size_t i = 0; i < kDurationUnits.size(); ++i) {
    if (kDurationUnits[i].name == name) return i;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> size_scale(std::string_view name) {
  if (name.empty() || equal_in_any_case(name, "b")) return 1;
  for (const Unit& unit : kSizeUnits) {
    const bool is_binary = unit.name.size() == 3;
    const std::string_view bare = is_binary ? unit.name.substr(0, 2) : unit.name;
    const std::string with_b = std::string(bare) + 'B';
    if (equal_in_any_case(name, bare) || equal_in_any_case(name, with_b)) return unit.scale;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> read_duration(std::string_view text, Fault& fault) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count());
  if (text == "0") return 0;
  std::uint64_t sum = 0;
  std::size_t units_used = 0;  // Those before this one, and none of them again.
  do {
    const std::optional<Term> term = cut_term(text, fault);
    if (!term) return std::nullopt;
    const std::optional<std::size_t> unit = duration_unit(term->unit);
    if (!unit) {
      fault.reason = term->unit.empty() ? "the unit is missing" : "the unit is unknown";
      return std::nullopt;
    }
    if (*unit < units_used) {
      fault.reason = "larger units come first, each once";
      return std::nullopt;
    }
    units_used = *unit + 1;
    const std::optional<std::uint64_t> value = scaled(*term, kDurationUnits[*unit].scale, fault);
    if (!value) return std::nullopt;
    if (*value > kMost - sum) {
      fault.reason = "it is too large";
      return std::nullopt;
    }
    sum += *value;
  } while (!text.empty());
  return sum;
}

std::optional<std::uint64_t> read_size(std::string_view text, Fault& fault) {
  const std::optional<Term> term = cut_term(text, fault);
  if (!term) return std::nullopt;
  const std::optional<std::uint64_t> scale = size_scale(term->unit);
  if (!scale || !text.empty()) {
    fault.reason = "the unit is unknown";
    return std::nullopt;
  }
  return scaled(*term, *scale, fault);
}

}  // namespace

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  Fault fault;
  const std::optional<std::uint64_t> value = read_duration(text, fault);
  if (value) return std::chrono::nanoseconds(static_cast<std::int64_t>(*value));
  return invalid("duration", text, fault,
                 "a number with a unit of ns, us, ms, s, m, h, d, such as 250ms, 1.5h, 1h30m or 0");
}

Result<std::uint64_t> parse_size(std::string_view text) {
  Fault fault;
  const std::optional<std::uint64_t> value = read_size(text, fault);
  if (value) return *value;
  return invalid("size", text, fault,
                 "a number with no unit, k, M, G, T, P, E (powers of 1000) or KiB, MiB, GiB, TiB, "
                 "PiB, EiB (powers of 1024), such as 512, 10k or 64MiB");
}

std::string format_duration(std::chrono::nanoseconds duration) {
  ORDO_CHECK(duration >= std::chrono::nanoseconds::zero());
  auto left = static_cast<std::uint64_t>(duration.count());
  if (left == 0) return "0s";
  std::string out;
  for (const Unit& unit : kDurationUnits) {
    if (left < unit.scale) continue;
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): no scale in the table is 0.
    out += std::to_string(left / unit.scale);
    left %= unit.scale;
    if (unit.scale <= 1'000'000'000 && left > 0) {  // Seconds and below: a fraction, not a term.
      std::string digits = std::to_string(unit.scale + left).substr(1);
      digits.erase(digits.find_last_not_of('0') + 1);
      out += '.' + digits;
      left = 0;
    }
    out += unit.name;
  }
  return out;
}

std::string format_size(std::uint64_t size) {
  for (const Unit& unit : kSizeUnits) {
    if (size != 0 && size % unit.scale == 0) {
      return std::to_string(size / unit.scale) + std::string(unit.name);
    }
  }
  return std::to_string(size);
}

}  // namespace ordo

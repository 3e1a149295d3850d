#include "ordo/app/resource_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <unistd.h>
#include <utility>

#include "ordo/app/option_values.h"
#include "ordo/app/write_all.h"
#include "ordo/core/units.h"

namespace ordo::app {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

const char* yes_or_no(bool is_so) {
  return is_so ? "yes" : "no";
}

// The part after the seconds: a fraction, and Z or an offset.
std::optional<nanoseconds> rest_of_moment(std::string_view rest) {
  nanoseconds span{0};
  if (rest.starts_with('.')) {
    std::int64_t unit = 100'000'000;
    std::size_t digits = 1;
    for (; digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9'; ++digits) {
      span += nanoseconds((rest[digits] - '0') * unit);
      unit /= 10;
    }
    if (digits == 1) return std::nullopt;
    rest.remove_prefix(digits);
  }
  if (rest == "Z" || rest == "z") return span;
  int hours = 0;
  int minutes = 0;
  int length = 0;
  const std::string text(rest);
  if (std::sscanf(text.c_str(), "%*1[+-]%2d:%2d%n", &hours, &minutes, &length) != 2 ||
      static_cast<std::size_t>(length) != text.size()) {
    return std::nullopt;
  }
  const nanoseconds offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return text[0] == '+' ? span - offset : span + offset;
}

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  std::tm parts{};
  const std::string copy(text);
  const char* rest = ::strptime(copy.c_str(), "%Y-%m-%d", &parts);
  if (rest == nullptr || (*rest != 'T' && *rest != 't' && *rest != ' ')) return std::nullopt;
  rest = ::strptime(rest + 1, "%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  const std::optional<nanoseconds> more = rest_of_moment(rest);
  const std::time_t whole = ::timegm(&parts);
  if (!more || whole < 0) return std::nullopt;
  // The year 9999 is a way to say "after everything"; nanoseconds end in 2262.
  constexpr seconds kEnd{9'200'000'000};
  if (seconds(whole) >= kEnd) return WallTime(kEnd);
  return WallTime(seconds(whole) + *more);
}

}  // namespace

Result<Labels> parse_labels(std::string_view option, const std::vector<std::string>& words) {
  Labels labels;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{ErrorCode::invalid_argument,
                   std::string(option) + ": '" + word + "' is not NAME=VALUE"};
    }
    labels[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return labels;
}

std::string labels_text(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels)
    text.append(text.empty() ? "" : ",").append(name).append("=").append(value);
  return text;
}

Result<nanoseconds> parse_seconds(std::string_view option, std::string_view text) {
  const bool is_bare =
      !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  return parse_time(option, is_bare ? std::string(text) + "s" : std::string(text), false);
}

std::string span_text(const std::optional<nanoseconds>& span, const char* otherwise) {
  return span ? format_duration(*span) : otherwise;
}

Result<WallTime> parse_moment(std::string_view option, std::string_view text, WallTime now) {
  if (text == "now") return now;
  if (text.starts_with('-') || text.starts_with('+')) {
    const Result<nanoseconds> span = parse_time(option, text.substr(1), false);
    if (!span) return span.error();
    return text[0] == '-' ? now - *span : now + *span;
  }
  if (const std::optional<WallTime> time = parse_rfc3339(text)) return *time;
  return Error{ErrorCode::invalid_argument,
               std::string(option) + ": '" + std::string(text) +
                   "' is no time; write 2026-01-31T12:00:00Z, now, or -10m for ten minutes ago"};
}

std::string moment_text(WallTime time) {
  const auto whole = std::chrono::floor<seconds>(time);
  const std::time_t second = whole.time_since_epoch().count();
  std::tm parts{};
  ::gmtime_r(&second, &parts);
  std::array<char, 40> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(time - whole).count();
  std::snprintf(text.data() + size, text.size() - size, ".%03dZ", static_cast<int>(millis));
  return text.data();
}

Table described(const pubsub_client::Topic& topic, const std::vector<std::string>& subscriptions) {
  Table table({});
  table.add({"name", topic.name});
  table.add({"labels", labels_text(topic.labels)});
  table.add({"retention", span_text(topic.retention, "until acknowledged")});
  for (const std::string& subscription : subscriptions)
    table.add({"subscription", subscription});
  return table;
}

Table described(const pubsub_client::Subscription& subscription) {
  Table table({});
  table.add({"name", subscription.name});
  table.add({"topic", subscription.topic});
  table.add({"labels", labels_text(subscription.labels)});
  table.add({"ordered", yes_or_no(subscription.is_ordered)});
  table.add({"exactly once", yes_or_no(subscription.is_exactly_once)});
  table.add({"ack deadline", format_duration(subscription.ack_deadline)});
  table.add({"filter", subscription.filter});
  table.add({"retention", span_text(subscription.retention, "")});
  table.add({"retain acked", yes_or_no(subscription.retains_acked)});
  const bool never = subscription.expiration == nanoseconds{0};
  table.add({"expires after", never ? "never" : span_text(subscription.expiration, "")});
  if (subscription.retry) {
    table.add({"retry delay", format_duration(subscription.retry->minimum) + " to " +
                                  format_duration(subscription.retry->maximum)});
  } else {
    table.add({"retry delay", "none: at once"});
  }
  if (subscription.dead_letters) {
    table.add({"dead letters", subscription.dead_letters->topic + " after " +
                                   std::to_string(subscription.dead_letters->attempts_max) +
                                   " attempts"});
  } else {
    table.add({"dead letters", ""});
  }
  table.add({"push endpoint", subscription.push_endpoint});
  if (subscription.is_detached) table.add({"detached", "yes"});
  return table;
}

Table described(const pubsub_client::Snapshot& snapshot) {
  Table table({});
  table.add({"name", snapshot.name});
  table.add({"topic", snapshot.topic});
  table.add({"labels", labels_text(snapshot.labels)});
  table.add({"expires", moment_text(snapshot.expires_at)});
  return table;
}

Status print_text(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0) return {};
  return Error{ErrorCode::data_loss,
               std::string("cannot write to standard output: ") + ::strerrordesc_np(error)};
}

Status print_table(const Table& table) {
  return print_text(table.text(is_colourful(STDOUT_FILENO)));
}

}  // namespace ordo::app

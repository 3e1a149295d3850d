// SettingReader: turns the texts of settings into values. The first error wins, and names the place
// its text came from.
//
//   SettingReader reader(settings);
//   reader.count("budget", {1, 1'048'576}, options.budget);
//   reader.time("drain", options.drain);
//   if (reader.error()) return *reader.error();
//
// Threads: one owner.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ordo/app/host_port.h"
#include "ordo/app/option_values.h"
#include "ordo/app/settings.h"
#include "ordo/core/result.h"

namespace ordo::app {

class SettingReader {
 public:
  // REQUIRES: `settings` outlives this, and has all the names that are asked for.
  explicit SettingReader(const Settings& settings) : settings_(settings) {}

  void count(std::string_view name, CountRange range, std::size_t& to);
  void truth(std::string_view name, bool& to);
  void time(std::string_view name, std::chrono::nanoseconds& to);
  // Zero is a time, too.
  void time_or_zero(std::string_view name, std::chrono::nanoseconds& to);
  void bytes(std::string_view name, std::size_t& to);
  void address(std::string_view name, HostPort& to);
  // The place of the text among `choices`.
  std::size_t choice(std::string_view name, const std::vector<std::string>& choices);

  // The text of the setting is wrong: "--listen: '0.0.0.0:1' " and `why`.
  void refuse(std::string_view name, const std::string& why);

  const std::optional<Error>& error() const { return error_; }

 private:
  template <class T, class To>
  void take(Result<T> value, To& to) {
    if (value) {
      to = static_cast<To>(std::move(*value));
    } else {
      fail(value.error());
    }
  }
  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }

  const Settings& settings_;
  std::optional<Error> error_;
};

}  // namespace ordo::app

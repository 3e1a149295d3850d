#include "bench/wire/plan.h"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <unistd.h>

namespace ordo::bench {
namespace {

template <class Number>
void read_number(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) give_up("not a number: " + text);
}

class Words {
 public:
  explicit Words(const std::vector<std::string>& arguments) {
    for (const std::string& argument : arguments) {
      const std::size_t equals = argument.find('=');
      if (equals == std::string::npos) give_up("not name=value: " + argument);
      values_[argument.substr(0, equals)] = argument.substr(equals + 1);
    }
  }

  void take(const char* name, std::string& value) {
    if (const auto found = values_.extract(name)) value = found.mapped();
  }
  template <class Number>
  void take(const char* name, Number& value) {
    if (const auto found = values_.extract(name)) read_number(found.mapped(), value);
  }
  void check_empty() const {
    if (!values_.empty()) give_up("unknown argument: " + values_.begin()->first);
  }

 private:
  std::map<std::string, std::string> values_{};
};

}  // namespace

WirePlan WirePlan::parse(const std::vector<std::string>& arguments) {
  if (arguments.empty()) give_up("usage: MODE name=value...; see bench/wire/plan.h");
  WirePlan plan;
  plan.mode = arguments.front();
  Words words({arguments.begin() + 1, arguments.end()});
  words.take("port", plan.port);
  words.take("server", plan.server);
  words.take("variant", plan.variant);
  words.take("folder", plan.folder);
  words.take("size", plan.size);
  words.take("batch", plan.batch);
  words.take("window", plan.window);
  words.take("lag_max", plan.lag_max);
  words.take("keys", plan.keys);
  words.take("lanes", plan.lanes);
  words.take("handler_ns", plan.handler_ns);
  words.take("seconds", plan.seconds);
  words.take("rate", plan.rate);
  words.take("count", plan.count);
  words.check_empty();
  if (plan.size < Stamp::kBytes) give_up("size is below " + std::to_string(Stamp::kBytes));
  if (plan.batch == 0 || plan.window == 0) give_up("batch and window must be positive");
  if (plan.keys > 0 && plan.window > plan.keys) give_up("more requests under way than keys");
  return plan;
}

void Stamp::write(std::string& body) const {
  std::memcpy(body.data(), this, kBytes);
}

Stamp Stamp::read(std::string_view body) {
  static_assert(sizeof(Stamp) == kBytes);
  if (body.size() < kBytes) give_up("a message of " + std::to_string(body.size()) + " bytes came");
  Stamp stamp;
  std::memcpy(&stamp, body.data(), kBytes);
  return stamp;
}

void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::fflush(stderr);
  // Libraries' threads are still at work: nothing is torn down under them.
  _exit(1);
}

}  // namespace ordo::bench

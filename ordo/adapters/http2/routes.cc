#include "ordo/adapters/http2/routes.h"

#include <algorithm>
#include <exception>

#include "ordo/core/log.h"

namespace ordo::http2 {

std::string reason_of_exception() {
  try {
    throw;  // tidy: allow(throw) to find out what it is
  } catch (const std::exception& error) {
    return printable(error.what());
  } catch (...) {
    return "something was thrown that is no std::exception";
  }
}

void Routes::plain(std::string prefix, Plain handler) {
  const auto place = std::find_if(plain_.begin(), plain_.end(), [&](const auto& entry) {
    return entry.first.size() <= prefix.size();
  });
  plain_.emplace(place, std::move(prefix), std::move(handler));
}

Error Routes::refusal_of(std::string_view path) const {
  if (otherwise_) return *otherwise_;
  return Error{ErrorCode::unimplemented, "unknown method " + std::string(path)};
}

void Routes::serve(const ExchangePtr& exchange) const {
  const auto found = std::find_if(plain_.begin(), plain_.end(), [&](const auto& entry) {
    return exchange->path().starts_with(entry.first);
  });
  if (found == plain_.end()) {
    exchange->respond({.status = 404, .body = Slice::constant("not found\n")});
    return;
  }
  try {
    found->second(exchange);
  } catch (...) {
    exchange->respond({.status = 500, .body = Slice::of(reason_of_exception() + "\n")});
  }
}

}  // namespace ordo::http2

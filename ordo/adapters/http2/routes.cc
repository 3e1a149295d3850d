#include "ordo/adapters/http2/routes.h"

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

void Routes::serve(const ExchangePtr& exchange) const {
  if (!plain_) {
    exchange->respond({.status = 404, .body = Slice::constant("not found\n")});
    return;
  }
  try {
    plain_(exchange);
  } catch (...) {
    exchange->respond({.status = 500, .body = Slice::of(reason_of_exception() + "\n")});
  }
}

}  // namespace ordo::http2

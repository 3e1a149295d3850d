#include "ordo/adapters/http2/exchange.h"

namespace ordo::http2 {

void Exchange::respond(Response response) {
  Part part;
  part.status = response.status;
  part.headers = std::move(response.headers);
  if (!response.content_type.empty()) part.headers.add("content-type", response.content_type);
  if (!response.body.bytes.empty()) part.body.push_back({.slice = std::move(response.body)});
  part.is_end = true;
  post(std::move(part));
}

void Exchange::begin(unsigned status, HeaderList headers) {
  Part part;
  part.status = status;
  part.headers = std::move(headers);
  post(std::move(part));
}

bool Exchange::write(Slice bytes) {
  if (is_cancelled() || !wants_more()) return false;
  Part part;
  if (bytes.bytes.empty()) return true;
  part.body.push_back({.slice = std::move(bytes)});
  post(std::move(part));
  return true;
}

void Exchange::end() {
  Part part;
  part.is_end = true;
  post(std::move(part));
}

}  // namespace ordo::http2

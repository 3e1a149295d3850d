#include "ordo/adapters/http2/deframer.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "ordo/adapters/http2/gzip.h"

namespace ordo::http2 {
namespace {

std::size_t length_of(std::string_view prefix) {
  std::size_t length = 0;
  for (const char character : prefix.substr(1, 4))
    length = length << 8 | static_cast<unsigned char>(character);
  return length;
}

}  // namespace

Deframer::Deframer(const Limits& limits, std::size_t& connection_bytes, InputBudget& budget)
    : limits_(limits),
      kept_(limits, connection_bytes, budget) {}

std::optional<std::string_view> Deframer::next(std::string_view& bytes) {
  drop_message();
  if (error_) return std::nullopt;
  if (kept_.empty() && bytes.size() >= kPrefixBytes) {
    if (!check_prefix(bytes)) return std::nullopt;
    const std::size_t size = kPrefixBytes + length_of(bytes);
    if (bytes.size() >= size) {
      const std::string_view message = bytes.substr(kPrefixBytes, size - kPrefixBytes);
      const bool is_compressed = bytes.front() == 1;
      bytes.remove_prefix(size);
      return take(message, is_compressed);
    }
  }
  if (bytes.empty()) return std::nullopt;
  if (kept_.size() < kPrefixBytes) {
    const std::size_t count = std::min(kPrefixBytes - kept_.size(), bytes.size());
    if (!keep(bytes.substr(0, count))) return std::nullopt;
    bytes.remove_prefix(count);
    if (kept_.size() < kPrefixBytes || !check_prefix(kept_.text())) return std::nullopt;
  }
  const std::size_t size = kPrefixBytes + length_of(kept_.text());
  const std::size_t count = std::min(size - kept_.size(), bytes.size());
  if (!keep(bytes.substr(0, count))) return std::nullopt;
  bytes.remove_prefix(count);
  if (kept_.size() < size) return std::nullopt;
  is_kept_used_ = true;
  const std::string_view whole = kept_.text();
  return take(whole.substr(kPrefixBytes), whole.front() == 1);
}

void Deframer::drop_message() {
  if (std::exchange(is_kept_used_, false)) kept_.clear();
  // clear() would keep all of its memory.
  if (!inflated_.empty()) std::string().swap(inflated_);
}

std::optional<std::string_view> Deframer::take(std::string_view message, bool is_compressed) {
  if (!is_compressed) return message;
  Result<std::string> result = inflated(message, limits_.message_bytes_max);
  if (!result) {
    fail(result.error().code, result.error().message);
    return std::nullopt;
  }
  inflated_ = std::move(*result);
  return inflated_;
}

bool Deframer::check_prefix(std::string_view prefix) {
  const std::size_t length = length_of(prefix);
  const auto flag = static_cast<unsigned char>(prefix.front());
  if (flag > 1) {
    fail(ErrorCode::internal,
         "a message has the flag " + std::to_string(flag) + "; allowed is 0 or 1");
  } else if (flag == 1 && !is_gzip_allowed_) {
    fail(ErrorCode::internal, "a message is compressed, but grpc-encoding names no compression");
  } else if (length > limits_.message_bytes_max) {
    // Not RESOURCE_EXHAUSTED, as elsewhere: clients send that again, and it will not get smaller.
    fail(ErrorCode::invalid_argument, "Received message larger than max (" +
                                          std::to_string(length) + " vs. " +
                                          std::to_string(limits_.message_bytes_max) + ")");
  }
  return !error_;
}

bool Deframer::keep(std::string_view bytes) {
  const std::size_t expected =
      kept_.size() < kPrefixBytes ? kPrefixBytes : kPrefixBytes + length_of(kept_.text());
  const char* const reason = kept_.append(bytes, expected);
  if (reason != nullptr) fail(ErrorCode::resource_exhausted, reason);
  return reason == nullptr;
}

void Deframer::fail(ErrorCode code, std::string message) {
  kept_.clear();
  error_ = Error{code, std::move(message)};
}

}  // namespace ordo::http2

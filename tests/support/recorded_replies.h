// RecordedReplies: the ReplyPort of tests: keeps every reply, in the order in which they came.
//
//   RecordedReplies replies;
//   Gateway gateway(options, replies);
//   ...
//   ASSERT_TRUE(replies.await(3));
//   EXPECT_EQ(replies.words_of("r1"), "route:XNYS");
//
// Threads: any thread may call any function.
// Bounds:  one entry per reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ordo/gateway/ports.h"
#include "tests/support/waiting.h"

namespace ordo::testing_support {

class RecordedReplies final : public gateway::ReplyPort {
 public:
  void reply(gateway::Reply&& reply) noexcept override {
    const std::lock_guard guard(mutex_);
    replies_.push_back(std::move(reply));
  }
  void flush() noexcept override {
    const std::lock_guard guard(mutex_);
    flushed_ = replies_.size();
  }

  // Waits until `count` replies came and were flushed.
  bool await(std::size_t count) {
    return eventually([&] { return flushed_count() >= count; });
  }
  std::size_t flushed_count() const {
    const std::lock_guard guard(mutex_);
    return flushed_;
  }
  std::vector<gateway::Reply> all() const {
    const std::lock_guard guard(mutex_);
    return replies_;
  }
  // The ids of the requests of a correlation id, in the order of their replies.
  std::map<std::int64_t, std::vector<std::string>> ids_by_correlation() const {
    std::map<std::int64_t, std::vector<std::string>> ids;
    for (const gateway::Reply& reply : all())
      ids[reply.correlation_id].emplace_back(reply.id.view());
    return ids;
  }
  // What the first reply to a request said, with its refusal before it unless it is OK.
  std::string words_of(std::string_view request) const {
    for (const gateway::Reply& reply : all()) {
      if (reply.id.view() != request) continue;
      std::string words(reply.words.view());
      if (reply.refusal == gateway::Refusal::none) return words;
      return std::string(name_of(reply.refusal)).append(" ").append(words);
    }
    return "no reply";
  }

 private:
  mutable std::mutex mutex_;
  std::vector<gateway::Reply> replies_;
  std::size_t flushed_ = 0;
};

}  // namespace ordo::testing_support

// Plan: one run of bench_broker, as the driver hands it to a child process and as it stands in the
// results.
//
//   Plan plan{.group = "publish", .contender = "ordo", .size = 1'024, .batch = 100};
//   run_child({"/proc/self/exe", "--run", plan.text(), folder}, timeout);
//   std::optional<Plan> same = Plan::from_text(plan.text());
//
// Threads: a plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ordo/adapters/store_rocksdb/rocksdb_store.h"

namespace ordo::bench {

struct Plan {
  std::string group{};      // publish, latency, consume, flow, backlog, blocked.
  std::string contender{};  // ordo, raw; of blocked: with, without.
  std::string sync = "commit";
  std::size_t size = 100;       // Bytes of data in a message.
  std::size_t batch = 1;        // Messages of one publish.
  std::size_t outstanding = 1;  // Publishes under way; of flow and blocked: messages.
  std::size_t keys = 0;         // 0: messages without a key.
  std::uint64_t messages = 0;   // Stored first, or behind the blocked keys.
  std::uint64_t milliseconds = 0;

  // What tells it from other heats; the contender is not part of it.
  std::string heat() const;
  std::string title() const;
  std::string text() const;
  static std::optional<Plan> from_text(const std::string& text);

  store_rocksdb::SyncPolicy policy() const;
};

// Every run of one round, the contenders of a heat beside each other.
std::vector<Plan> all_plans(bool quick);

}  // namespace ordo::bench

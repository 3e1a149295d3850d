// GatewayHistory: what clients of a gateway saw, as JSON lines of kind `gateway` for
// tools/check_history.py.
//
//   GatewayHistory history({.partitions = 4});
//   history.request(connection, "r1", 42);       // before it is sent
//   history.reply(connection, reply);            // after it came
//   history.end();
//   history.write(folder + "/order.jsonl");
//
// Times are those of the monotonic clock, as are t0 and t1 of the replies.
//
// Threads: any thread may record; write() after all of them have ended.
// Bounds:  keeps every line until write().
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/adapters/order_tcp/reply_decoder.h"
#include "ordo/core/clock.h"

namespace ordo::testing_support {

struct GatewayHistoryMeta {
  std::size_t partitions = 4;
  bool strict_gaps = false;
  double spread_min = 0;  // Of uncorrelated tasks: each partition's part of an even share.
};

class GatewayHistory {
 public:
  explicit GatewayHistory(const GatewayHistoryMeta& meta) {
    lines_.push_back(R"({"e":"meta","kind":"gateway","partitions":)" +
                     std::to_string(meta.partitions) + R"(,"strict_reject":)" +
                     (meta.strict_gaps ? "true" : "false") + R"(,"spread_min":)" +
                     std::to_string(meta.spread_min) + "}");
  }

  void request(int connection, std::string_view id, std::int64_t correlation_id) {
    add("req", who(connection, id, correlation_id));
  }
  void reply(int connection, const order_tcp::ClientReply& reply) {
    std::string fields = who(connection, reply.request_id, reply.correlation_id);
    fields += R"(,"part":)" + std::to_string(reply.partition);
    if (reply.is_ok()) {
      fields += R"(,"status":"OK","s":)" + std::to_string(reply.began_ns) + R"(,"f":)" +
                std::to_string(reply.ended_ns);
    } else {
      fields +=
          reply.refusal == gateway::Refusal::error ? R"(,"status":"ERR")" : R"(,"status":"BUSY")";
    }
    add("rsp", fields);
  }
  void closed(int connection) { add("closed", R"("conn":)" + std::to_string(connection)); }
  void end() { add("end", R"("drained":true)"); }

  // Into the folder that ORDO_HISTORY_DIR names; without it, nothing is written. False: it
  // cannot be written.
  [[nodiscard]] bool write(const std::string& name) const {
    const char* const folder = std::getenv("ORDO_HISTORY_DIR");
    if (folder == nullptr) return true;
    std::filesystem::create_directories(folder);
    std::lock_guard guard(mutex_);
    std::ofstream file(std::filesystem::path(folder) / (name + ".jsonl"), std::ios::trunc);
    for (const std::string& line : lines_)
      file << line << '\n';
    file.flush();
    return file.good();
  }

 private:
  static std::string who(int connection, std::string_view id, std::int64_t correlation_id) {
    return R"("conn":)" + std::to_string(connection) + R"(,"id":")" + std::string(id) +
           R"(","corr":)" + std::to_string(correlation_id);
  }
  void add(std::string_view event, const std::string& fields) {
    std::lock_guard guard(mutex_);
    lines_.push_back(R"({"e":")" + std::string(event) + "\"," + fields + R"(,"t":)" +
                     std::to_string(system_clock().now().time_since_epoch().count()) + "}");
  }

  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace ordo::testing_support

// A million messages that nobody takes: what they cost in memory, and how soon a broker that is
// opened again delivers the first of them.
#include <cstdint>
#include <string>

#include "bench/broker/rig.h"
#include "bench/support/usage.h"

namespace ordo::bench {

Measures run_backlog(const Plan& plan, const std::string& folder) {
  Rig rig(plan, folder);
  rig.make_names();
  Measures measures;
  const auto messages = static_cast<double>(plan.messages);
  const std::uint64_t rss_before = process_rss_bytes();
  measures.set("idle_rss_bytes", static_cast<double>(rss_before));
  Gate gate(16);
  std::int64_t publishes = 0;
  for (std::uint64_t stored = 0; stored < plan.messages; stored += plan.batch, ++publishes) {
    gate.enter(1);
    rig.broker().publish(kTopic, rig.bodies(0), [&gate](auto answer) {
      if (!answer) fail(answer.error().message);
      gate.leave(1);
    });
  }
  gate.wait_for(publishes);
  const std::uint64_t rss = process_rss_bytes();
  measures.set("rss_bytes", static_cast<double>(rss));
  measures.set("rss_bytes_per_message", static_cast<double>(rss) / messages);
  measures.set("growth_bytes_per_message",
               static_cast<double>(rss > rss_before ? rss - rss_before : 0) / messages);
  measures.set("memory_bytes", static_cast<double>(rig.broker().stats().memory_bytes));
  measures.set("messages", messages);

  const double open_s = rig.reopen();
  const std::uint64_t begin = now_ns();
  const auto pulled = rig.broker().pull(kSubscription, {.messages_max = 1});
  if (!pulled || pulled->empty()) fail("a reopened broker does not deliver");
  measures.set("open_s", open_s);
  measures.set("serving_s", open_s + static_cast<double>(now_ns() - begin) / 1e9);
  return measures;
}

}  // namespace ordo::bench

// A million messages that nobody takes: what they cost in memory, and how soon a broker that is
// opened after a crash delivers the first of them.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/broker/rig.h"
#include "bench/support/child.h"
#include "bench/support/usage.h"

namespace ordo::bench {

void run_fill(const Plan& plan, const std::string& folder) {
  Rig rig(plan, folder);
  rig.make_names();
  const std::uint64_t rss_before = process_rss_bytes();
  rig.store_messages(plan.messages);
  const std::uint64_t rss = process_rss_bytes();
  Measures measures;
  const auto messages = static_cast<double>(plan.messages);
  measures.set("messages", messages);
  measures.set("idle_rss_bytes", static_cast<double>(rss_before));
  measures.set("rss_bytes", static_cast<double>(rss));
  measures.set("rss_bytes_per_message", static_cast<double>(rss) / messages);
  measures.set("memory_bytes", static_cast<double>(rig.broker().stats().memory_bytes));
  std::fputs(measures.to_lines().c_str(), stdout);
  std::fflush(stdout);
  std::_Exit(0);  // Nothing is closed.
}

Measures run_backlog(const Plan& plan, const std::string& folder) {
  Plan fill = plan;
  fill.group = "fill";
  const ChildResult filled =
      run_child({"/proc/self/exe", "--run", fill.text(), folder}, std::chrono::seconds(60));
  if (!filled.failure.empty()) fail(filled.failure);
  Measures measures = Measures::from_lines(filled.output);

  const std::uint64_t cpu_begin = process_cpu_ns();
  const std::uint64_t begin = now_ns();
  Rig rig(plan, folder);
  measures.set("open_s", static_cast<double>(now_ns() - begin) / 1e9);
  const auto pulled = rig.broker().pull(kSubscription, {.messages_max = 1});
  if (!pulled || pulled->empty()) fail("a reopened broker does not deliver");
  measures.set("serving_s", static_cast<double>(now_ns() - begin) / 1e9);
  measures.set("serving_cpu_s", static_cast<double>(process_cpu_ns() - cpu_begin) / 1e9);
  measures.set("reopened_rss_bytes", static_cast<double>(process_rss_bytes()));
  return measures;
}

}  // namespace ordo::bench

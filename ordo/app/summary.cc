#include "ordo/app/summary.h"

#include <cstdio>

namespace ordo::app {
namespace {

// Three significant digits are enough for people: 1.23ms, 45.6s.
std::string short_time(std::uint64_t nanoseconds) {
  const double value = static_cast<double>(nanoseconds);
  char text[32];
  if (value < 1e3) {
    std::snprintf(text, sizeof text, "%.0fns", value);
  } else if (value < 1e6) {
    std::snprintf(text, sizeof text, "%.3gus", value / 1e3);
  } else if (value < 1e9) {
    std::snprintf(text, sizeof text, "%.3gms", value / 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.2fs", value / 1e9);
  }
  return text;
}

std::string many(std::uint64_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

}  // namespace

std::string account_line(const RunAccount& account) {
  const DeliveryCounts& counts = account.counts;
  const std::uint64_t undone = counts.undone + account.left_over;
  std::string text =
      many(counts.done, "job") + " done, " + std::to_string(counts.failed) + " failed";
  if (account.skipped > 0) text += ", " + std::to_string(account.skipped) + " done before";
  if (undone > 0) text += ", " + many(undone, "line") + " taken in and not done";
  if (counts.first_undone > 0) {
    text += " (the first is line " + std::to_string(counts.first_undone) + ")";
  }
  return text;
}

std::string stats_text(const RunAccount& account) {
  const DeliveryCounts& counts = account.counts;
  const Histogram& times = counts.runtimes;
  const Histogram& stalls = account.pool.stalls;
  const double seconds = std::chrono::duration<double>(account.elapsed).count();
  const double jobs = static_cast<double>(counts.done + counts.failed);
  char rate[48];
  std::snprintf(rate, sizeof rate, "%.1f jobs/s", seconds > 0 ? jobs / seconds : 0);
  const auto elapsed = static_cast<std::uint64_t>(account.elapsed.count());
  std::string text = "ordo: " + account_line(account) + ", " + many(counts.retries, "retry");
  if (text.ends_with("retrys")) text.replace(text.size() - 6, 6, "retries");
  text += "\n  time          " + short_time(elapsed) + ", " + rate;
  text += "\n  per job       p50 " + short_time(times.quantile(0.5)) + ", p99 " +
          short_time(times.quantile(0.99)) + ", max " + short_time(times.max());
  text += "\n  head of line  held up " + short_time(stalls.sum()) + " in " +
          many(stalls.count(), "stall") + ", longest " + short_time(stalls.max());
  text += "\n  workers       " + std::to_string(account.pool.workers_min) + " to " +
          std::to_string(account.pool.workers_max) + ", scaled up " +
          std::to_string(account.pool.scale_ups) + " and down " +
          std::to_string(account.pool.scale_downs) + " times\n";
  return text;
}

}  // namespace ordo::app

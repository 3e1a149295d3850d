#include "ordo/adapters/admin_http/metrics_text.h"

#include <string>

#include <gtest/gtest.h>

namespace ordo::admin_http {
namespace {

TEST(MetricsTextTest, WritesFamiliesWithTheirSamples) {
  MetricsText metrics;
  metrics.counter("tasks_total", "Tasks done.");
  metrics.sample(std::uint64_t{7}, {{"partition", "0"}, {"why", "busy"}});
  metrics.sample(std::uint64_t{8});
  metrics.gauge("load", "Share of the time.");
  metrics.sample(0.25);
  EXPECT_EQ(metrics.take(),
            "# HELP tasks_total Tasks done.\n"
            "# TYPE tasks_total counter\n"
            "tasks_total{partition=\"0\",why=\"busy\"} 7\n"
            "tasks_total 8\n"
            "# HELP load Share of the time.\n"
            "# TYPE load gauge\n"
            "load 0.25\n");
}

TEST(MetricsTextTest, EscapesWhatWouldEndALabelOrALine) {
  MetricsText metrics;
  metrics.gauge("g", "two\nlines \\ \"quoted\"");
  metrics.sample(std::uint64_t{1}, {{"name", "a\"b\\c\nd"}});
  EXPECT_EQ(metrics.take(),
            "# HELP g two\\nlines \\\\ \"quoted\"\n"
            "# TYPE g gauge\n"
            "g{name=\"a\\\"b\\\\c\\nd\"} 1\n");
}

TEST(MetricsTextTest, AHistogramCountsWhatIsNotAboveEachBound) {
  Histogram waits;
  waits.record(500);             // 0.5 us
  waits.record(1'500, 2);        // 1.5 us
  waits.record(20'000'000'000);  // 20 s
  MetricsText metrics;
  metrics.histogram("wait_seconds", "Wait.");
  metrics.sample(waits, {{"partition", "1"}});
  const std::string text = metrics.take();
  EXPECT_NE(text.find("wait_seconds_bucket{partition=\"1\",le=\"1e-06\"} 1\n"), text.npos) << text;
  EXPECT_NE(text.find("wait_seconds_bucket{partition=\"1\",le=\"2e-06\"} 3\n"), text.npos) << text;
  EXPECT_NE(text.find("wait_seconds_bucket{partition=\"1\",le=\"10\"} 3\n"), text.npos) << text;
  EXPECT_NE(text.find("wait_seconds_bucket{partition=\"1\",le=\"+Inf\"} 4\n"), text.npos) << text;
  EXPECT_NE(text.find("wait_seconds_count{partition=\"1\"} 4\n"), text.npos) << text;
  EXPECT_EQ(text.find("le=\"20\""), text.npos) << text;
}

}  // namespace
}  // namespace ordo::admin_http

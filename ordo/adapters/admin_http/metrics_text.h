// MetricsText: figures in the text form that Prometheus reads.
//
//   MetricsText metrics;
//   metrics.counter("ordo_gateway_tasks_total", "Tasks answered OK.");
//   metrics.sample(stats.processed, {{"partition", "0"}});
//   metrics.histogram("ordo_gateway_wait_seconds", "From admission to its turn.");
//   metrics.sample(stats.wait_nanoseconds, {{"partition", "0"}});
//   return {.content_type = MetricsText::kContentType, .body = metrics.take()};
//
// Threads: one owner.
// Cost:    a histogram is cut into 22 buckets from 1 us to 10 s, in steps of 1, 2 and 5.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "ordo/core/histogram.h"

namespace ordo::admin_http {

class MetricsText {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

  // Begins a family; the samples that follow belong to it.
  void counter(std::string_view name, std::string_view help) { begin(name, help, "counter"); }
  void gauge(std::string_view name, std::string_view help) { begin(name, help, "gauge"); }
  void histogram(std::string_view name, std::string_view help) { begin(name, help, "histogram"); }

  void sample(std::uint64_t value, Labels labels = {});
  void sample(double value, Labels labels = {});
  // Of a histogram of nanoseconds, in seconds.
  void sample(const Histogram& nanoseconds, Labels labels = {});

  std::string take() { return std::move(text_); }

 private:
  void begin(std::string_view name, std::string_view help, std::string_view type);
  void line(std::string_view suffix, Labels labels, std::string_view bound, std::string_view value);

  std::string name_;
  std::string text_;
};

}  // namespace ordo::admin_http

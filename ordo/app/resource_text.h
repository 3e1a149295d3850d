// Resources of a broker as people read and type them.
//
//   Result<Labels> labels = parse_labels("--label", {"team=a"});
//   std::string text = labels_text(topic.labels);               // team=a,tier=1
//
// Threads: pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/adapters/pubsub_client/resources.h"
#include "ordo/app/broker_words.h"
#include "ordo/app/table.h"
#include "ordo/core/clock.h"
#include "ordo/core/result.h"

namespace ordo::app {

using pubsub_client::Labels;

// NAME=VALUE each; the value may be empty and have more of '='.
Result<Labels> parse_labels(std::string_view option, const std::vector<std::string>& words);
std::string labels_text(const Labels& labels);

// A duration with a unit, or a number of seconds.
Result<std::chrono::nanoseconds> parse_seconds(std::string_view option, std::string_view text);

// "1h", or `otherwise` when there is none.
std::string span_text(const std::optional<std::chrono::nanoseconds>& span, const char* otherwise);

// 2026-11-16T00:20:01.5Z, `now`, or so much ago and from now: -10m, +1h.
Result<WallTime> parse_moment(std::string_view option, std::string_view text, WallTime now);
std::string moment_text(WallTime time);  // 2026-11-16T00:20:01.500Z

// What describe shows, a line for each field.
Table described(const pubsub_client::Topic& topic, const std::vector<std::string>& subscriptions);
Table described(const pubsub_client::Subscription& subscription);
Table described(const pubsub_client::Snapshot& snapshot);

// Prints to standard output; an Error when nobody takes it.
Status print_text(std::string_view text);
Status print_table(const Table& table);

}  // namespace ordo::app

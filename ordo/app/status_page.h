// The status page of `ordo serve`: topics, subscriptions, their backlog, and the keys that are
// stuck, as plain HTML without any script.
// It asks for itself again every five seconds.
//
//   const StatusFacts facts = gather_status(broker);
//   exchange->respond({.content_type = "text/html; charset=utf-8",
//                      .body = Slice::of(status_html(facts))});
//
// Names and keys come from clients: they are shown as text, whatever they contain.
//
// Threads: gather_status() waits for the partitions, so not on an I/O thread; the others are pure.
// Bounds:  kShownMax topics and subscriptions, and the rest is counted; kBlockedMax keys.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ordo/broker.h"

namespace ordo::app {

struct SubscriptionFacts {
  broker::SubscriptionConfig config{};
  broker::SubscriptionStats stats{};
};

struct BlockedFacts {
  std::string subscription{};
  broker::KeyFacts key{};
  std::chrono::nanoseconds blocked{};  // For so long.
};

struct StatusFacts {
  static constexpr std::size_t kShownMax = 500;
  static constexpr std::size_t kBlockedMax = 50;

  std::string version{};
  std::string phase{};
  std::chrono::nanoseconds up{};  // Since the start.
  BrokerStats broker{};
  std::vector<std::string> topics{};
  std::vector<SubscriptionFacts> subscriptions{};
  std::vector<BlockedFacts> blocked{};  // Those that wait longest first.
  bool has_more_blocked = false;
  WallTime now{};
};

// All but version, phase and up.
StatusFacts gather_status(Broker& broker);

// What a subscription has not acknowledged, in flight or not.
std::uint64_t backlog_of(const broker::SubscriptionStats& stats);
std::optional<std::chrono::nanoseconds> age_of_oldest(const broker::SubscriptionStats& stats,
                                                      WallTime now);

std::string status_html(const StatusFacts& facts);
// Its style sheet, at kStylePath: the page may load nothing else.
inline constexpr std::string_view kStylePath = "/status.css";
std::string_view status_css();

// `text` as it may stand in HTML, between tags and in attributes.
std::string html_text(std::string_view text);

}  // namespace ordo::app

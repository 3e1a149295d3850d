#include "ordo/app/status_page.h"

#include <algorithm>
#include <utility>

#include "ordo/app/message_format.h"
#include "ordo/core/clock.h"
#include "ordo/core/log.h"

namespace ordo::app {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kNameShownMax = 300;  // Bytes of a name or key.

std::string_view reason_text(broker::BlockReason reason) {
  using broker::BlockReason;
  switch (reason) {
    case BlockReason::in_flight:
      return "in flight, waits for its ack";
    case BlockReason::backoff:
      return "failed, waits for its next attempt";
    case BlockReason::no_consumer:
      return "ready, nobody has room for it";
    case BlockReason::parked:
      return "parked after too many attempts";
    case BlockReason::paused:
      return "paused by an operator";
    case BlockReason::dead_letter_gone:
      return "its dead-letter topic is gone";
    case BlockReason::storing:
      return "being stored";
    case BlockReason::data_loss:
      return "damaged, cannot be read";
    case BlockReason::no_message:
      return "nothing waits";
  }
  return "";
}

// With one digit behind the point: 1.5 MiB, 212.0 GiB.
std::string bytes_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
  constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;
  const bool is_large = bytes >= kGibibyte;
  const std::uint64_t unit = is_large ? kGibibyte : kMebibyte;
  const std::uint64_t tenths = bytes / unit * 10 + bytes % unit * 10 / unit;
  std::string text = std::to_string(tenths / 10);
  return text.append(".").append(std::to_string(tenths % 10)).append(is_large ? " GiB" : " MiB");
}

// Cells of a row; text that is not ours goes through name().
class Row {
 public:
  explicit Row(std::string& page) : page_(page) { page_.append("<tr>"); }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;
  ~Row() { page_.append("</tr>\n"); }

  // Text of clients: on its own, so that its writing direction does not turn what follows.
  void name(std::string_view text) {
    page_.append("<td><bdi>").append(html_text(text)).append("</bdi></td>");
  }
  void words(std::string_view text) {
    page_.append("<td>").append(html_text(text)).append("</td>");
  }
  void number(std::uint64_t value) {
    page_.append("<td class=\"n\">").append(std::to_string(value)).append("</td>");
  }
  void number(const std::string& text) {
    page_.append("<td class=\"n\">").append(html_text(text)).append("</td>");
  }

 private:
  std::string& page_;
};

void begin_table(std::string& page, std::string_view title, std::size_t count,
                 const std::vector<std::string_view>& columns) {
  page.append("<h2>").append(title).append(" <small>").append(std::to_string(count));
  page.append("</small></h2>\n<table><thead><tr>");
  for (const std::string_view column : columns)
    page.append("<th scope=\"col\">").append(column).append("</th>");
  page.append("</tr></thead><tbody>\n");
}

void end_table(std::string& page, std::size_t count, std::size_t shown_max) {
  page.append("</tbody></table>\n");
  if (count > shown_max)
    page.append("<p>and ").append(std::to_string(count - shown_max)).append(" more</p>\n");
}

void add_head(std::string& page, const StatusFacts& facts) {
  page.append("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
  page.append("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
  page.append("<meta http-equiv=\"refresh\" content=\"5\">");
  page.append("<title>Ordo</title><link rel=\"stylesheet\" href=\"").append(kStylePath);
  page.append("\"></head>\n<body><h1>Ordo <small>").append(html_text(facts.version));
  page.append("</small></h1>\n<p>").append(html_text(facts.phase)).append(", up ");
  page.append(rough_time(facts.up)).append("</p>\n");
  const BrokerStats& stats = facts.broker;
  for (const std::string& failure : {stats.failure, stats.store.failure}) {
    if (failure.empty()) continue;
    page.append("<p class=\"bad\">Nothing is stored any more: ").append(html_text(failure));
    page.append("</p>\n");
    break;
  }
  if (stats.store.is_full)
    page.append(
        "<p class=\"bad\">The disk is full: publishes are refused until there is room.</p>\n");
  if (stats.damaged > 0) {
    page.append("<p class=\"bad\">").append(std::to_string(stats.damaged));
    page.append(" deliveries were kept back because their bytes have changed; see ordo doctor");
    page.append("</p>\n");
  }
}

void add_figures(std::string& page, const BrokerStats& stats) {
  const std::pair<std::string_view, std::string> figures[] = {
      {"messages stored", std::to_string(stats.store.messages)},
      {"published since the start", std::to_string(stats.published)},
      {"streams and pulls", std::to_string(stats.consumers)},
      {"memory for messages", bytes_text(stats.memory_bytes)},
      {"disk used", bytes_text(stats.store.disk_bytes)},
      {"disk free", bytes_text(stats.store.disk_free_bytes)},
  };
  page.append("<dl>");
  for (const auto& [name, value] : figures) {
    page.append("<div><dt>").append(name).append("</dt><dd>").append(value);
    page.append("</dd></div>");
  }
  page.append("</dl>\n");
}

void add_topics(std::string& page, const StatusFacts& facts) {
  begin_table(page, "Topics", facts.broker.topics, {"topic"});
  for (const std::string& topic : facts.topics)
    Row(page).name(topic);
  end_table(page, facts.broker.topics, StatusFacts::kShownMax);
}

void add_subscriptions(std::string& page, const StatusFacts& facts) {
  begin_table(page, "Subscriptions", facts.broker.subscriptions,
              {"subscription", "topic", "order", "backlog", "in flight", "oldest", "busy keys",
               "parked keys", "acked", "redelivered"});
  for (const SubscriptionFacts& subscription : facts.subscriptions) {
    const broker::SubscriptionStats& stats = subscription.stats;
    const auto oldest = age_of_oldest(stats, facts.now);
    Row row(page);
    row.name(subscription.config.name);
    row.name(subscription.config.topic);
    row.words(subscription.config.enable_message_ordering ? "by key" : "none");
    row.number(backlog_of(stats));
    row.number(stats.leased);
    row.number(oldest ? rough_time(*oldest) : "");
    row.number(stats.lanes);
    row.number(stats.parked_lanes);
    row.number(stats.acked);
    row.number(stats.redeliveries);
  }
  end_table(page, facts.broker.subscriptions, StatusFacts::kShownMax);
}

void add_blocked(std::string& page, const StatusFacts& facts) {
  begin_table(page, "Blocked keys", facts.blocked.size(),
              {"subscription", "key", "for", "behind it", "attempts", "why", "last failure"});
  for (const BlockedFacts& blocked : facts.blocked) {
    Row row(page);
    row.name(blocked.subscription);
    row.name(blocked.key.key);
    row.number(rough_time(blocked.blocked));
    row.number(blocked.key.waiting);
    row.number(blocked.key.attempts);
    row.words(reason_text(blocked.key.reason));
    row.words(blocked.key.last_failure);
  }
  end_table(page, facts.blocked.size(), StatusFacts::kBlockedMax);
  if (facts.has_more_blocked)
    page.append("<p>and more: ordo keys SUBSCRIPTION --blocked lists them</p>\n");
}

// The keys of one subscription that do not go on. One that only waits for an ack is not stuck yet.
void add_blocked_of(Broker& broker, const SubscriptionFacts& subscription, TimePoint now,
                    std::vector<BlockedFacts>& blocked) {
  if (subscription.stats.lanes == 0 && subscription.stats.parked_lanes == 0) return;
  auto keys = broker.list_keys(subscription.config.name,
                               {.count_max = StatusFacts::kBlockedMax + 1, .stuck_only = true});
  if (!keys) return;
  for (broker::KeyFacts& key : *keys) {
    const nanoseconds time = now - key.blocked_since;
    blocked.push_back({subscription.config.name, std::move(key), time});
  }
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string escaped;
  for (const char character : printable(text, kNameShownMax)) {
    switch (character) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += character;
    }
  }
  return escaped;
}

std::uint64_t backlog_of(const broker::SubscriptionStats& stats) {
  return stats.waiting + stats.leased + stats.unread;
}

std::optional<nanoseconds> age_of_oldest(const broker::SubscriptionStats& stats, WallTime now) {
  if (!stats.oldest_unacked) return std::nullopt;
  return std::max(now - *stats.oldest_unacked, nanoseconds::zero());
}

StatusFacts gather_status(Broker& broker) {
  StatusFacts facts;
  facts.broker = broker.stats();
  facts.now = system_clock().wall_now();
  const TimePoint now = system_clock().now();
  facts.topics = broker.topic_names();
  facts.topics.resize(std::min(facts.topics.size(), StatusFacts::kShownMax));
  for (broker::SubscriptionConfig& config : broker.subscription_configs()) {
    if (facts.subscriptions.size() == StatusFacts::kShownMax) break;
    SubscriptionFacts subscription{std::move(config), {}};
    if (auto stats = broker.subscription_stats(subscription.config.name)) {
      subscription.stats = *stats;
    }
    add_blocked_of(broker, subscription, now, facts.blocked);
    facts.subscriptions.push_back(std::move(subscription));
  }
  std::sort(facts.blocked.begin(), facts.blocked.end(),
            [](const BlockedFacts& a, const BlockedFacts& b) { return a.blocked > b.blocked; });
  facts.has_more_blocked = facts.blocked.size() > StatusFacts::kBlockedMax;
  facts.blocked.resize(std::min(facts.blocked.size(), StatusFacts::kBlockedMax));
  return facts;
}

std::string status_html(const StatusFacts& facts) {
  std::string page;
  add_head(page, facts);
  add_figures(page, facts.broker);
  add_topics(page, facts);
  add_subscriptions(page, facts);
  add_blocked(page, facts);
  page.append("<p><a href=\"/metrics\">metrics</a></p></body></html>\n");
  return page;
}

std::string_view status_css() {
  return R"(body{font:15px/1.4 system-ui,sans-serif;margin:1.5rem;color:#1c2126;background:#fff}
h1,h2{font-weight:600}
h2{margin-top:1.6rem;font-size:1.1rem}
small{font-weight:400;opacity:.6}
table{border-collapse:collapse;display:block;overflow-x:auto}
th,td{text-align:left;padding:.25rem .8rem .25rem 0;border-bottom:1px solid #8884}
.n{text-align:right;font-variant-numeric:tabular-nums}
.bad{color:#b3261e;font-weight:600}
dl{display:flex;flex-wrap:wrap;gap:.5rem 2rem}
dt{opacity:.6}
dd{margin:0}
bdi{word-break:break-all}
@media(prefers-color-scheme:dark){
body{color:#dde2e8;background:#15181c}
a{color:#8ab4f8}
.bad{color:#f2b8b5}
}
)";
}

}  // namespace ordo::app

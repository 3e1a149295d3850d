#include "ordo/app/status_page.h"

#include <gtest/gtest.h>

namespace ordo::app {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(StatusPageTest, TextOfClientsIsShownAsText) {
  EXPECT_EQ(html_text("<img src=x onerror='a()'>&\""),
            "&lt;img src=x onerror=&#39;a()&#39;&gt;&amp;&quot;");
  EXPECT_EQ(html_text("a\nb\x1b"), "a\\nb\\x1b");
  EXPECT_TRUE(has(html_text(std::string(1'024, 'k')), "bytes more)"));
}

TEST(StatusPageTest, HostileNamesAndKeysCannotBecomeTags) {
  const std::string hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>";
  StatusFacts facts;
  facts.version = facts.phase = hostile;
  facts.broker.failure = hostile;
  facts.topics = {hostile};
  facts.subscriptions.push_back({{.name = hostile, .topic = hostile}, {}});
  BlockedFacts blocked{.subscription = hostile};
  blocked.key.key = blocked.key.last_failure = hostile;
  facts.blocked.push_back(blocked);
  const std::string page = status_html(facts);
  EXPECT_FALSE(has(page, "<script"));
  EXPECT_FALSE(has(page, "<img"));
  EXPECT_TRUE(has(page, "&lt;script&gt;alert(1)"));
}

TEST(StatusPageTest, SaysWhatASubscriptionHasLeftToDoAndWhichKeysAreStuck) {
  StatusFacts facts;
  facts.broker.topics = 1;
  facts.broker.subscriptions = 600;
  facts.topics = {"projects/p/topics/t"};
  facts.now = WallTime{std::chrono::seconds(100'000)};
  SubscriptionFacts subscription{
      {.name = "projects/p/subscriptions/s", .topic = "projects/p/topics/t"}, {}};
  subscription.stats.waiting = 20;
  subscription.stats.leased = 3;
  subscription.stats.unread = 400;
  subscription.stats.oldest_unacked = facts.now - std::chrono::minutes(5);
  facts.subscriptions.push_back(subscription);
  BlockedFacts blocked{.subscription = "s", .blocked = std::chrono::hours(3)};
  blocked.key.key = "user-1";
  blocked.key.waiting = 77;
  blocked.key.reason = broker::BlockReason::parked;
  facts.blocked.push_back(blocked);
  EXPECT_FALSE(has(status_html(facts), "and more: "));
  facts.has_more_blocked = true;
  const std::string page = status_html(facts);
  EXPECT_TRUE(has(page, "and more: ordo keys SUBSCRIPTION --blocked"));
  EXPECT_TRUE(
      has(page, "<td class=\"n\">423</td><td class=\"n\">3</td><td class=\"n\">5 min</td>"));
  EXPECT_TRUE(has(page, "<bdi>user-1</bdi></td><td class=\"n\">3 h</td><td class=\"n\">77</td>"));
  EXPECT_TRUE(has(page, "parked after too many attempts"));
  EXPECT_TRUE(has(page, "and 100 more"));
  EXPECT_TRUE(has(page, "http-equiv=\"refresh\""));
}

}  // namespace
}  // namespace ordo::app

// CatalogProbe: a catalog with a store of plain maps behind it, for its tests.
//
//   class CatalogTest : public testing::Test, protected CatalogProbe {};
//   add_topic("orders");
//   apply(catalog_.delete_topic(topic("orders")));
//   restart();                                      // what was stored is all there is
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/broker/catalog.h"

namespace ordo::broker {

class CatalogProbe {
 protected:
  static std::string topic(const std::string& id) { return "projects/p/topics/" + id; }
  static std::string subscription(const std::string& id) {
    return "projects/p/subscriptions/" + id;
  }
  static std::string snapshot(const std::string& id) { return "projects/p/snapshots/" + id; }

  // "NOT_FOUND Resource not found (resource=x)."
  template <class T>
  static std::string error_of(const Result<T>& result) {
    if (result) return "it was accepted";
    return std::string(error_code_name(result.error().code)) + " " + result.error().message;
  }
  template <class T>
  static ErrorCode code_of(const Result<T>& result) {
    return result ? ErrorCode{} : result.error().code;
  }

  void store(const CatalogChange& change) {
    for (const CommitOp& op : change.rows) {
      if (const auto* put = std::get_if<PutCatalog>(&op)) rows_[put->key] = put->value;
      if (const auto* erase = std::get_if<EraseCatalog>(&op)) rows_.erase(erase->key);
      if (std::holds_alternative<ErasePartition>(op)) ++erased_partitions_;
      if (const auto* erase = std::get_if<EraseRows>(&op)) erased_cursors_.push_back(erase->cursor);
    }
  }

  void apply(const Result<CatalogChange>& change) {
    ASSERT_TRUE(change) << change.error().message;
    store(*change);
    catalog_.apply();
  }

  void add_topic(TopicConfig config) { apply(catalog_.create_topic(std::move(config))); }
  void add_topic(const char* id) { add_topic(TopicConfig{.name = topic(id)}); }
  void add_subscription(SubscriptionConfig config) {
    apply(catalog_.create_subscription(std::move(config), now_));
  }
  void add_subscription(const std::string& id, const std::string& of_topic) {
    add_subscription({.name = subscription(id), .topic = topic(of_topic)});
  }

  // Of the topic orders, dead letters to letters, nothing as by default.
  static SubscriptionConfig full_subscription() {
    SubscriptionConfig config{.name = subscription("full"), .topic = topic("orders")};
    config.labels = {{"team", "blue"}, {"ordo-ordered-window", "10"}};
    config.ack_deadline = std::chrono::seconds(1);
    config.enable_message_ordering = true;
    config.enable_exactly_once_delivery = true;
    config.retain_acked_messages = true;
    config.message_retention = std::chrono::hours(1);
    config.expiration_ttl = std::nullopt;
    config.filter = "attributes:a";
    config.retry_policy = RetryPolicy{std::chrono::seconds(0), std::chrono::seconds(7)};
    config.dead_letter_policy = DeadLetterPolicy{topic("letters"), 9};
    config.park_attempts = 3;
    config.skip_after = std::chrono::milliseconds(1500);
    return config;
  }

  void restart() {
    Recovered recovered;
    recovered.catalog = rows_;
    Result<Catalog::Start> start = Catalog::recover(recovered);
    ASSERT_TRUE(start) << start.error().message;
    catalog_ = std::move(start->catalog);
    cleanup_ = std::move(start->cleanup);
  }

  Catalog catalog_;
  WallTime now_ = WallTime() + std::chrono::hours(24 * 365 * 50);
  std::map<CatalogKey, std::string> rows_;
  int erased_partitions_ = 0;
  std::vector<CursorNumber> erased_cursors_;
  CommitBatch cleanup_;
};

}  // namespace ordo::broker

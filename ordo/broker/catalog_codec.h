// The rows of the catalog as bytes.
//
//   rows.push_back(PutCatalog{{kTopicKind, topic.config.name}, encode_row(topic)});
//   Result<CatalogTopic> topic = decode_topic(name, bytes);
//
// A row is a version number and fields, each with its number and length (docs/storage_format.md). A
// field that is not set is not written. A field or a version that is not known is an error that
// names the row, never skipped: somebody newer wrote it, and it means something.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ordo/broker/catalog.h"
#include "ordo/core/result.h"

namespace ordo::broker {

// CatalogKey::kind. The name is the resource's, of a deleted topic its number.
inline constexpr std::uint8_t kTopicKind = 1;
inline constexpr std::uint8_t kSubscriptionKind = 2;
inline constexpr std::uint8_t kSnapshotKind = 3;
inline constexpr std::uint8_t kCountersKind = 4;
inline constexpr std::uint8_t kDeletedTopicKind = 5;
inline constexpr std::uint8_t kPolicyKind = 6;  // The name is that of what it is the policy of.

inline constexpr std::string_view kCountersName = "next";

CatalogKey key_of(const CatalogTopic& topic);

std::string encode_row(const CatalogTopic& topic);
std::string encode_row(const CatalogSubscription& subscription);
std::string encode_row(const CatalogSnapshot& snapshot);
std::string encode_row(const CatalogCounters& counters);
std::string encode_policy(std::string_view policy);

// `name` is that of the row's key. Errors: data_loss.
Result<CatalogTopic> decode_topic(std::string_view name, std::string_view bytes);
Result<CatalogTopic> decode_deleted_topic(std::string_view name, std::string_view bytes);
Result<CatalogSubscription> decode_subscription(std::string_view name, std::string_view bytes);
Result<CatalogSnapshot> decode_snapshot(std::string_view name, std::string_view bytes);
Result<CatalogCounters> decode_counters(std::string_view bytes);
Result<std::string> decode_policy(std::string_view name, std::string_view bytes);

}  // namespace ordo::broker

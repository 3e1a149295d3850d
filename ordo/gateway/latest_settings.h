// LatestSettings: where a reload is left, and where each partition picks it up.
//
//   LatestSettings latest(settings);
//   latest.put(newer);                                    // whoever reloads
//   if (latest.version() != seen) seen = latest.take(mine);  // a partition, before its next task
//
// Threads: any thread may call any function.
// Cost:    version() is one load of what hardly ever changes; put() and take() lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "ordo/gateway/oms_settings.h"

namespace ordo::gateway {

class LatestSettings {
 public:
  explicit LatestSettings(std::shared_ptr<const OmsSettings> settings)
      : settings_(std::move(settings)) {}

  void put(std::shared_ptr<const OmsSettings> settings) {
    const std::lock_guard guard(mutex_);
    settings_.swap(settings);  // The old ones end after the lock.
    version_.fetch_add(1, std::memory_order_release);
  }

  // Copies the latest settings to `settings` and returns their version.
  std::uint64_t take(std::shared_ptr<const OmsSettings>& settings) const {
    const std::lock_guard guard(mutex_);
    settings = settings_;
    return version();
  }

  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const OmsSettings> settings_;
  std::atomic<std::uint64_t> version_{1};
};

}  // namespace ordo::gateway

// Demo: ordered traffic with a few keys that fail, for somebody to look at.
//
//   Demo demo(client, {.project = "ordo", .time = 60s});
//   if (Status made = demo.make(); !made) return made;
//   Status ran = demo.run(interrupt_fd, [] { return false; });
//   demo.remove();
//
// One loop on one connection: publishes a share of the messages, then receives, acknowledges the
// good keys and gives back the bad ones, whose heads then wait for their next attempt with all that
// was published behind them.
//
// Threads: one owner, that of the client.
// Bounds:  the time and rate given; the messages of bad keys stay until remove().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ordo/adapters/pubsub_client/client.h"
#include "ordo/adapters/pubsub_client/pull_stream.h"
#include "ordo/core/result.h"

namespace ordo::app {

struct DemoOptions {
  std::string project = {};
  std::chrono::nanoseconds time = std::chrono::seconds(60);
  std::uint64_t rate = 200;  // Messages a second.
  std::uint64_t keys = 20;
  std::uint64_t bad_keys = 3;  // Of them.
};

struct DemoCounts {
  std::uint64_t published = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t failed = 0;  // Given back.
};

class Demo {
 public:
  // REQUIRES: `client` outlives this.
  Demo(pubsub_client::Client& client, DemoOptions options);

  // The topic and its subscription; those of an earlier run are used again.
  Status make();
  // Until its time is over or `stops` returns true; `show` is called about once a second.
  Status run(int wake_fd, const std::function<bool()>& stops,
             const std::function<void(const DemoCounts&)>& show);
  // What make() makes. What is not there is no error.
  Status remove();

  const std::string& topic() const { return topic_; }
  const std::string& subscription() const { return subscription_; }
  const DemoCounts& counts() const { return counts_; }

 private:
  Status publish_due(TimePoint now);
  Status receive(pubsub_client::PullStream& stream, TimePoint until, int wake_fd);
  bool is_bad(const std::string& key) const;

  pubsub_client::Client& client_;
  const DemoOptions options_;
  const std::string topic_;
  const std::string subscription_;
  TimePoint began_;
  DemoCounts counts_;
};

}  // namespace ordo::app

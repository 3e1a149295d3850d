// How the partitions of a broker share its threads.
#include "ordo/broker/host.h"

#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/waiting.h"

namespace ordo::broker {
namespace {

using testing_support::eventually;

TEST(SwitchboardTest, PartitionsGoRoundTheThreads) {
  for (const std::size_t thread_count : {1u, 2u, 3u, 5u}) {
    std::mutex mutex;
    std::map<std::thread::id, int> ran;  // Hosts, by the thread that runs them.
    std::size_t answered = 0;
    SwitchboardOptions options;
    options.threads = thread_count;
    options.callers_run = false;
    Switchboard switchboard(options);
    std::vector<std::shared_ptr<PartitionHost>> hosts;
    for (std::uint32_t index = 0; index < 4 * thread_count; ++index) {
      PartitionStart start;
      start.address.index = index;
      hosts.push_back(switchboard.open(std::move(start), PartitionOptions{}, nullptr));
      hosts.back()->post({AskStats{}, [&](Effect&&) {
                            const std::lock_guard lock(mutex);
                            ++ran[std::this_thread::get_id()];
                            ++answered;
                          }});
    }
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock(mutex);
      return answered == hosts.size();
    }));
    switchboard.end(TimePoint::max());
    EXPECT_EQ(ran.size(), thread_count);
    for (const auto& [thread, count] : ran)
      EXPECT_EQ(count, 4);
  }
}

}  // namespace
}  // namespace ordo::broker

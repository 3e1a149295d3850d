// Goal: whatever the limits, messages, delays and acks, a consumer never has more outstanding than
// its limits allow (bytes: one message more), also while these change; every partition gets its
// turn, and everything is delivered in the end. Method: model partitions that keep to the rules of
// GrantCredit, joined to the desk by queues of random delay; the seed names the failing run.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/broker/credit_desk.h"

namespace ordo::broker {
namespace {

struct Said {  // By a partition to the desk.
  enum class What { want, deliver, give_back, release } what;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

struct ModelPartition {
  std::deque<std::uint64_t> backlog;  // Sizes.
  std::vector<std::uint64_t> leases;  // Sizes.
  std::uint64_t messages = 0, bytes = 0;
  bool has_asked = false;
  std::deque<Said> to_desk;
  std::deque<CreditDesk::Grant> from_desk;
  std::uint64_t served = 0;

  void take(const CreditDesk::Grant& grant) {
    EXPECT_EQ(messages, 0u) << "granted twice";
    messages = grant.messages;
    bytes = grant.bytes;
    has_asked = false;
    ++served;
  }

  void run() {
    while (!backlog.empty() && messages > 0 && bytes > 0) {
      const std::uint64_t size = backlog.front();
      backlog.pop_front();
      leases.push_back(size);
      messages -= 1;
      bytes -= std::min(bytes, size);
      to_desk.push_back({Said::What::deliver, 1, size});
    }
    if (messages == 0 || bytes == 0) messages = bytes = 0;
    const bool is_unlimited = std::min(messages, bytes) > CreditDesk::kUnlimited / 2;
    if (backlog.empty() && messages > 0 && !is_unlimited) {
      to_desk.push_back({Said::What::give_back, messages, bytes});
      messages = bytes = 0;
    }
    if (!backlog.empty() && messages == 0 && !has_asked) {
      to_desk.push_back({Said::What::want});
      has_asked = true;
    }
  }
};

class CreditDeskSchedule : public testing::TestWithParam<unsigned> {
 protected:
  std::int64_t pick(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }
  bool one_in(std::int64_t n) { return pick(1, n) == 1; }

  void tell(CreditDesk& desk, std::uint32_t index) {
    std::deque<Said>& queue = partitions_[index].to_desk;
    const Said said = queue.front();
    queue.pop_front();
    CreditDesk::Grants grants;
    switch (said.what) {
      case Said::What::want:
        desk.want(index, grants);
        break;
      case Said::What::deliver:
        desk.deliver(index, said.messages, said.bytes, grants);
        break;
      case Said::What::give_back:
        desk.give_back(index, grants);
        break;
      case Said::What::release:
        desk.release(index, said.messages, said.bytes, grants);
        break;
    }
    hand_out(grants);
  }

  void hand_out(const CreditDesk::Grants& grants) {
    for (const CreditDesk::Grant& grant : grants)
      partitions_[grant.partition].from_desk.push_back(grant);
  }

  void limit(CreditDesk& desk, std::int64_t messages) {
    CreditDesk::Grants grants;
    desk.limit_messages(messages, grants);
    hand_out(grants);
  }

  void end_a_lease(ModelPartition& partition) {
    if (partition.leases.empty()) return;
    const auto at =
        static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(partition.leases.size()) - 1));
    const std::uint64_t size = partition.leases[at];
    partition.leases.erase(partition.leases.begin() + static_cast<std::ptrdiff_t>(at));
    partition.to_desk.push_back({Said::What::release, 1, size});
  }

  std::size_t backlog() const {
    return std::accumulate(partitions_.begin(), partitions_.end(), std::size_t{0},
                           [](std::size_t sum, const ModelPartition& partition) {
                             return sum + partition.backlog.size();
                           });
  }

  // All that a partition and its consumer can do.
  void turn(CreditDesk& desk, std::uint32_t index) {
    ModelPartition& partition = partitions_[index];
    while (!partition.from_desk.empty()) {
      partition.take(partition.from_desk.front());
      partition.from_desk.pop_front();
    }
    partition.run();
    while (!partition.leases.empty())
      end_a_lease(partition);
    while (!partition.to_desk.empty())
      tell(desk, index);
  }

  void check(const CreditLimits& limits) const {
    std::int64_t messages = 0, bytes = 0, largest = 0;
    for (const ModelPartition& partition : partitions_) {
      messages += static_cast<std::int64_t>(partition.leases.size());
      for (const std::uint64_t size : partition.leases) {
        bytes += static_cast<std::int64_t>(size);
        largest = std::max(largest, static_cast<std::int64_t>(size));
      }
    }
    if (limits.messages > 0) {
      ASSERT_LE(messages, limits.messages);
    }
    if (limits.bytes > 0) {
      ASSERT_LT(bytes, limits.bytes + std::max<std::int64_t>(largest, 1));
    }
  }

  std::mt19937_64 random_{GetParam()};
  std::vector<ModelPartition> partitions_;
};

TEST_P(CreditDeskSchedule, KeepsTheLimitsAndDeliversEverything) {
  CreditLimits limits;
  if (!one_in(4)) limits.messages = pick(1, 12);
  if (!one_in(4)) limits.bytes = one_in(3) ? pick(1, 60'000'000) : pick(1, 2'000);
  partitions_.resize(static_cast<std::size_t>(pick(1, 6)));
  const std::int64_t size_max = one_in(3) ? CreditDesk::kMessageBytesMax : 500;
  const auto count = static_cast<std::int64_t>(partitions_.size());
  CreditDesk desk(limits, static_cast<std::uint32_t>(count));
  const bool changes = GetParam() % 2 == 1 && limits.messages > 0;  // Never above the first limit.
  for (int step = 0; step < 20'000; ++step) {
    if (changes && one_in(40)) limit(desk, pick(0, limits.messages));
    const auto index = static_cast<std::uint32_t>(pick(0, count - 1));
    ModelPartition& partition = partitions_[index];
    const std::int64_t act = pick(0, 9);
    if (act == 0 && step < 10'000) {
      partition.backlog.push_back(static_cast<std::uint64_t>(pick(1, size_max)));
      partition.run();
    } else if (act <= 3 && !partition.from_desk.empty()) {
      partition.take(partition.from_desk.front());
      partition.from_desk.pop_front();
      partition.run();
    } else if (act <= 7 && !partition.to_desk.empty()) {
      tell(desk, index);
    } else if (act >= 8) {
      end_a_lease(partition);
    }
    check(limits);
    if (HasFatalFailure()) FAIL() << "at step " << step;
  }
  if (changes) limit(desk, limits.messages);
  const std::size_t left = backlog();
  for (std::size_t round = 0; round < 3 * left + 10 && backlog() > 0; ++round) {
    for (std::uint32_t index = 0; index < partitions_.size(); ++index)
      turn(desk, index);
    check(limits);
  }
  EXPECT_EQ(backlog(), 0u);
}

// All partitions have endless backlogs; acks come at random.
TEST_P(CreditDeskSchedule, NoPartitionStarves) {
  CreditLimits limits;
  if (!one_in(3)) limits.messages = pick(1, 5);
  if (limits.messages == 0 || !one_in(3)) limits.bytes = pick(1, 1'000);
  partitions_.resize(static_cast<std::size_t>(pick(2, 6)));
  const auto count = static_cast<std::int64_t>(partitions_.size());
  CreditDesk desk(limits, static_cast<std::uint32_t>(count));
  for (int step = 0; step < 20'000; ++step) {
    const auto index = static_cast<std::uint32_t>(pick(0, count - 1));
    ModelPartition& partition = partitions_[index];
    while (partition.backlog.size() < 50)
      partition.backlog.push_back(static_cast<std::uint64_t>(pick(1, 100)));
    if (!partition.from_desk.empty()) {
      partition.take(partition.from_desk.front());
      partition.from_desk.pop_front();
    }
    partition.run();
    if (!partition.to_desk.empty()) tell(desk, index);
    if (one_in(2)) end_a_lease(partition);
  }
  std::uint64_t least = UINT64_MAX, most = 0;
  for (const ModelPartition& partition : partitions_) {
    least = std::min(least, partition.served);
    most = std::max(most, partition.served);
  }
  EXPECT_GT(least, 50u);
  EXPECT_GE(least * 2, most);
}
INSTANTIATE_TEST_SUITE_P(Seeds, CreditDeskSchedule, testing::Range(0u, 200u));

}  // namespace
}  // namespace ordo::broker

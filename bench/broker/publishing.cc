// Publishing, beside the limit: the same bytes appended to a file and synced the same way.
#include <cstdint>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "bench/broker/rig.h"
#include "bench/support/usage.h"

namespace ordo::bench {
namespace {

constexpr std::uint64_t kSyncIntervalNs = 50'000'000;  // As StoreOptions::sync_interval.

// Room is made ahead, as a log does: then a sync has no blocks to allocate, and the limit is a fair
// one.
constexpr off_t kAllocatedAhead = 32 << 20;

struct Published {
  std::uint64_t publishes = 0;
  std::uint64_t ns = 0;
  std::uint64_t cpu_ns = 0;
  std::vector<double> microseconds{};  // Of each publish.
};

Measures measures_of(const Plan& plan, Published& run) {
  Measures measures;
  const double messages = static_cast<double>(run.publishes * plan.batch);
  const double seconds = static_cast<double>(run.ns) / 1e9;
  measures.set("messages_per_s", messages / seconds);
  measures.set("us_per_message", seconds * 1e6 / messages);
  measures.set("cpu_us_per_message", static_cast<double>(run.cpu_ns) / 1e3 / messages);
  set_latencies(measures, run.microseconds);
  return measures;
}

Published append_raw(const Plan& plan, const std::string& folder, std::uint64_t for_ns) {
  const int file =
      ::open((folder + "/raw").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) fail("no file in " + folder);
  const std::string bytes(plan.size * plan.batch, 'x');
  Published run;
  const std::uint64_t cpu_begin = process_cpu_ns();
  const std::uint64_t begin = now_ns();
  std::uint64_t synced = begin;
  off_t size = ::lseek(file, 0, SEEK_END);
  off_t allocated = size;
  for (std::uint64_t now = begin; now - begin < for_ns;) {
    const std::uint64_t from = now;
    size += static_cast<off_t>(bytes.size());
    if (size > allocated) {
      // Where the file system cannot, it is written without.
      (void)::fallocate(file, FALLOC_FL_KEEP_SIZE, allocated, kAllocatedAhead);
      allocated += kAllocatedAhead;
    }
    if (::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      fail("the file takes no more");
    const bool is_due =
        plan.sync == "commit" || (plan.sync == "interval" && from - synced >= kSyncIntervalNs);
    if (is_due) {
      if (::fdatasync(file) != 0) fail("the file cannot be synced");
      synced = from;
    }
    now = now_ns();
    run.microseconds.push_back(static_cast<double>(now - from) / 1e3);
    ++run.publishes;
  }
  run.ns = now_ns() - begin;
  run.cpu_ns = process_cpu_ns() - cpu_begin;
  ::close(file);
  return run;
}

// Publishes until the time is over, so many at a time.
Published publish(Rig& rig, const Plan& plan, std::uint64_t for_ns) {
  Published run;
  std::vector<std::uint64_t> begun(1u << 20);
  std::vector<std::uint64_t> ended(begun.size());
  Gate gate(static_cast<std::int64_t>(plan.outstanding));
  const std::uint64_t cpu_begin = process_cpu_ns();
  const std::uint64_t begin = now_ns();
  while (now_ns() - begin < for_ns && run.publishes < begun.size()) {
    gate.enter(1);
    const std::uint64_t number = run.publishes++;
    begun[number] = now_ns();
    rig.broker().publish(kTopic, rig.bodies(0), [&gate, &ended, number](auto answer) {
      if (!answer) fail(answer.error().message);
      ended[number] = now_ns();
      gate.leave(1);
    });
  }
  gate.wait_for(static_cast<std::int64_t>(run.publishes));
  run.ns = now_ns() - begin;
  run.cpu_ns = process_cpu_ns() - cpu_begin;
  for (std::uint64_t i = 0; i < run.publishes; ++i)
    run.microseconds.push_back(static_cast<double>(ended[i] - begun[i]) / 1e3);
  return run;
}

}  // namespace

Measures run_publish(const Plan& plan, const std::string& folder) {
  const std::uint64_t for_ns = plan.milliseconds * 1'000'000;
  if (plan.contender == "raw") {
    append_raw(plan, folder, for_ns / 4);
    Published run = append_raw(plan, folder, for_ns);
    return measures_of(plan, run);
  }
  Rig rig(plan, folder);
  rig.make_names();
  publish(rig, plan, for_ns / 4);
  const BrokerStats before = rig.broker().stats();
  Published run = publish(rig, plan, for_ns);
  const BrokerStats after = rig.broker().stats();
  Measures measures = measures_of(plan, run);
  const auto commits = static_cast<double>(after.commits - before.commits);
  measures.set("publishes_per_commit",
               commits > 0 ? static_cast<double>(run.publishes) / commits : 0);
  return measures;
}

}  // namespace ordo::bench

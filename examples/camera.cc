// A camera and four workers that cannot all keep up: who matters more gets more.
//
// The frames go to four workers of different priority over one bus. Together they need more than
// there is: the person detector (critical) gets every frame, the others lose the more the less they
// matter, and the camera is never held up for longer than critical_timeout.
//
// On a terminal the table is redrawn in place; elsewhere it is printed a few times, as lines.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <ordo/bus.h>

namespace {

using namespace std::chrono_literals;

struct Image {
  int number = 0;
  std::vector<unsigned char> pixels = std::vector<unsigned char>(64 * 48);
};

// Stands for a model that computes on other hardware: takes its time and no processor.
void take(std::chrono::microseconds time) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, time, [] { return false; });
}

struct Worker {
  const char* name;
  ordo::Priority priority;
  std::chrono::microseconds time_per_frame;
};
constexpr Worker kWorkers[] = {
    {"person-detector", ordo::Priority::critical, 1ms},
    {"plate-reader", ordo::Priority::high, 4200us},
    {"pose-model", ordo::Priority::normal, 6ms},
    {"archive", ordo::Priority::best_effort, 6ms},
};
constexpr const char* kPriorities[] = {"critical", "high", "normal", "best_effort"};
constexpr const char* kHealth[] = {"unknown", "healthy", "degraded", "saturated"};

void print_table(const ordo::Bus<Image>& bus, bool redraw) {
  const ordo::BusStats stats = bus.stats();
  std::printf("frame %llu\n", static_cast<unsigned long long>(stats.published));
  for (const Worker& worker : kWorkers) {
    const ordo::SubscriberStats& part = stats.subscribers.at(worker.name);
    std::printf(
        "  %-16s %-12s %6llu sent %6llu dropped %3llu queued  %s\n", worker.name,
        kPriorities[static_cast<int>(part.priority)], static_cast<unsigned long long>(part.sent),
        static_cast<unsigned long long>(part.dropped), static_cast<unsigned long long>(part.queued),
        kHealth[static_cast<int>(part.health)]);
  }
  if (redraw) std::printf("\033[%zuA", std::size(kWorkers) + 1);
  std::fflush(stdout);
}

}  // namespace

int main() {
  constexpr int kFrames = 240;
  const bool terminal = isatty(STDOUT_FILENO) != 0;

  // A worker may be late once in a while without losing a person.
  ordo::Bus<Image> bus({.critical_timeout = 500ms});
  std::vector<ordo::Subscription<Image>> subscriptions;
  for (const Worker& worker : kWorkers)
    subscriptions.push_back(bus.subscribe(worker.name, worker.priority, {.capacity = 16}));

  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < std::size(kWorkers); ++i) {
    threads.emplace_back([&subscriptions, i] {
      while (auto image = subscriptions[i].pop())
        take(kWorkers[i].time_per_frame);
    });
  }

  for (int number = 1; number <= kFrames; ++number) {
    bus.publish(Image{number});
    if (number % (terminal ? 5 : 80) == 0) print_table(bus, terminal && number < kFrames);
    take(4ms);
  }
  bus.close();
  for (std::thread& thread : threads)
    thread.join();

  const ordo::BusStats stats = bus.stats();
  const bool exact = stats.sent + stats.dropped == stats.published * std::size(kWorkers);
  std::printf("%llu persons missed; every frame accounted for: %s\n",
              static_cast<unsigned long long>(stats.critical_dropped), exact ? "yes" : "no");
  return exact ? 0 : 1;
}

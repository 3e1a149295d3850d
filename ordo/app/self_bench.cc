#include "ordo/app/self_bench.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "ordo/adapters/store_rocksdb/open_broker.h"
#include "ordo/core/clock.h"

namespace ordo::app {
namespace {

using broker::NewMessage;
using std::chrono::nanoseconds;

constexpr std::chrono::seconds kConsumeTime{10};
constexpr std::chrono::milliseconds kStopsEvery{100};
constexpr std::size_t kKeys = 1'000;
constexpr std::uint64_t kBatchedMax = 1'000'000;
const std::string kTopic = "projects/bench/topics/bench";
const std::string kSubscription = "projects/bench/subscriptions/bench";

// A folder of its own, removed with it.
class TemporaryFolder {
 public:
  static Result<std::unique_ptr<TemporaryFolder>> make(const std::string& below) {
    std::error_code error;
    const std::filesystem::path place =
        below.empty() ? std::filesystem::temp_directory_path(error) : std::filesystem::path(below);
    std::string name = (place / "ordo-bench-XXXXXX").string();
    if (error || ::mkdtemp(name.data()) == nullptr) {
      return Error{ErrorCode::unavailable,
                   "cannot make a folder in '" + place.string() + "': name another with --dir"};
    }
    return std::make_unique<TemporaryFolder>(std::move(name));
  }
  explicit TemporaryFolder(std::string name) : name_(std::move(name)) {}
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(name_, ignored);
  }

  const std::string& name() const { return name_; }

 private:
  const std::string name_;
};

Error stopped() {
  return {ErrorCode::cancelled, "stopped before the end"};
}

double per_second(std::uint64_t count, nanoseconds time) {
  return static_cast<double>(count) / std::max(std::chrono::duration<double>(time).count(), 1e-9);
}

Status measure_one_by_one(Broker& broker, const BenchOptions& options, BenchReport& report) {
  Clock& clock = system_clock();
  const std::vector<NewMessage> one{{.data = std::string(options.message_bytes, 'x')}};
  const TimePoint began = clock.now();
  TimePoint now = began;
  while (now - began < options.part_time) {
    if (options.stops()) return stopped();
    const auto ids = broker.publish(kTopic, one);
    if (!ids) return ids.error();
    const TimePoint after = clock.now();
    report.publish_latency.record(static_cast<std::uint64_t>((after - now).count()));
    now = after;
  }
  report.publishes_per_second = per_second(report.publish_latency.count(), now - began);
  return {};
}

// The number of each message of a key is in its data, so that the order can be checked.
Status measure_batches(Broker& broker, const BenchOptions& options, BenchReport& report) {
  Clock& clock = system_clock();
  std::atomic<std::uint64_t> failed{0};
  Result<Publisher> publisher = broker.publisher(kTopic);
  if (!publisher) return publisher.error();
  const TimePoint began = clock.now();
  std::uint64_t sent = 0;
  while (sent < kBatchedMax && (sent % 1'000 != 0 || clock.now() - began < options.part_time)) {
    if (sent % 1'000 == 0 && options.stops()) return stopped();
    NewMessage message;
    message.ordering_key = "key-" + std::to_string(sent / 100 % kKeys);
    message.data = std::to_string(sent);
    message.data.resize(std::max(message.data.size(), options.message_bytes), ' ');
    publisher->publish(std::move(message), [&failed](const Result<broker::MessageId>& id) {
      if (!id) failed.fetch_add(1);
    });
    ++sent;
  }
  if (!publisher->close(clock.now() + kConsumeTime) || failed > 0)
    return Error{ErrorCode::unavailable, "messages could not be stored in time"};
  report.batched = sent;
  report.batched_per_second = per_second(sent, clock.now() - began);
  return {};
}

Status measure_consuming(Broker& broker, const BenchOptions& options, BenchReport& report) {
  Clock& clock = system_clock();
  const std::uint64_t wanted = report.batched + report.publish_latency.count();
  std::mutex mutex;  // Guards the three below.
  std::condition_variable changed;
  std::map<std::string, std::uint64_t, std::less<>> last;
  std::uint64_t consumed = 0;
  std::uint64_t misordered = 0;
  const TimePoint began = clock.now();
  SubscriberOptions settings;
  settings.handlers = 2;
  settings.outstanding_messages_max = 10'000;
  Result<Subscriber> subscriber = broker.subscribe(
      kSubscription,
      [&](const ReceivedMessage& message) {
        const std::lock_guard lock(mutex);
        if (!message.key().empty()) {
          const std::uint64_t number =
              std::strtoull(std::string(message.data().substr(0, 20)).c_str(), nullptr, 10) + 1;
          auto found = last.find(message.key());
          if (found == last.end()) found = last.emplace(std::string(message.key()), 0).first;
          if (number <= found->second) ++misordered;
          found->second = number;
        }
        if (++consumed == wanted) changed.notify_all();
        return HandlerAnswer::ack;
      },
      settings);
  if (!subscriber) return subscriber.error();
  {
    std::unique_lock lock(mutex);
    while (consumed < wanted && clock.now() < began + kConsumeTime && !options.stops())
      clock.wait_until(lock, changed, clock.now() + kStopsEvery);
    report.consumed = consumed;
    report.misordered = misordered;
    report.consumed_per_second = per_second(consumed, clock.now() - began);
  }
  subscriber->close(CloseHow::nack, clock.now() + kConsumeTime);
  return options.stops() ? stopped() : Status();
}

}  // namespace

Result<BenchReport> run_self_bench(const BenchOptions& options) {
  Result<std::unique_ptr<TemporaryFolder>> folder = TemporaryFolder::make(options.folder);
  if (!folder) return folder.error();
  BenchReport report;
  const TimePoint began = system_clock().now();
  Result<std::unique_ptr<Broker>> opened = open_broker((*folder)->name() + "/data");
  if (!opened) return opened.error();
  Broker& broker = **opened;
  report.open_time = system_clock().now() - began;
  if (const auto topic = broker.create_topic({.name = kTopic}); !topic) return topic.error();
  const auto subscription = broker.create_subscription(
      {.name = kSubscription, .topic = kTopic, .enable_message_ordering = true});
  if (!subscription) return subscription.error();
  if (Status done = measure_one_by_one(broker, options, report); !done) return done.error();
  if (Status done = measure_batches(broker, options, report); !done) return done.error();
  if (Status done = measure_consuming(broker, options, report); !done) return done.error();
  broker.close(system_clock().now() + kConsumeTime);
  return report;
}

std::string bench_picture(const Histogram& latency, std::size_t rows) {
  constexpr std::size_t kWidth = 50;
  if (latency.count() == 0 || rows == 0) return {};
  // From the fastest to what all but one in a thousand keep to; the rest is in the last row.
  const std::uint64_t low = latency.min();
  const std::uint64_t high = std::max(latency.quantile(0.999), low + 1);
  const std::uint64_t step = std::max<std::uint64_t>((high - low) / rows, 1);
  std::vector<std::uint64_t> counts(rows, 0);
  latency.for_each_bucket([&](std::uint64_t lowest, std::uint64_t highest, std::uint64_t count) {
    const std::uint64_t middle = lowest / 2 + highest / 2;
    const std::uint64_t row = middle > low ? (middle - low) / step : 0;
    counts[std::min<std::size_t>(static_cast<std::size_t>(row), rows - 1)] += count;
  });
  const std::uint64_t most = *std::max_element(counts.begin(), counts.end());
  std::string picture;
  for (std::size_t row = 0; row < rows; ++row) {
    char text[64];
    (void)std::snprintf(text, sizeof text, "  %s%8.0f us  ", row + 1 == rows ? ">" : " ",
                        static_cast<double>(low + row * step) / 1e3);
    const auto width = static_cast<std::size_t>((counts[row] * kWidth + most - 1) / most);
    picture.append(text).append(width, '#').append(width > 0 ? " " : "");
    picture.append(std::to_string(counts[row])).append("\n");
  }
  return picture;
}

}  // namespace ordo::app

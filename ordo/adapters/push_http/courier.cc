#include "ordo/adapters/push_http/courier.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "ordo/adapters/push_http/push_line.h"
#include "ordo/broker/fence_label.h"
#include "ordo/core/log.h"
#include "ordo/runtime/threads.h"

namespace ordo::push_http {
namespace {

using broker::SubscriptionConfig;
using LinePtr = std::shared_ptr<PushLine>;

// A stream that the broker refused, for want of room, is asked for again after this.
constexpr std::chrono::seconds kOpenPause{1};
// What partitions take to let go of a stream is far less.
constexpr std::chrono::seconds kQuietTime{5};

bool is_pushed(const SubscriptionConfig& config) {
  return config.push.has_value() && !config.detached;
}

}  // namespace

class Courier::Rounds {
 public:
  Rounds(Broker& broker, const CourierOptions& options)
      : broker_(broker),
        context_(std::make_shared<boost::asio::io_context>(1)),
        work_(boost::asio::make_work_guard(*context_)),
        poster_(*context_, options.poster),
        office_{context_,       poster_,        counters_,
                system_clock(), options.window, [this](const LinePtr& line) { line_ended(line); }},
        again_(*context_) {}
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  // NOLINTNEXTLINE(bugprone-exception-escape): without memory to end a thread, the process ends.
  ~Rounds() { close(TimePoint::min()); }

  Status start() {
    thread_ = Thread("ordo-push", [this](const std::stop_token&) { context_->run(); });
    Result<broker::SubscriptionWatch> watch = broker_.watch_subscriptions(
        [this](const std::string& name, const SubscriptionConfig* config) {
          std::optional<SubscriptionConfig> now;
          if (config != nullptr && is_pushed(*config)) now = *config;
          boost::asio::post(*context_, [this, name, now = std::move(now)] { look_at(name, now); });
        });
    if (!watch) return std::move(watch).error();
    watch_ = std::move(*watch);
    return {};
  }

  bool close(TimePoint deadline) {
    if (!thread_.joinable()) return was_complete_;
    watch_ = {};  // From here on only those that are there.
    boost::asio::post(*context_, [this] { leave_all(); });
    was_complete_ = wait_until_empty(deadline);
    if (!was_complete_) {
      boost::asio::post(*context_, [this] { poster_.abort_all(); });
      (void)wait_until_empty(system_clock().now() + kQuietTime);
    }
    context_->stop();
    thread_.join();
    return was_complete_;
  }

  CourierStats stats() const {
    CourierStats stats;
    stats.subscriptions = line_count_.load(std::memory_order_relaxed);
    stats.connections = poster_.connection_count();
    stats.waiting = poster_.waiting_count();
    stats.accepted = counters_.accepted.value();
    stats.refused = counters_.refused.value();
    stats.timed_out = counters_.timed_out.value();
    stats.unreachable = counters_.unreachable.value();
    stats.broken = counters_.broken.value();
    stats.given_back = counters_.given_back.value();
    return stats;
  }

 private:
  bool wait_until_empty(TimePoint deadline) {
    std::unique_lock lock(mutex_);
    while (!is_empty_ && !system_clock().wait_until(lock, emptied_, deadline)) {
    }
    return is_empty_;
  }

  // ------------------------------------------------------------------- the courier's own thread

  // `config`: of a subscription that is to be pushed.
  void look_at(const std::string& name, const std::optional<SubscriptionConfig>& config) {
    const auto found = lines_.find(name);
    unopened_.erase(name);
    if (!config) {
      if (found != lines_.end()) dismiss(found->second);
      return;
    }
    const std::optional<PushLine::Aim> aim = aim_of(*config);
    if (!aim) return;
    if (found != lines_.end()) {
      found->second->aim_at(*aim);
    } else {
      open(name, *config, *aim);
    }
  }

  static std::optional<PushLine::Aim> aim_of(const SubscriptionConfig& config) {
    Result<broker::PushEndpoint> endpoint = broker::PushEndpoint::parse(config.push->endpoint);
    if (!endpoint) {
      log_line("ordo: " + config.name + " is not pushed: " + endpoint.error().message);
      return std::nullopt;
    }
    PushTarget target{std::move(*endpoint), config.push->form, config.name,
                      config.dead_letter_policy.has_value(), broker::shows_fence(config.labels)};
    return PushLine::Aim{std::make_shared<const PushTarget>(std::move(target)),
                         config.ack_deadline};
  }

  void open(const std::string& name, const SubscriptionConfig& config, const PushLine::Aim& aim) {
    const auto line = std::make_shared<PushLine>(name, aim, office_);
    const Status opened = line->open(broker_);
    if (opened) {
      lines_[name] = line;
      line_count_.store(lines_.size(), std::memory_order_relaxed);
    } else if (opened.error().code == ErrorCode::resource_exhausted) {
      unopened_[name] = config;
      try_again_later();
    }
    // Else it has gone or changed again: that will be said next.
  }

  void try_again_later() {
    if (unopened_.size() > 1) return;
    again_.expires_after(kOpenPause);
    again_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      for (const auto& [name, config] : std::exchange(unopened_, {}))
        look_at(name, config);
    });
  }

  void dismiss(LinePtr line) {
    lines_.erase(line->name());
    line->leave();
    leaving_.insert(std::move(line));
    line_count_.store(lines_.size(), std::memory_order_relaxed);
  }

  void line_ended(const LinePtr& line) {
    leaving_.erase(line);
    const auto found = lines_.find(line->name());
    if (found != lines_.end() && found->second == line) lines_.erase(found);
    line_count_.store(lines_.size(), std::memory_order_relaxed);
    tell_if_empty();
  }

  void leave_all() {
    is_closing_ = true;
    again_.cancel();
    unopened_.clear();
    while (!lines_.empty())
      dismiss(lines_.begin()->second);
    tell_if_empty();
  }

  void tell_if_empty() {
    if (!is_closing_ || !leaving_.empty()) return;
    const std::lock_guard lock(mutex_);
    is_empty_ = true;
    emptied_.notify_all();
  }

  Broker& broker_;
  const std::shared_ptr<boost::asio::io_context> context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  PushCounters counters_;
  Poster poster_;
  const PushLine::Office office_;

  // The courier's own thread.
  std::map<std::string, LinePtr> lines_;
  std::set<LinePtr> leaving_;
  std::map<std::string, SubscriptionConfig> unopened_;  // The broker had no room for their stream.
  boost::asio::steady_timer again_;
  bool is_closing_ = false;

  std::atomic<std::size_t> line_count_{0};
  std::mutex mutex_;       // Guards the one below.
  bool is_empty_ = false;  // Closing, and nothing is under way.
  std::condition_variable emptied_;

  // Of the one that made it.
  broker::SubscriptionWatch watch_;
  bool was_complete_ = true;
  Thread thread_;
};

Courier::Courier(Broker& broker, const CourierOptions& options)
    : rounds_(std::make_unique<Rounds>(broker, options)) {}

Courier::~Courier() = default;

Status Courier::start() {
  return rounds_->start();
}

bool Courier::close(TimePoint deadline) {
  return rounds_->close(deadline);
}

CourierStats Courier::stats() const {
  return rounds_->stats();
}

}  // namespace ordo::push_http

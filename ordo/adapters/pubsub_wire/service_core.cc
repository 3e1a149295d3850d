#include "ordo/adapters/pubsub_wire/service_core.h"

#include <utility>
#include <vector>

namespace ordo::pubsub_wire {

Error closed_error() {
  return {ErrorCode::unavailable, "The server is shutting down."};
}

ServiceCore::ServiceCore(Broker& broker, const ServiceOptions& options)
    : broker_(broker),
      options_(options),
      clock_(options.clock != nullptr ? *options.clock : system_clock()),
      loop_({.name = "ordo-wire", .tasks_max = options.catalog_calls_max, .clock = &clock_}) {}

void ServiceCore::run(const AnswerPtr& answer, std::function<void()> work) {
  // A task that is dropped answers by its end.
  struct Promise {
    AnswerPtr answer;

    explicit Promise(AnswerPtr to) : answer(std::move(to)) {}
    Promise(Promise&&) noexcept = default;
    Promise& operator=(Promise&&) = delete;
    ~Promise() {
      if (answer) answer->fail({ErrorCode::unavailable, "The server is busy or shuts down."});
    }
  };
  Task task([promise = Promise(answer), work = std::move(work)]() mutable {
    const AnswerPtr kept = std::exchange(promise.answer, nullptr);
    if (!kept->is_cancelled()) work();
  });
  (void)loop_.try_post(std::move(task));
}

bool ServiceCore::repeat(std::chrono::nanoseconds interval, std::function<bool()> work) {
  return loop_.try_post(
      Task([this, interval, work = std::move(work)] { work_again(interval, work); }));
}

void ServiceCore::work_again(std::chrono::nanoseconds interval, const std::function<bool()>& work) {
  if (!work()) return;
  (void)loop_.run_at(loop_.now() + interval,
                     Task([this, interval, work] { work_again(interval, work); }));
}

bool ServiceCore::add(const std::shared_ptr<OpenCall>& call) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return false;
  open_.emplace(call.get(), call);
  return true;
}

void ServiceCore::remove(const OpenCall* call) {
  const std::lock_guard lock(mutex_);
  open_.erase(call);
}

bool ServiceCore::begin_settling(std::size_t count) {
  const std::size_t before = settling_.fetch_add(count, std::memory_order_relaxed);
  if (before + count <= options_.settling_ids_max || before == 0) return true;
  end_settling(count);
  return false;
}

void ServiceCore::close() {
  std::vector<std::shared_ptr<OpenCall>> open;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    for (const auto& [key, weak] : open_) {
      if (auto call = weak.lock()) open.push_back(std::move(call));
    }
    open_.clear();
  }
  for (const auto& call : open)
    call->end(closed_error());
  (void)loop_.stop(TimePoint::min());
}

bool ServiceCore::is_closed() const {
  const std::lock_guard lock(mutex_);
  return is_closed_;
}

}  // namespace ordo::pubsub_wire

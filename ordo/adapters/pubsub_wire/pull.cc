// Pull: waits for the first message as long as the client does.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "ordo/adapters/pubsub_wire/catalog_call.h"
#include "ordo/adapters/pubsub_wire/groups.h"
#include "ordo/adapters/pubsub_wire/pull_response.h"
#include "ordo/adapters/pubsub_wire/resources.h"
#include "ordo/broker/resource_name.h"

namespace ordo::pubsub_wire {
namespace {

constexpr std::size_t kMessagesMax = 1'000;
constexpr std::size_t kBytesMax = 3u << 20;  // Clients refuse answers above 4 MB unless told.
constexpr std::chrono::seconds kWaitMax{90};
// What is left of the client's patience, for the way back.
constexpr std::chrono::seconds kWayBack{1};

// The pull behind a call; ended when the service closes.
class PullCall final : public OpenCall, public std::enable_shared_from_this<PullCall> {
 public:
  PullCall(CorePtr core, AnswerPtr answer) : core_(std::move(core)), answer_(std::move(answer)) {}
  ~PullCall() override { core_->remove(this); }

  void start(const v1::PullRequest& request) {
    // The broker keeps this while the pull waits, and this keeps the answer.
    answer_->on_cancelled([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->cancel();
    });
    if (Status started = try_start(request); !started) answer_->fail(started.error());
  }

  // Whoever asked has gone: what was delivered is for others.
  void cancel() {
    std::optional<Pull> pull;
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
      std::swap(pull, pull_);
    }
    if (pull) pull->cancel();
  }

  void end(const Error& reason) override {
    answer_->fail(reason);
    cancel();
  }

 private:
  Status try_start(const v1::PullRequest& request) {
    const auto name =
        broker::ResourceName::parse(request.subscription(), broker::Collection::subscriptions);
    if (!name) return name.error();
    if (request.max_messages() <= 0)
      return Error{ErrorCode::invalid_argument, "No max_messages specified"};
    PullOptions options;
    options.messages_max = std::min(static_cast<std::size_t>(request.max_messages()), kMessagesMax);
    options.bytes_max = kBytesMax;
    subscription_ = request.subscription();
    options.wait = request.return_immediately() ? std::chrono::nanoseconds(0) : wait();
    if (!core_->add(shared_from_this())) return closed_error();
    Result<Pull> pull = core_->broker().start_pull(
        subscription_, options,
        [self = shared_from_this()](const Result<std::vector<ReceivedMessage>>& got) {
          self->finish(got);
        });
    if (!pull) return std::move(pull).error();
    bool is_over = false;
    {
      const std::lock_guard lock(mutex_);
      is_over = is_over_;
      if (!is_over) pull_ = *pull;
    }
    if (is_over) pull->cancel();
    return {};
  }

  std::chrono::nanoseconds wait() const {
    const TimePoint now = core_->clock().now();
    if (answer_->deadline() == TimePoint::max()) return kWaitMax;
    return std::clamp<std::chrono::nanoseconds>(answer_->deadline() - now - kWayBack,
                                                std::chrono::nanoseconds(0), kWaitMax);
  }

  void finish(const Result<std::vector<ReceivedMessage>>& got) {
    bool is_over = false;
    {
      const std::lock_guard lock(mutex_);
      pull_.reset();
      is_over = is_over_;
    }
    if (is_over || answer_->is_cancelled()) return give_back(got);
    if (!got) return answer_->fail(got.error());
    const auto settings = core_->broker().settings_of(subscription_);
    PullResponse response(core_->ack_ids(), settings && broker::shows_fence((*settings)->labels));
    for (const ReceivedMessage& message : *got)
      response.add(message.delivery());
    answer_->reply(response.take());
  }

  // It ended by itself just before its client went: what it got is for others, too.
  void give_back(const Result<std::vector<ReceivedMessage>>& got) const {
    if (!got || got->empty()) return;
    std::vector<broker::AckId> ids;
    ids.reserve(got->size());
    for (const ReceivedMessage& message : *got)
      ids.push_back(message.ack_id());
    (void)core_->broker().give_back(subscription_, std::move(ids));
  }

  const CorePtr core_;
  const AnswerPtr answer_;
  std::string subscription_;  // Set before the pull is started.

  std::mutex mutex_;  // Guards the two below.
  std::optional<Pull> pull_;
  bool is_over_ = false;
};

void pull(const CorePtr& core, const AnswerPtr& answer, std::string_view bytes) {
  v1::PullRequest request;
  if (!parse(request, bytes)) return answer->fail(malformed_request());
  std::make_shared<PullCall>(core, answer)->start(request);
}

}  // namespace

void add_pull_call(Methods& methods, const CorePtr& core) {
  methods.add_waiting(
      "/google.pubsub.v1.Subscriber/Pull",
      [core](const AnswerPtr& answer, std::string_view bytes) { pull(core, answer, bytes); });
}

}  // namespace ordo::pubsub_wire

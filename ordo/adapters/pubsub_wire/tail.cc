// ordo.operate.v1.Operator/Tail: the messages of a topic as they are stored.
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <ordo/operate/v1/operator.pb.h>

#include "ordo/adapters/pubsub_wire/catalog_call.h"
#include "ordo/adapters/pubsub_wire/groups.h"
#include "ordo/broker/filter.h"
#include "ordo/broker/message_codec.h"
#include "ordo/broker/resource_name.h"
#include "ordo/broker/wire_bytes.h"

namespace ordo::pubsub_wire {
namespace {

using ordo::operate::v1::TailRequest;

// A live subscription has no voice: it is looked at so often.
constexpr std::chrono::milliseconds kLookTime{10};
constexpr int kLooksBetweenChecks = 50;
constexpr std::size_t kWaitingMax = 8'192;
constexpr std::size_t kResponseMessagesMax = 1'000;
constexpr std::size_t kResponseBytesMax = std::size_t{1} << 20;
// Of TailResponse.
constexpr std::uint32_t kMessages = 1;
constexpr std::uint32_t kMissed = 2;

// One call. Opened and ended on its I/O thread; look() is called by the service's thread.
class Tail final : public OpenCall, public std::enable_shared_from_this<Tail> {
 public:
  Tail(CorePtr core, http2::CallPtr call) : core_(std::move(core)), call_(std::move(call)) {}
  ~Tail() override { core_->remove(this); }

  Status open(const TailRequest& request) {
    topic_ = request.topic();
    key_ = request.ordering_key();
    if (const auto named = broker::ResourceName::parse(topic_, broker::Collection::topics); !named)
      return named.error();
    if (!request.filter().empty()) {
      Result<broker::Filter> filter = broker::Filter::parse(request.filter());
      if (!filter) return std::move(filter).error();
      filter_ = std::move(*filter);
    }
    name_ = "tail-" + std::to_string(core_->next_number());
    Result<broker::LiveSubscription> live = core_->broker().subscribe_live(
        topic_, name_, Priority::normal,
        {.capacity = kWaitingMax, .overflow = Overflow::drop_oldest});
    if (!live) return std::move(live).error();
    live_ = std::move(*live);
    call_->send_headers({});
    if (!core_->add(shared_from_this())) return closed_error();
    const bool is_taken = core_->repeat(kLookTime, [weak = weak_from_this()] {
      const auto self = weak.lock();
      return self && self->look();
    });
    if (!is_taken) return closed_error();
    return {};
  }

  void leave() { is_over_.store(true, std::memory_order_relaxed); }
  void end(const Error& reason) override {
    leave();
    call_->finish(reason);
  }

 private:
  // False: it is over.
  bool look() {
    if (is_over_.load(std::memory_order_relaxed)) return false;
    if (++looks_ % kLooksBetweenChecks == 0) {
      const Result<BusStats> stats = core_->broker().live_stats(topic_);
      const bool is_known = stats && stats->subscribers.contains(name_);
      if (!is_known) {  // The topic is gone; perhaps there is another of its name.
        end(stats ? Error{ErrorCode::not_found, "The topic was deleted."} : stats.error());
        return false;
      }
    }
    while (call_->wants_more() && send_some()) {
    }
    return true;
  }

  // False: nothing waits any more.
  bool send_some() {
    std::string response;
    std::size_t count = 0;
    bool is_more = true;
    while (count < kResponseMessagesMax && response.size() < kResponseBytesMax) {
      const auto frame = live_.try_pop();
      if (!frame) {
        is_more = false;
        break;
      }
      const broker::Message& message = **frame;
      if (!key_.empty() && message.key() != key_) continue;
      if (filter_ && !filter_->matches(message)) continue;
      broker::put_tag(response, kMessages, broker::WireType::bytes);
      broker::put_varint(response, broker::wire_size(message));
      broker::append_wire(response, message);
      ++count;
    }
    if (count == 0) return false;
    if (const std::uint64_t missed = newly_missed(); missed > 0)
      broker::put_varint_field(response, kMissed, missed);
    if (!call_->send(http2::Slice::of(std::move(response))))
      unsent_ += count;  // Others of the connection were faster.
    return is_more;
  }

  std::uint64_t newly_missed() {
    std::uint64_t missed = std::exchange(unsent_, 0);
    const Result<BusStats> stats = core_->broker().live_stats(topic_);
    if (!stats) return missed;
    const auto own = stats->subscribers.find(name_);
    if (own == stats->subscribers.end()) return missed;
    return missed + own->second.dropped - std::exchange(missed_, own->second.dropped);
  }

  const CorePtr core_;
  const http2::CallPtr call_;
  std::string topic_;
  std::string key_;
  std::string name_;
  std::optional<broker::Filter> filter_;
  broker::LiveSubscription live_;
  std::uint64_t missed_ = 0;
  std::uint64_t unsent_ = 0;
  int looks_ = 0;
  std::atomic<bool> is_over_{false};
};

class TailHandler final : public http2::CallHandler {
 public:
  TailHandler(CorePtr core, http2::CallPtr call) : core_(std::move(core)), call_(std::move(call)) {}
  ~TailHandler() override {
    if (tail_) tail_->leave();
  }

  void on_message(std::string_view bytes) override {
    TailRequest request;
    if (tail_ || !parse(request, bytes)) return call_->finish(malformed_request());
    tail_ = std::make_shared<Tail>(core_, call_);
    if (Status opened = tail_->open(request); !opened) tail_->end(opened.error());
  }
  void on_half_close() override {
    if (!tail_) call_->finish(malformed_request());
  }
  void on_cancelled() override {
    if (tail_) tail_->leave();
  }

 private:
  const CorePtr core_;
  const http2::CallPtr call_;
  std::shared_ptr<Tail> tail_;
};

}  // namespace

void add_tail_call(http2::Routes& routes, const CorePtr& core) {
  routes.streaming("/ordo.operate.v1.Operator/Tail", [core](const http2::CallPtr& call) {
    return std::make_unique<TailHandler>(core, call);
  });
}

}  // namespace ordo::pubsub_wire

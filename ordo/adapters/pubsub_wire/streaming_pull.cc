// StreamingPull: what its requests may say, and when.
#include <chrono>
#include <memory>
#include <utility>

#include "ordo/adapters/pubsub_wire/catalog_call.h"
#include "ordo/adapters/pubsub_wire/groups.h"
#include "ordo/adapters/pubsub_wire/pull_stream.h"
#include "ordo/broker/resource_name.h"

namespace ordo::pubsub_wire {
namespace {

constexpr std::int32_t kDeadlineSecondsMin = 10;
constexpr std::int32_t kDeadlineSecondsMax = 600;

Error invalid(const char* message) {
  return {ErrorCode::invalid_argument, message};
}

Status check_deadline(std::int32_t seconds) {
  if (seconds >= kDeadlineSecondsMin && seconds <= kDeadlineSecondsMax) return {};
  return invalid("stream_ack_deadline_seconds must be between 10 and 600 seconds");
}

Status check_lists(const StreamRequest& request) {
  if (request.modify_deadline_ack_ids.size() != request.modify_deadline_seconds.size())
    return invalid("ack IDs and deadlines must have the same size");
  return {};
}

Status check_first(const StreamRequest& request) {
  if (request.subscription.empty()) return invalid("first message must set subscription");
  if (request.stream_ack_deadline_seconds == 0)
    return invalid("first message must set stream_ack_deadline_seconds");
  if (Status checked = check_deadline(request.stream_ack_deadline_seconds); !checked)
    return checked;
  const auto name =
      broker::ResourceName::parse(request.subscription, broker::Collection::subscriptions);
  if (!name) return name.error();
  return check_lists(request);
}

Status check_later(const StreamRequest& request) {
  if (!request.subscription.empty())
    return invalid("subscription may only be set in first message");
  if (request.max_outstanding_messages != 0 || request.max_outstanding_bytes != 0)
    return invalid(
        "max_outstanding_messages and max_outstanding_bytes may only be set in first "
        "message");
  if (request.protocol_version != 0)
    return invalid("protocol_version may only be set in first message");
  if (request.stream_ack_deadline_seconds != 0) {
    if (Status checked = check_deadline(request.stream_ack_deadline_seconds); !checked)
      return checked;
  }
  return check_lists(request);
}

class StreamingPullHandler final : public http2::CallHandler {
 public:
  StreamingPullHandler(const CorePtr& core, const http2::CallPtr& call)
      : call_(call),
        stream_(std::make_shared<PullStream>(core, call)) {}
  ~StreamingPullHandler() override { stream_->leave(); }

  void on_message(std::string_view bytes) override {
    if (is_over_) return;
    if (Status taken = take(bytes); !taken) end(taken.error());
  }

  void on_half_close() override {
    if (std::exchange(is_over_, true)) return;
    stream_->leave();
    if (!is_open_) return call_->finish(invalid("first message must set subscription"));
    call_->finish(0);
  }

  void on_writable() override { stream_->pump(); }
  void on_round_end() override { stream_->end_round(); }
  void on_cancelled() override { stream_->leave(); }

 private:
  Status take(std::string_view bytes) {
    const std::optional<StreamRequest> request = read_streaming_pull(bytes);
    if (!request) return malformed_request();
    if (Status checked = is_open_ ? check_later(*request) : check_first(*request); !checked)
      return checked;
    const bool is_first = !std::exchange(is_open_, true);
    if (is_first) {
      answers_pings_ = request->protocol_version >= 1;
      if (Status opened = stream_->open(*request); !opened) return opened;
    } else if (request->stream_ack_deadline_seconds != 0) {
      stream_->set_deadline(std::chrono::seconds(request->stream_ack_deadline_seconds));
    }
    if (!is_first && request->is_ping()) {
      if (answers_pings_) stream_->owe_answer();
      return {};
    }
    return stream_->settle(*request);
  }

  void end(const Error& error) {
    is_over_ = true;
    stream_->end(error);
    stream_->leave();
  }

  const http2::CallPtr call_;
  const std::shared_ptr<PullStream> stream_;
  bool is_open_ = false;
  bool is_over_ = false;
  bool answers_pings_ = false;  // The client asks for it: protocol_version.
};

}  // namespace

void add_streaming_pull_call(http2::Routes& routes, const CorePtr& core) {
  routes.streaming("/google.pubsub.v1.Subscriber/StreamingPull",
                   [core](const http2::CallPtr& call) {
                     return std::make_unique<StreamingPullHandler>(core, call);
                   });
}

}  // namespace ordo::pubsub_wire

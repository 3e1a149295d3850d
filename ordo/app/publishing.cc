#include "ordo/app/publishing.h"

#include <utility>

namespace ordo::app {

Publishing::Publishing(pubsub_client::Client& client, std::string topic, OnStored on_stored)
    : client_(client),
      topic_(std::move(topic)),
      on_stored_(std::move(on_stored)) {}

Status Publishing::add(std::uint64_t line, pubsub_client::OutgoingMessage message) {
  const std::string key = message.key;
  waiting_bytes_ += message.data.size();
  ++waiting_;
  Lane& lane = lanes_[key];
  lane.waiting.emplace_back(line, std::move(message));
  queue(key, lane);
  if (lane.waiting.size() >= kBatchMax) send_waiting();
  while (waiting_ >= kWaitingMax || waiting_bytes_ >= kWaitingBytesMax) {
    send_waiting();
    if (Status settled = settle_one(); !settled) return settled;
  }
  return {};
}

// Without a key several requests may be under way; of a key one.
void Publishing::queue(const std::string& key, Lane& lane) {
  if (lane.is_queued || lane.waiting.empty()) return;
  if (!key.empty() && lane.under_way > 0) return;
  lane.is_queued = true;
  ready_.push_back(key);
}

void Publishing::send_waiting() {
  while (!ready_.empty() && requests_.size() < kRequestsMax) {
    const std::string key = std::move(ready_.front());
    ready_.pop_front();
    Lane& lane = lanes_[key];
    lane.is_queued = false;
    send_from(key, lane);
    queue(key, lane);
  }
}

void Publishing::send_from(const std::string& key, Lane& lane) {
  std::vector<pubsub_client::OutgoingMessage> batch;
  Request request{key, {}, {}};
  std::size_t bytes = 0;
  while (!lane.waiting.empty() && batch.size() < kBatchMax) {
    auto& [line, message] = lane.waiting.front();
    const std::size_t size = message.data.size();
    if (!batch.empty() && bytes + size > kBatchBytesMax) break;
    bytes += size;
    request.lines.push_back(line);
    batch.push_back(std::move(message));
    lane.waiting.pop_front();
  }
  waiting_ -= batch.size();
  waiting_bytes_ -= bytes;
  ++lane.under_way;
  request.call = client_.begin_publish(topic_, batch);
  requests_.push_back(std::move(request));
}

Status Publishing::settle_one() {
  if (requests_.empty()) return {};
  Request request = std::move(requests_.front());
  requests_.pop_front();
  const Result<std::vector<std::string>> ids = client_.end_publish(request.call);
  if (!ids) {
    const bool is_one = request.lines.size() == 1;
    const std::string where = is_one ? "line " + std::to_string(request.lines.front())
                                     : "lines " + std::to_string(request.lines.front()) + " to " +
                                           std::to_string(request.lines.back()) +
                                           (request.key.empty() ? "" : " with the same key");
    return Error{ids.error().code, where + ": " + ids.error().message};
  }
  published_ += ids->size();
  on_stored_(request.lines, *ids);
  Lane& lane = lanes_[request.key];
  --lane.under_way;
  queue(request.key, lane);
  if (lane.under_way == 0 && lane.waiting.empty()) lanes_.erase(request.key);
  return {};
}

Status Publishing::finish() {
  for (send_waiting(); is_under_way(); send_waiting()) {
    if (Status settled = settle_one(); !settled) return settled;
  }
  return {};
}

}  // namespace ordo::app

// RabbitMQ through librabbitmq: a durable quorum queue (synced before it confirms), persistent
// messages, publisher confirms, acknowledgements by hand.
//
// RabbitMQ has no order by key: with keys there are `lanes` queues, each with one active consumer
// that has one message in flight.
#include <algorithm>
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "bench/wire/load.h"
#include "bench/wire/system.h"

namespace ordo::bench {
namespace {

constexpr std::uint16_t kPrefetch = 2'000;

amqp_bytes_t bytes_of(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};  // It does not write.
}

timeval time_of(std::uint64_t wait_ns) {
  return {static_cast<time_t>(wait_ns / 1'000'000'000),
          static_cast<suseconds_t>(wait_ns % 1'000'000'000 / 1000)};
}

std::string queue_of(std::size_t lane) {
  return "wire-" + std::to_string(lane);
}

void check(const amqp_rpc_reply_t& reply, const char* what) {
  if (reply.reply_type == AMQP_RESPONSE_NORMAL) return;
  std::string why;
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION) {
    why = amqp_error_string2(reply.library_error);
  } else if (reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto& closed = *static_cast<const amqp_channel_close_t*>(reply.reply.decoded);
    why.assign(static_cast<const char*>(closed.reply_text.bytes), closed.reply_text.len);
  }
  give_up(std::string(what) + ": " + why);
}

// Channels 1 to `channels` are open.
class Connection {
 public:
  Connection(std::uint16_t port, std::size_t channels) : state_(amqp_new_connection()) {
    if (amqp_socket_open(amqp_tcp_socket_new(state_), "127.0.0.1", port) != AMQP_STATUS_OK)
      give_up("cannot connect to rabbitmq");
    constexpr int kChannelsMax = 2047;
    constexpr int kFrameMax = 131'072;
    check(amqp_login(state_, "/", kChannelsMax, kFrameMax, 0, AMQP_SASL_METHOD_PLAIN, "guest",
                     "guest"),
          "login");
    for (std::size_t channel = 1; channel <= channels; ++channel) {
      amqp_channel_open(state_, static_cast<amqp_channel_t>(channel));
      check("channel");
    }
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    amqp_connection_close(state_, AMQP_REPLY_SUCCESS);
    amqp_destroy_connection(state_);
  }

  amqp_connection_state_t state() const { return state_; }
  // Of the last thing that was asked.
  void check(const char* what) const { bench::check(amqp_get_rpc_reply(state_), what); }
  static void check(const amqp_rpc_reply_t& reply, const char* what) { bench::check(reply, what); }

 private:
  amqp_connection_state_t state_;
};

class RabbitPublisher final : public Publisher {
 public:
  explicit RabbitPublisher(const WirePlan& plan) : lanes_(plan.lanes), connection_(plan.port, 1) {
    amqp_confirm_select(connection_.state(), 1);
    connection_.check("confirm");
    properties_._flags = AMQP_BASIC_DELIVERY_MODE_FLAG;
    properties_.delivery_mode = AMQP_DELIVERY_PERSISTENT;
  }

  void send(std::uint64_t key, const std::vector<std::string>& bodies) override {
    const std::string queue = queue_of(key == kNoKey ? 0 : key % lanes_);
    for (const std::string& body : bodies) {
      if (amqp_basic_publish(connection_.state(), 1, amqp_empty_bytes, bytes_of(queue), 0, 0,
                             &properties_, bytes_of(body)) != AMQP_STATUS_OK)
        give_up("publish");
    }
    sent_ += bodies.size();
    is_confirmed_.resize(sent_ - first_ + 1);
    under_way_.push_back(sent_);
  }

  void receive(std::uint64_t wait_ns, std::vector<std::uint64_t>& answered) override {
    timeval wait = time_of(wait_ns);
    if (!take_confirm(wait)) return;
    for (timeval none{}; take_confirm(none);)
      none = {};
    while (!under_way_.empty() && under_way_.front() < first_) {
      under_way_.pop_front();
      answered.push_back(requests_answered_++);
    }
  }

 private:
  bool take_confirm(timeval& wait) {
    amqp_frame_t frame;
    const int status = amqp_simple_wait_frame_noblock(connection_.state(), &frame, &wait);
    if (status == AMQP_STATUS_TIMEOUT) return false;
    if (status != AMQP_STATUS_OK) give_up(amqp_error_string2(status));
    if (frame.frame_type != AMQP_FRAME_METHOD || frame.payload.method.id != AMQP_BASIC_ACK_METHOD)
      give_up("a publish was refused");
    const auto& confirm = *static_cast<const amqp_basic_ack_t*>(frame.payload.method.decoded);
    const std::uint64_t tag = confirm.delivery_tag;
    if (tag >= first_) is_confirmed_[tag - first_] = true;
    if (confirm.multiple != 0) {
      for (std::uint64_t before = first_; before < tag; ++before)
        is_confirmed_[before - first_] = true;
    }
    while (!is_confirmed_.empty() && is_confirmed_.front()) {
      is_confirmed_.pop_front();
      ++first_;
    }
    amqp_maybe_release_buffers(connection_.state());
    return true;
  }

  const std::size_t lanes_;
  Connection connection_;
  amqp_basic_properties_t properties_{};
  std::uint64_t sent_ = 0;
  std::uint64_t first_ = 1;                // The first tag that is not confirmed.
  std::deque<bool> is_confirmed_{};        // From `first_` on.
  std::deque<std::uint64_t> under_way_{};  // The last tag of each request.
  std::uint64_t requests_answered_ = 0;
};

class RabbitConsumer final : public Consumer {
 public:
  explicit RabbitConsumer(const WirePlan& plan)
      : has_lanes_(plan.lanes > 0),
        connection_(plan.port, std::max<std::size_t>(plan.lanes, 1)) {
    for (std::size_t lane = 0; lane < std::max<std::size_t>(plan.lanes, 1); ++lane) {
      const auto channel = static_cast<amqp_channel_t>(lane + 1);
      amqp_basic_qos(connection_.state(), channel, 0, has_lanes_ ? 1 : kPrefetch, 0);
      connection_.check("prefetch");
      amqp_basic_consume(connection_.state(), channel, bytes_of(queue_of(lane)), amqp_empty_bytes,
                         0, 0, 0, amqp_empty_table);
      connection_.check("consume");
    }
  }

  void receive(std::uint64_t wait_ns, const Sink& sink) override {
    // One with patience, then what has come with it.
    constexpr int kTogetherMax = 100;
    for (int i = 0; i < kTogetherMax; ++i) {
      timeval wait = time_of(i == 0 ? wait_ns : 0);
      amqp_envelope_t envelope;
      amqp_maybe_release_buffers(connection_.state());
      const auto reply = amqp_consume_message(connection_.state(), &envelope, &wait, 0);
      if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION &&
          reply.library_error == AMQP_STATUS_TIMEOUT)
        return;
      check(reply, "consume");
      const amqp_bytes_t& body = envelope.message.body;
      Receipt receipt;
      receipt.number = envelope.delivery_tag;
      receipt.text = std::to_string(envelope.channel);
      sink({static_cast<const char*>(body.bytes), body.len}, std::move(receipt));
      amqp_destroy_envelope(&envelope);
    }
  }

  void acknowledge(std::vector<Receipt>& receipts) override {
    if (!has_lanes_) {
      amqp_basic_ack(connection_.state(), 1, receipts.back().number, 1);
      return;
    }
    for (const Receipt& receipt : receipts)
      amqp_basic_ack(connection_.state(), static_cast<amqp_channel_t>(std::stoul(receipt.text)),
                     receipt.number, 0);
  }

  // A question on a channel is answered after what came before it.
  void finish() override {
    amqp_basic_qos(connection_.state(), 1, 0, 1, 0);
    connection_.check("prefetch");
  }

 private:
  const bool has_lanes_;
  Connection connection_;
};

class RabbitSystem final : public System {
 public:
  explicit RabbitSystem(const WirePlan& plan) : plan_(plan), connection_(plan.port, 1) {
    if (plan.keys > 0 && plan.lanes == 0) give_up("RabbitMQ needs lanes for its keys");
    clear();
    const std::string type = plan.variant.empty() ? "quorum" : plan.variant;
    for (std::size_t lane = 0; lane < lanes(); ++lane) {
      amqp_table_entry_t entries[2]{};
      entries[0].key = amqp_cstring_bytes("x-queue-type");
      entries[0].value.kind = AMQP_FIELD_KIND_UTF8;
      entries[0].value.value.bytes = bytes_of(type);
      entries[1].key = amqp_cstring_bytes("x-single-active-consumer");
      entries[1].value.kind = AMQP_FIELD_KIND_BOOLEAN;
      entries[1].value.value.boolean = 1;
      const amqp_table_t options = {plan.lanes > 0 ? 2 : 1, entries};
      amqp_queue_declare(connection_.state(), 1, bytes_of(queue_of(lane)), 0, 1, 0, 0, options);
      connection_.check("queue");
    }
  }

  std::unique_ptr<Publisher> publisher() override {
    return std::make_unique<RabbitPublisher>(plan_);
  }
  std::unique_ptr<Consumer> consumer() override { return std::make_unique<RabbitConsumer>(plan_); }
  void clear() override {
    for (std::size_t lane = 0; lane < lanes(); ++lane) {
      amqp_queue_delete(connection_.state(), 1, bytes_of(queue_of(lane)), 0, 0);
      connection_.check("delete");
    }
  }

 private:
  std::size_t lanes() const { return std::max<std::size_t>(plan_.lanes, 1); }

  const WirePlan plan_;
  Connection connection_;
};

}  // namespace

std::unique_ptr<System> make_system(const WirePlan& plan) {
  return std::make_unique<RabbitSystem>(plan);
}

}  // namespace ordo::bench

int main(int argc, char** argv) {
  return ordo::bench::run_driver(argc, argv);
}

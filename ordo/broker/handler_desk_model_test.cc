// Goal: whatever is on its way between a partition and its subscribers, no handler gets a message
// before those of its key that come first: each of them is settled, or the newest delivery of it
// was acknowledged. Method: a real partition and several desks, joined by queues of random delay
// (shorter than a quarter of a lease, as the desk expects); handlers that ack, nack or take too
// long, so that their answers come when others have had their message; messages that wait long for
// a handler; subscribers that forget to extend. In the end all is acknowledged and nothing is left.
// The seed names the failing run.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ordo/broker/handler_desk.h"
#include "tests/support/partition_rig.h"
#include "tests/support/waiting.h"

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;
using HeldMessage = HandlerDesk::HeldMessage;

constexpr std::chrono::seconds kLease{16};

class HandlerDeskModel : public testing::TestWithParam<std::uint32_t> {
 protected:
  struct OnItsWay {
    TimePoint since;
    std::function<void()> arrive;
  };
  struct Subscriber {
    ConsumerNumber consumer;
    HandlerDesk desk{kLease};
    std::deque<OnItsWay> inbox;    // From the partition, in order.
    std::vector<OnItsWay> unsent;  // Of its threads: each gets there when it does.
    std::vector<HeldMessage> handling;
    TimePoint extend_at;
  };
  struct Known {
    std::string key;
    Fence newest;
    bool is_settled = false;
  };

  enum class Action : std::uint8_t { publish, allow, begin, answer, pass, arrive };

  HandlerDeskModel() : random_(GetParam()) {
    plan(Action::publish, 3);
    plan(Action::allow, 1 + pick(6));
    plan(Action::begin, 1 + pick(8));
    plan(Action::answer, 1 + pick(8));
    plan(Action::pass, 1 + pick(3));
    plan(Action::arrive, 5 + pick(20));
    SubscriptionSetup setup = ordered();
    setup.config.ordered_window = 1 + pick(5);
    setup.config.ack_deadline = kLease;
    if (pick(3) == 0) setup.config.retry_policy = RetryPolicy{1s, 4s};
    rig_.subscribe(setup);
    const std::uint32_t count = 1 + pick(3);
    for (std::uint32_t i = 0; i < count; ++i) {
      subscribers_.push_back(std::make_unique<Subscriber>());
      Subscriber& subscriber = *subscribers_.back();
      subscriber.extend_at = rig_.now().steady + kLease / 4;
      subscriber.consumer =
          count == 1 ? rig_.consume() : rig_.consume(1 + pick(6), std::uint64_t{1} << 40);
    }
    collect();
  }

  void plan(Action action, std::uint32_t weight) {
    actions_.insert(actions_.end(), weight, action);
  }
  std::uint32_t pick(std::uint32_t count) {
    return std::uniform_int_distribution<std::uint32_t>(0, count - 1)(random_);
  }
  Subscriber& any() { return *subscribers_[pick(static_cast<std::uint32_t>(subscribers_.size()))]; }

  // ---------------------------------------------------------------------------- on the way

  // What the partition has delivered sets out to its subscriber.
  void collect() {
    for (PartitionRig::Received& received : rig_.take_received()) {
      Known& known = known_[received.delivery.ack_id.offset.value()];
      known.key = received.delivery.message.key();
      known.newest = received.delivery.ack_id.fence;
      for (const auto& subscriber : subscribers_) {
        if (subscriber->consumer != received.consumer) continue;
        auto arrive = [this, to = subscriber.get(), delivery = received.delivery] {
          auto held = std::make_shared<Held>(delivery);
          held->leased_at = rig_.now().steady;
          held->give_up_at = held->leased_at + std::chrono::seconds(give_up_after_);
          held->is_ordered = true;
          to->desk.deliver(std::move(held));
        };
        subscriber->inbox.push_back({rig_.now().steady, std::move(arrive)});
      }
    }
  }
  void send(Subscriber& from, std::function<void()> arrive) {
    from.unsent.push_back({rig_.now().steady, [this, arrive = std::move(arrive)] {
                             mailbox_.push_back({rig_.now().steady, arrive});
                           }});
  }
  using OnOutcomes = std::function<void(const std::vector<SettleOutcome>&)>;
  void reply(Subscriber& to, RequestNumber request, const OnOutcomes& on_outcomes) {
    for (const SettleReply& settled : rig_.take<SettleReply>()) {
      if (settled.request != request || !on_outcomes) continue;
      to.inbox.push_back({rig_.now().steady,
                          [on_outcomes, outcomes = settled.outcomes] { on_outcomes(outcomes); }});
    }
  }
  void modify(Subscriber& from, ModifyDeadline modify, OnOutcomes on_outcomes) {
    send(from, [this, &from, modify = std::move(modify), on_outcomes]() mutable {
      const RequestNumber request = rig_.next_request();
      modify.request = request;
      rig_.send(std::move(modify));
      reply(from, request, on_outcomes);  // It is answered before what comes of it is delivered.
      collect();
    });
  }
  void give_back(Subscriber& from, GivenBack back) {
    if (back.ids.empty()) return;
    ModifyDeadline input{{}, true, back.ids, 0s, back.unseen};
    modify(from, std::move(input),
           [this, &from, back = std::move(back)](const std::vector<SettleOutcome>& outcomes) {
             give_back(from, from.desk.given_back(back, outcomes));
           });
  }
  void acknowledge(Subscriber& from, AckId id, OnOutcomes on_outcomes) {
    send(from, [this, &from, id, on_outcomes] {
      const RequestNumber request = rig_.next_request();
      rig_.send(Acknowledge{request, true, {id}});
      if (rig_.outcome(request) == SettleOutcome::done) known_[id.offset.value()].is_settled = true;
      collect();
      reply(from, request, on_outcomes);
    });
  }
  template <class Queue>
  static bool arrive_first(Queue& queue, TimePoint before) {
    if (queue.empty() || queue.front().since > before) return false;
    const std::function<void()> arrive = std::move(queue.front().arrive);
    queue.erase(queue.begin());
    arrive();
    return true;
  }
  void arrive_all(TimePoint before) {
    bool is_any = true;
    while (is_any) {
      is_any = false;
      for (const auto& subscriber : subscribers_) {
        is_any |= arrive_first(subscriber->unsent, before);
        is_any |= arrive_first(subscriber->inbox, before);
      }
      is_any |= arrive_first(mailbox_, before);
    }
  }
  void arrive_any() {
    Subscriber& subscriber = any();
    switch (pick(3)) {
      case 0:
        if (subscriber.unsent.empty()) return;
        std::swap(subscriber.unsent.front(),
                  subscriber.unsent[pick(static_cast<std::uint32_t>(subscriber.unsent.size()))]);
        arrive_first(subscriber.unsent, TimePoint::max());
        break;
      case 1:
        arrive_first(subscriber.inbox, TimePoint::max());
        break;
      default:
        arrive_first(mailbox_, TimePoint::max());
        break;
    }
  }

  // -------------------------------------------------------------------------- what happens

  // Nothing is on its way for more than a second at a time, three times at most.
  void pass_second() {
    arrive_all(rig_.now().steady - 1s);
    rig_.pass(1s, [this] { collect(); });
    for (const auto& subscriber : subscribers_) {
      if (rig_.now().steady < subscriber->extend_at) continue;
      subscriber->extend_at = rig_.now().steady + kLease / 4;
      if (pick(100) >= forgets_) extend(*subscriber);
    }
  }
  void extend(Subscriber& subscriber) {
    const TimePoint now = rig_.now().steady;
    std::vector<HeldMessage> due = subscriber.desk.due_for_extension(now);
    if (due.empty()) return;
    std::sort(due.begin(), due.end(), [](const HeldMessage& a, const HeldMessage& b) {
      return a->message.fence() < b->message.fence();
    });
    std::vector<AckId> ids;
    for (const HeldMessage& held : due)
      ids.push_back(held->message.ack_id());
    modify(subscriber, {{}, true, ids, kLease},
           [this, &subscriber, due, now](const std::vector<SettleOutcome>& outcomes) {
             for (GivenBack& back : subscriber.desk.extended(due, outcomes, now))
               give_back(subscriber, std::move(back));
           });
  }

  void begin(Subscriber& subscriber) {
    if (!subscriber.desk.has_ready()) return;
    const HeldMessage held = subscriber.desk.take();
    subscriber.handling.push_back(held);
    for (const auto& [offset, known] : known_) {
      if (offset >= held->offset().value()) break;
      if (known.key != held->message.key()) continue;
      EXPECT_TRUE(known.is_settled || acked_.contains(known.newest))
          << known.key << ": " << held->offset().value() << " is handled before " << offset;
    }
  }
  void answer(Subscriber& subscriber, bool is_ack) {
    if (subscriber.handling.empty()) return;
    const std::uint32_t place = pick(static_cast<std::uint32_t>(subscriber.handling.size()));
    const HeldMessage held = subscriber.handling[place];
    subscriber.handling.erase(subscriber.handling.begin() + place);
    if (!is_ack) return give_back(subscriber, subscriber.desk.nack(held));
    const HandlerDesk::AckWay way = subscriber.desk.ack(held, rig_.now().steady);
    ASSERT_NE(way, HandlerDesk::AckWay::refused);
    acked_.insert(held->message.fence());
    OnOutcomes on_outcomes;
    if (way == HandlerDesk::AckWay::ask) {
      on_outcomes = [this, &subscriber, held](const std::vector<SettleOutcome>&) {
        give_back(subscriber, subscriber.desk.ack_settled(*held));
      };
    }
    acknowledge(subscriber, held->message.ack_id(), on_outcomes);
  }

  void act() {
    switch (actions_[pick(static_cast<std::uint32_t>(actions_.size()))]) {
      case Action::publish:
        if (++published_ <= 60)
          rig_.publish(numbered("k", static_cast<int>(pick(keys_))), {numbered("m", published_)});
        collect();
        break;
      case Action::allow:
        rig_.allow(any().consumer, 1 + pick(3), 1'000);
        collect();
        break;
      case Action::begin:
        begin(any());
        break;
      case Action::answer:
        answer(any(), pick(100) >= fails_);
        break;
      case Action::pass:
        pass_second();
        break;
      case Action::arrive:
        arrive_any();
        break;
    }
  }
  bool is_left() {
    const SubscriptionStats stats = rig_.stats();
    return stats.waiting + stats.leased + stats.unread > 0;
  }
  void drain() {
    for (int round = 0; round < 2'000 && is_left() && !HasFailure(); ++round) {
      for (const auto& subscriber : subscribers_) {
        rig_.allow(subscriber->consumer, 10, 100'000);
        collect();
        while (subscriber->desk.has_ready())
          begin(*subscriber);
        while (!subscriber->handling.empty())
          answer(*subscriber, true);
      }
      arrive_all(TimePoint::max());
      if (round % 10 == 9) pass_second();
    }
    EXPECT_FALSE(is_left());
  }

  std::mt19937 random_;
  PartitionRig rig_;
  std::vector<Action> actions_;  // What may happen, as often as it is likely.
  const std::uint32_t keys_ = 1 + pick(2);
  const std::uint32_t fails_ = pick(50);        // Of a hundred answers, nacks.
  const std::uint32_t forgets_ = pick(2) * 50;  // Of a hundred extensions, forgotten.
  const std::uint32_t give_up_after_ = pick(2) == 0 ? 3'600 : 1 + pick(30);  // Seconds.
  std::vector<std::unique_ptr<Subscriber>> subscribers_;
  std::deque<OnItsWay> mailbox_;  // Of the partition.
  std::map<std::uint64_t, Known> known_;
  std::set<Fence> acked_;  // Deliveries that a handler has acknowledged.
  int published_ = 0;
};

TEST_P(HandlerDeskModel, NoHandlerGetsAMessageBeforeThoseOfItsKeyThatComeFirst) {
  for (int i = 0; i < 3'000 && !HasFailure(); ++i)
    act();
  drain();
}
INSTANTIATE_TEST_SUITE_P(Seeds, HandlerDeskModel,
                         testing::Range(0u, testing_support::kIsSanitized ? 500u : 2'000u));

}  // namespace
}  // namespace ordo::broker

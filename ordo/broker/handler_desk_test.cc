#include "ordo/broker/handler_desk.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ordo::broker {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using Ids = std::vector<AckId>;

constexpr std::chrono::seconds kLease{16};

class HandlerDeskTest : public testing::Test {
 protected:
  using HeldMessage = HandlerDesk::HeldMessage;

  HeldMessage deliver(std::uint64_t offset, const std::string& key = "k") {
    NewMessage message;
    message.data = "x";
    if (!key.empty()) message.ordering_key = key;
    std::vector<MessageBody> bodies;
    bodies.push_back(std::move(encode_message(message).value()));
    Delivery delivery;
    delivery.message = Message(MessageBatch::make(bodies, Offset(offset), WallTime()), 0);
    delivery.ack_id = AckId{CursorNumber(1), 0, Offset(offset), Fence(++last_fence_)};
    auto held = std::make_shared<Held>(std::move(delivery));
    held->leased_at = now_;
    held->give_up_at = now_ + 1h;
    held->is_ordered = !key.empty();
    desk_.deliver(held);
    return held;
  }
  // The offsets that are handed out until nothing is ready, each acknowledged at once.
  std::vector<std::uint64_t> handle_all() {
    std::vector<std::uint64_t> offsets;
    while (desk_.has_ready()) {
      const HeldMessage held = desk_.take();
      offsets.push_back(held->offset().value());
      EXPECT_EQ(desk_.ack(held, now_), HandlerDesk::AckWay::send);
    }
    return offsets;
  }
  static std::vector<std::uint64_t> offsets_of(const Ids& ids) {
    std::vector<std::uint64_t> offsets;
    for (const AckId& id : ids)
      offsets.push_back(id.offset.value());
    return offsets;
  }

  TimePoint now_{1h};
  std::uint64_t last_fence_ = 0;
  HandlerDesk desk_{kLease};
};

TEST_F(HandlerDeskTest, TheSecondOfAKeyWaitsForTheAnswerOfTheFirst) {
  deliver(1);
  deliver(2);
  deliver(3, "other");
  const HeldMessage first = desk_.take();
  EXPECT_THAT(handle_all(), ElementsAre(3));
  EXPECT_EQ(desk_.ack(first, now_), HandlerDesk::AckWay::send);
  EXPECT_EQ(desk_.ack(first, now_), HandlerDesk::AckWay::refused);
  EXPECT_THAT(handle_all(), ElementsAre(2));
  EXPECT_EQ(desk_.outstanding_count(), 0u);
}

TEST_F(HandlerDeskTest, ANackGivesBackWhatWaitsBehindIt) {
  deliver(1);
  deliver(2);
  Ids nacks;
  EXPECT_TRUE(desk_.nack(desk_.take(), nacks));
  EXPECT_THAT(offsets_of(nacks), ElementsAre(1, 2));
  EXPECT_FALSE(desk_.has_ready());
  EXPECT_EQ(desk_.skipped_count(), 1u);
}

TEST_F(HandlerDeskTest, WhatWasOnItsWayWhenItsPredecessorWasNackedIsNotHandled) {
  deliver(1);
  const HeldMessage failed = desk_.take();
  Ids nacks;
  EXPECT_TRUE(desk_.nack(failed, nacks));
  deliver(2);
  EXPECT_FALSE(desk_.has_ready());

  nacks.clear();
  desk_.nack_settled(*failed, SettleOutcome::done, nacks);
  EXPECT_THAT(nacks, IsEmpty()) << "the broker has voided it";
  deliver(1);
  deliver(2);
  EXPECT_THAT(handle_all(), ElementsAre(1, 2));
}

TEST_F(HandlerDeskTest, WhatWasNotTakenIsGivenBackIfTheNackDidNotCount) {
  deliver(1);
  const HeldMessage failed = desk_.take();
  Ids nacks;
  EXPECT_TRUE(desk_.nack(failed, nacks));
  deliver(2);
  nacks.clear();
  desk_.nack_settled(*failed, SettleOutcome::stale, nacks);
  EXPECT_THAT(offsets_of(nacks), ElementsAre(2));
  deliver(2);
  EXPECT_THAT(handle_all(), ElementsAre(2));
}

TEST_F(HandlerDeskTest, WhatFollowsTheOneThatCameAgainIsTakenBeforeTheNackIsAnswered) {
  deliver(1);
  const HeldMessage failed = desk_.take();
  Ids nacks;
  EXPECT_TRUE(desk_.nack(failed, nacks));
  deliver(1);
  deliver(2);
  nacks.clear();
  desk_.nack_settled(*failed, SettleOutcome::stale, nacks);
  EXPECT_THAT(nacks, IsEmpty());
  EXPECT_THAT(handle_all(), ElementsAre(1, 2));
}

TEST_F(HandlerDeskTest, AnAnswerToAnEarlierNackDoesNotEndTheWaitForALaterOne) {
  deliver(1);
  const HeldMessage earlier = desk_.take();
  Ids nacks;
  EXPECT_TRUE(desk_.nack(earlier, nacks));
  deliver(1);
  EXPECT_TRUE(desk_.nack(desk_.take(), nacks));
  desk_.nack_settled(*earlier, SettleOutcome::stale, nacks);
  deliver(2);
  EXPECT_FALSE(desk_.has_ready());
}

TEST_F(HandlerDeskTest, OtherKeysFlowWhileANackIsUnanswered) {
  deliver(1);
  Ids nacks;
  EXPECT_TRUE(desk_.nack(desk_.take(), nacks));
  deliver(2, "other");
  deliver(3, "");
  EXPECT_EQ(handle_all().size(), 2u);
}

TEST_F(HandlerDeskTest, ADeliveryVoidsWhatWaitsFromItsOffsetOn) {
  deliver(1);
  deliver(2);
  deliver(3);
  const HeldMessage first = desk_.take();
  deliver(2);  // Its lease had run out: the broker has begun again there.
  EXPECT_EQ(desk_.skipped_count(), 2u);
  EXPECT_EQ(desk_.outstanding_count(), 2u);
  deliver(3);
  EXPECT_EQ(desk_.ack(first, now_), HandlerDesk::AckWay::send);
  EXPECT_THAT(handle_all(), ElementsAre(2, 3));
}

TEST_F(HandlerDeskTest, ANackOfAMessageThatCameAgainMeanwhileLeavesThatAlone) {
  deliver(1);
  deliver(2);
  const HeldMessage expired = desk_.take();
  deliver(1);
  deliver(2);
  Ids nacks;
  EXPECT_TRUE(desk_.nack(expired, nacks));
  EXPECT_THAT(offsets_of(nacks), ElementsAre(1));
  EXPECT_THAT(handle_all(), ElementsAre(1, 2));
}

TEST_F(HandlerDeskTest, AnAckOfALeaseThatMayHaveRunOutIsWaitedFor) {
  deliver(1);
  deliver(2);
  const HeldMessage first = desk_.take();
  now_ += kLease;
  EXPECT_EQ(desk_.ack(first, now_), HandlerDesk::AckWay::ask);
  EXPECT_FALSE(desk_.has_ready());
  Ids nacks;
  desk_.ack_settled(*first, SettleOutcome::done, nacks);
  EXPECT_THAT(nacks, IsEmpty());
  EXPECT_TRUE(desk_.has_ready());
}

TEST_F(HandlerDeskTest, WhatWaitsBehindAnAckThatCameTooLateIsGivenBack) {
  deliver(1);
  deliver(2);
  const HeldMessage first = desk_.take();
  now_ += kLease;
  EXPECT_EQ(desk_.ack(first, now_), HandlerDesk::AckWay::ask);
  Ids nacks;
  desk_.ack_settled(*first, SettleOutcome::stale, nacks);
  EXPECT_THAT(offsets_of(nacks), ElementsAre(2));
  EXPECT_FALSE(desk_.has_ready());
}

TEST_F(HandlerDeskTest, WhatWaitsUnderALeaseThatIsNotExtendedIsNotHandled) {
  deliver(1);
  deliver(2);
  const HeldMessage first = desk_.take();
  deliver(3, "");
  now_ += kLease / 4;
  const std::vector<HeldMessage> due = desk_.due_for_extension(now_);
  EXPECT_EQ(due.size(), 3u);
  desk_.extended(due, {SettleOutcome::stale, SettleOutcome::stale, SettleOutcome::stale}, now_);
  EXPECT_EQ(desk_.outstanding_count(), 1u) << "the one that has begun";
  EXPECT_EQ(desk_.ack(first, now_), HandlerDesk::AckWay::ask);
}

TEST_F(HandlerDeskTest, AnExtendedLeaseBeginsWhenItsExtensionWasAskedFor) {
  deliver(1);
  const HeldMessage first = desk_.take();
  now_ += kLease / 4;
  const TimePoint asked_at = now_;
  const std::vector<HeldMessage> due = desk_.due_for_extension(asked_at);
  desk_.extended(due, {SettleOutcome::done}, asked_at);
  now_ += kLease / 2;
  EXPECT_EQ(desk_.ack(first, now_), HandlerDesk::AckWay::send);
}

TEST_F(HandlerDeskTest, EverythingIsGivenBackOnceAtTheEnd) {
  deliver(1);
  deliver(2);
  deliver(3, "");
  const HeldMessage begun = desk_.take();
  Ids nacks;
  EXPECT_EQ(desk_.give_back_waiting(nacks), 2u);
  EXPECT_EQ(desk_.give_back_all(nacks), 1u);
  EXPECT_EQ(nacks.size(), 3u);
  EXPECT_EQ(desk_.ack(begun, now_), HandlerDesk::AckWay::refused);
}

}  // namespace
}  // namespace ordo::broker

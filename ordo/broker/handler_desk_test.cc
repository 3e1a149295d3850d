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
  static std::vector<std::uint64_t> offsets_of(const GivenBack& back) {
    std::vector<std::uint64_t> offsets;
    for (const AckId& id : back.ids)
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
  const GivenBack back = desk_.nack(desk_.take());
  EXPECT_THAT(offsets_of(back), ElementsAre(1, 2));
  EXPECT_EQ(back.unseen, 1u) << "nobody was handed the second";
  EXPECT_FALSE(desk_.has_ready());
  EXPECT_EQ(desk_.skipped_count(), 1u);
}

TEST_F(HandlerDeskTest, WhatWasOnItsWayWhenItsPredecessorWasNackedIsNotHandled) {
  deliver(1);
  const GivenBack back = desk_.nack(desk_.take());
  deliver(2);
  EXPECT_FALSE(desk_.has_ready());

  EXPECT_THAT(offsets_of(desk_.given_back(back, {SettleOutcome::done})), IsEmpty())
      << "the broker has voided it";
  deliver(1);
  deliver(2);
  EXPECT_THAT(handle_all(), ElementsAre(1, 2));
}

TEST_F(HandlerDeskTest, WhatWasNotTakenIsGivenBackIfTheNackDidNotCount) {
  deliver(1);
  const GivenBack back = desk_.nack(desk_.take());
  deliver(2);
  const GivenBack next = desk_.given_back(back, {SettleOutcome::stale});
  EXPECT_THAT(offsets_of(next), ElementsAre(2));
  EXPECT_EQ(next.unseen, 1u);
  deliver(2);
  EXPECT_THAT(handle_all(), ElementsAre(2));
}

TEST_F(HandlerDeskTest, WhatFollowsOneThatIsOnItsWayBackIsNotHandledBeforeIt) {
  deliver(1);
  const GivenBack first = desk_.nack(desk_.take());
  deliver(2);
  const GivenBack second = desk_.given_back(first, {SettleOutcome::stale});
  deliver(3);
  EXPECT_FALSE(desk_.has_ready()) << "the second is on its way back";
  EXPECT_THAT(offsets_of(desk_.given_back(second, {SettleOutcome::done})), IsEmpty());
  deliver(2);
  deliver(3);
  EXPECT_THAT(handle_all(), ElementsAre(2, 3));
}

TEST_F(HandlerDeskTest, OneOfThoseGivenBackThatCountedVoidsWhatWasNotTaken) {
  deliver(1);
  deliver(2);  // Somebody else has settled the first meanwhile.
  const GivenBack back = desk_.nack(desk_.take());
  deliver(3);
  const std::vector<SettleOutcome> outcomes{SettleOutcome::stale, SettleOutcome::done};
  EXPECT_THAT(offsets_of(desk_.given_back(back, outcomes)), IsEmpty());
  deliver(2);
  EXPECT_THAT(handle_all(), ElementsAre(2));
}

TEST_F(HandlerDeskTest, WhatFollowsTheOneThatCameAgainIsTakenBeforeTheNackIsAnswered) {
  deliver(1);
  const GivenBack back = desk_.nack(desk_.take());
  deliver(1);
  deliver(2);
  EXPECT_THAT(offsets_of(desk_.given_back(back, {SettleOutcome::stale})), IsEmpty());
  EXPECT_THAT(handle_all(), ElementsAre(1, 2));
}

TEST_F(HandlerDeskTest, AnAnswerToAnEarlierNackDoesNotEndTheWaitForALaterOne) {
  deliver(1);
  const GivenBack earlier = desk_.nack(desk_.take());
  deliver(1);
  (void)desk_.nack(desk_.take());
  (void)desk_.given_back(earlier, {SettleOutcome::stale});
  deliver(2);
  EXPECT_FALSE(desk_.has_ready());
}

TEST_F(HandlerDeskTest, OtherKeysFlowWhileANackIsUnanswered) {
  deliver(1);
  (void)desk_.nack(desk_.take());
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
  EXPECT_THAT(offsets_of(desk_.nack(expired)), ElementsAre(1));
  EXPECT_THAT(handle_all(), ElementsAre(1, 2));
}

TEST_F(HandlerDeskTest, AnAckOfALeaseThatMayHaveRunOutIsWaitedFor) {
  deliver(1);
  const HeldMessage first = desk_.take();
  now_ += kLease;
  EXPECT_EQ(desk_.ack(first, now_), HandlerDesk::AckWay::ask);
  deliver(2);
  EXPECT_FALSE(desk_.has_ready());
  const GivenBack back = desk_.ack_settled(*first);
  EXPECT_THAT(offsets_of(back), ElementsAre(2)) << "void, if the lease had run out";
  EXPECT_EQ(back.unseen, 1u);
  EXPECT_FALSE(desk_.has_ready());
}

TEST_F(HandlerDeskTest, WhatFollowsOneGivenBackBehindALateAckIsNotHandledBeforeIt) {
  deliver(1);
  deliver(2);
  const HeldMessage first = desk_.take();
  now_ += kLease;
  EXPECT_EQ(desk_.ack(first, now_), HandlerDesk::AckWay::ask);
  const GivenBack back = desk_.ack_settled(*first);
  deliver(3);
  EXPECT_FALSE(desk_.has_ready()) << "the second is on its way back";
  EXPECT_THAT(offsets_of(desk_.given_back(back, {SettleOutcome::done})), IsEmpty());
  deliver(2);
  deliver(3);
  EXPECT_THAT(handle_all(), ElementsAre(2, 3));
}

TEST_F(HandlerDeskTest, ALateAckLeavesAloneWhatHasComeAgain) {
  deliver(1);
  const HeldMessage first = desk_.take();
  now_ += kLease;
  EXPECT_EQ(desk_.ack(first, now_), HandlerDesk::AckWay::ask);
  deliver(1);
  EXPECT_THAT(offsets_of(desk_.ack_settled(*first)), IsEmpty());
  EXPECT_THAT(handle_all(), ElementsAre(1));
}

TEST_F(HandlerDeskTest, WhatWaitsUnderALeaseThatIsNotExtendedIsNotHandled) {
  deliver(1);
  deliver(2);
  const HeldMessage first = desk_.take();
  deliver(3, "");
  now_ += kLease / 4;
  const std::vector<HeldMessage> due = desk_.due_for_extension(now_);
  EXPECT_EQ(due.size(), 3u);
  const std::vector<SettleOutcome> stale(3, SettleOutcome::stale);
  EXPECT_THAT(desk_.extended(due, stale, now_), IsEmpty());
  EXPECT_EQ(desk_.outstanding_count(), 1u) << "the one that has begun";
  EXPECT_EQ(desk_.ack(first, now_), HandlerDesk::AckWay::ask);
}

TEST_F(HandlerDeskTest, WhatCameBehindALostLeaseLaterIsGivenBack) {
  deliver(1);
  now_ += kLease / 4;
  const std::vector<HeldMessage> due = desk_.due_for_extension(now_);
  deliver(2);
  const auto backs = desk_.extended(due, {SettleOutcome::stale}, now_);
  ASSERT_EQ(backs.size(), 1u);
  EXPECT_THAT(offsets_of(backs.front()), ElementsAre(2));
  EXPECT_FALSE(desk_.has_ready());
  deliver(3);
  EXPECT_FALSE(desk_.has_ready()) << "the second is on its way back";
  EXPECT_THAT(offsets_of(desk_.given_back(backs.front(), {SettleOutcome::stale})), ElementsAre(3));
}

TEST_F(HandlerDeskTest, WhatWasNotTakenGoesBackWithTheNextOneThatIsGivenBack) {
  deliver(1);
  const HeldMessage first = desk_.take();
  deliver(2);
  now_ += kLease / 4;
  const std::vector<HeldMessage> due = desk_.due_for_extension(now_);
  deliver(3);
  std::vector<SettleOutcome> outcomes(2, SettleOutcome::stale);
  EXPECT_EQ(desk_.extended(due, outcomes, now_).size(), 1u);
  deliver(4);
  EXPECT_THAT(offsets_of(desk_.nack(first)), ElementsAre(1, 4));
}

TEST_F(HandlerDeskTest, AnExtendedLeaseBeginsWhenItsExtensionWasAskedFor) {
  deliver(1);
  const HeldMessage first = desk_.take();
  now_ += kLease / 4;
  const TimePoint asked_at = now_;
  const std::vector<HeldMessage> due = desk_.due_for_extension(asked_at);
  EXPECT_THAT(desk_.extended(due, {SettleOutcome::done}, asked_at), IsEmpty());
  now_ += kLease / 2;
  EXPECT_EQ(desk_.ack(first, now_), HandlerDesk::AckWay::send);
}

TEST_F(HandlerDeskTest, EverythingIsGivenBackOnceAtTheEnd) {
  deliver(1);
  deliver(2);
  deliver(3, "");
  const HeldMessage begun = desk_.take();
  const GivenBack waiting = desk_.give_back_waiting();
  EXPECT_EQ(waiting.ids.size(), 2u);
  EXPECT_EQ(waiting.unseen, 2u);
  const GivenBack rest = desk_.give_back_all();
  EXPECT_THAT(offsets_of(rest), ElementsAre(begun->offset().value()));
  EXPECT_EQ(rest.unseen, 0u) << "its handler has begun";
  EXPECT_EQ(desk_.ack(begun, now_), HandlerDesk::AckWay::refused);
}

TEST_F(HandlerDeskTest, WhatWasNotTakenIsGivenBackAtTheEndToo) {
  deliver(1);
  (void)desk_.nack(desk_.take());
  deliver(2);
  const GivenBack back = desk_.give_back_all();
  EXPECT_THAT(offsets_of(back), ElementsAre(2));
  EXPECT_EQ(back.unseen, 1u);
}

TEST_F(HandlerDeskTest, OneThatIsTurnedAwayVoidsWhatWaitsFromItsOffsetOn) {
  deliver(1);
  const HeldMessage again = deliver(2);
  deliver(3);
  desk_.turn_away(*again);
  EXPECT_THAT(handle_all(), ElementsAre(1));
  EXPECT_EQ(desk_.outstanding_count(), 0u);
}

}  // namespace
}  // namespace ordo::broker

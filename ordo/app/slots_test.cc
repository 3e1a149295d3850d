#include "ordo/app/slots.h"

#include <gtest/gtest.h>

namespace ordo::app {
namespace {

TEST(SlotsTest, TheLowestFreeNumberIsTaken) {
  Slots slots;
  EXPECT_EQ(slots.take().number(), 1u);
  EXPECT_EQ(slots.take().number(), 1u);
  const Slots::Taken one = slots.take();
  {
    const Slots::Taken two = slots.take();
    const Slots::Taken three = slots.take();
    EXPECT_EQ(one.number(), 1u);
    EXPECT_EQ(two.number(), 2u);
    EXPECT_EQ(three.number(), 3u);
  }
  EXPECT_EQ(slots.take().number(), 2u);
}

}  // namespace
}  // namespace ordo::app

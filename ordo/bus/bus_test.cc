#include "ordo/bus.h"

#include <gtest/gtest.h>

namespace ordo {
namespace {
TEST(BusTest, A) {
  Bus<int> bus;
  auto a = bus.subscribe("a");
  auto r = bus.publish(3);
  EXPECT_EQ(r.sent, 1u);
  EXPECT_EQ(**a.pop(), 3);
  for (int i = 0; i < 10000; ++i) { bus.publish(i); if (i % 3 == 0) a.try_pop(); }
  auto s = bus.stats();
  EXPECT_EQ(s.sent + s.dropped, s.published);
  EXPECT_EQ(s.published, 10001u);
}
}
}

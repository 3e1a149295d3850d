// Bad settings are errors that name the field (law 6).
#include <chrono>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ordo/bus.h"

namespace ordo {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only.
using testing::HasSubstr;

// What the call throws; empty when it does not.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

std::string refusal_of(const BusOptions<int>& options) {
  return refusal([&] { Bus<int> bus(options); });
}

TEST(BusOptionsTest, DefaultsAreAccepted) {
  EXPECT_EQ(refusal_of({}), "");
}

TEST(BusOptionsTest, AWatermarkOutsideZeroToOneIsRefused) {
  for (const double bad : {0.0, -0.1, 1.1, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(refusal_of({.watermarks = {.high = bad}}), HasSubstr("watermarks.high"));
    EXPECT_THAT(refusal_of({.watermarks = {.normal = bad}}), HasSubstr("watermarks.normal"));
    EXPECT_THAT(refusal_of({.watermarks = {.best_effort = bad}}),
                HasSubstr("watermarks.best_effort"));
  }
}

TEST(BusOptionsTest, WatermarksMustNotFavourALowerPriority) {
  EXPECT_THAT(refusal_of({.watermarks = {.high = 0.5, .normal = 0.6, .best_effort = 0.4}}),
              HasSubstr("watermarks.normal"));
  EXPECT_THAT(refusal_of({.watermarks = {.high = 0.9, .normal = 0.6, .best_effort = 0.7}}),
              HasSubstr("watermarks.best_effort"));
  EXPECT_EQ(refusal_of({.watermarks = {.high = 0.5, .normal = 0.5, .best_effort = 0.5}}), "");
}

TEST(BusOptionsTest, HysteresisMustLeaveSomethingOfTheLowestWatermark) {
  EXPECT_THAT(refusal_of({.hysteresis = -0.1}), HasSubstr("hysteresis"));
  EXPECT_THAT(refusal_of({.hysteresis = 0.7}), HasSubstr("hysteresis"));
  EXPECT_EQ(refusal_of({.hysteresis = 0}), "");
}

TEST(BusOptionsTest, NegativeTimesAreRefused) {
  EXPECT_THAT(refusal_of({.critical_timeout = -1ns}), HasSubstr("critical_timeout"));
  EXPECT_THAT(refusal_of({.health_window = 0s}), HasSubstr("health_window"));
  EXPECT_THAT(refusal_of({.health_window = -1s}), HasSubstr("health_window"));
}

TEST(BusOptionsTest, ByteBudgetAndFrameSizeGoTogether) {
  EXPECT_THAT(refusal_of({.bytes_max = 100}), HasSubstr("frame_bytes"));
  EXPECT_THAT(refusal_of({.frame_bytes = [](const int& /*frame*/) { return std::size_t{1}; }}),
              HasSubstr("bytes_max"));
}

TEST(BusOptionsTest, ADuplicateIdIsRefused) {
  Bus<int> bus;
  auto one = bus.subscribe("one");
  EXPECT_THAT(refusal([&] { auto again = bus.subscribe("one"); }), HasSubstr("'one'"));
  EXPECT_EQ(bus.publish(1).sent, 1U);
}

TEST(BusOptionsTest, AnUnknownIdIsRefused) {
  Bus<int> bus;
  EXPECT_THAT(refusal([&] { bus.unsubscribe("who"); }), HasSubstr("'who'"));
  EXPECT_THAT(refusal([&] { bus.health("who"); }), HasSubstr("'who'"));
}

TEST(BusOptionsTest, AnUnknownPriorityIsRefused) {
  Bus<int> bus;
  EXPECT_THAT(refusal([&] { auto one = bus.subscribe("one", static_cast<Priority>(4)); }),
              HasSubstr("priority"));
}

TEST(BusOptionsTest, AnUnknownPolicyIsRefused) {
  Bus<int> bus;
  EXPECT_THAT(refusal([&] {
                auto one =
                    bus.subscribe("one", Priority::normal, {.overflow = static_cast<Overflow>(9)});
              }),
              HasSubstr("overflow"));
}

TEST(BusOptionsTest, ACapacityOfZeroOrBeyondTheBoundIsRefused) {
  Bus<int> bus;
  for (const std::size_t bad : {std::size_t{0}, bus::kCapacityMax + 1}) {
    EXPECT_THAT(
        refusal([&] { auto one = bus.subscribe("one", Priority::normal, {.capacity = bad}); }),
        HasSubstr("capacity"));
  }
  EXPECT_TRUE(bus.stats().subscribers.empty());
}

TEST(BusOptionsTest, OneSubscriberTooManyIsRefusedAndTheOthersStay) {
  Bus<int> bus;
  std::vector<Subscription<int>> subscriptions;
  for (std::size_t i = 0; i < bus::kSubscribersMax; ++i)
    subscriptions.push_back(bus.subscribe(std::to_string(i)));
  EXPECT_THAT(refusal([&] { auto more = bus.subscribe("more"); }), HasSubstr("256"));
  EXPECT_EQ(bus.publish(1).sent, bus::kSubscribersMax);
  for (auto& subscription : subscriptions)
    EXPECT_EQ(**subscription.pop(), 1);
  subscriptions.pop_back();
  EXPECT_EQ(refusal([&] { subscriptions.push_back(bus.subscribe("more")); }), "");
}

}  // namespace
}  // namespace ordo

#include "bench/support/measures.h"

#include <gtest/gtest.h>

namespace ordo::bench {
namespace {

Measures one(double value) {
  Measures measures;
  measures.set("ns", value);
  return measures;
}

TEST(MeasuresTest, WhatIsWrittenAsLinesIsReadBack) {
  Measures measures = one(41.5);
  measures.set("items", 1e7);
  const Measures same = Measures::from_lines(measures.to_lines());
  EXPECT_EQ(same.entries(), measures.entries());
}

TEST(MeasuresTest, LinesOfAnotherShapeAreLeftOut) {
  const Measures measures = Measures::from_lines("hello\nns=4\nbad=4x\n=\nns_max=5");
  EXPECT_EQ(measures.entries().size(), 2u);
  EXPECT_EQ(measures.get("ns_max"), 5);
}

TEST(MeasuresTest, OneOutlierDoesNotMoveTheMedian) {
  EXPECT_EQ(Measures::medians({one(10), one(900), one(11)}).get("ns"), 11);
  EXPECT_EQ(Measures::medians({one(10), one(20)}).get("ns"), 15);
}

TEST(MeasuresTest, PercentilesAreValuesThatWereMeasured) {
  std::vector<double> values;
  for (int i = 100; i > 0; --i) {
    values.push_back(i);
  }
  EXPECT_EQ(percentile(values, 0.5), 51);
  EXPECT_EQ(percentile(values, 0.99), 100);
  EXPECT_EQ(percentile(values, 1.0), 100);
  values.clear();
  EXPECT_EQ(percentile(values, 0.5), 0);
}

TEST(JsonLineTest, TextIsEscaped) {
  JsonLine line;
  line.text("why", "a \"quoted\"\nline").number("ns", 2.5);
  EXPECT_EQ(line.str(), R"({"why": "a \"quoted\" line", "ns": 2.5})");
}

}  // namespace
}  // namespace ordo::bench

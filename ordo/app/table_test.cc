#include "ordo/app/table.h"

#include <gtest/gtest.h>

namespace ordo::app {
namespace {

TEST(TableTest, ColumnsLineUpAndNothingFollowsTheLast) {
  Table table({"NAME", "LABELS"});
  table.add({"orders", "team=a"});
  table.add({"caf\xC3\xA9-orders", ""});
  EXPECT_EQ(table.text(),
            "NAME         LABELS\n"
            "orders       team=a\n"
            "caf\xC3\xA9-orders  -\n");
  EXPECT_TRUE(table.text(true).starts_with("\x1b[1mNAME         LABELS\x1b[0m\norders"));
}

TEST(TableTest, ATerminalIsNotDrivenByWhatIsShown) {
  Table table({});
  table.add({"name", "a\x1b[2Jb\nc"});
  EXPECT_EQ(table.text(), "name  a\\x1b[2Jb\\nc\n");
}

}  // namespace
}  // namespace ordo::app

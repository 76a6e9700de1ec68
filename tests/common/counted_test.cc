#include "common/counted.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

TEST(CountedTest, HasASingularForOneAlone) {
  EXPECT_EQ(Counted(0, "rank"), "0 ranks");
  EXPECT_EQ(Counted(1, "rank"), "1 rank");
  EXPECT_EQ(Counted(2, "rank"), "2 ranks");
  EXPECT_EQ(Counted(-1, "rank"), "-1 ranks");
}

TEST(CountedTest, TakesAnotherPlural) {
  EXPECT_EQ(Counted(1, "process", "processes"), "1 process");
  EXPECT_EQ(Counted(3, "process", "processes"), "3 processes");
}

}  // namespace
}  // namespace ferry

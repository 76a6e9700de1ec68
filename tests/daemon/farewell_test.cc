#include "daemon/progress/farewell.h"

#include <gtest/gtest.h>

namespace ferry::daemon {
namespace {

TEST(FarewellTest, ThoseWhoLeaveTogetherHaveOneInAll) {
  Farewell farewell(1000);
  EXPECT_EQ(farewell.DeadlineNs(5000), 6000U);
  EXPECT_EQ(farewell.DeadlineNs(5400), 6000U);
  EXPECT_EQ(farewell.DeadlineNs(6000), 6000U) << "over: nobody waits";
  EXPECT_EQ(farewell.DeadlineNs(7000), 6000U) << "nor for as long again";
  EXPECT_EQ(farewell.DeadlineNs(7001), 8001U);
}

}  // namespace
}  // namespace ferry::daemon

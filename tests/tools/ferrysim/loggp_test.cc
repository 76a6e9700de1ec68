#include "tools/ferrysim/loggp.h"

#include <gtest/gtest.h>

#include "tools/ferrysim/fifo_server.h"

namespace ferry::sim {
namespace {

// 25 GB/s, a message each 5 ns.
constexpr LogGp kNic = {.latency = 700 * kNanosecond,
                        .overhead = 300 * kNanosecond,
                        .gap = 5 * kNanosecond,
                        .gap_per_byte_ps = 40};

TEST(LogGpTest, ShortMessagesTakeTheGap) {
  EXPECT_EQ(kNic.Occupancy(0), 5000U);
  EXPECT_EQ(kNic.Occupancy(8), 5000U);
  EXPECT_EQ(kNic.Occupancy(125), 5000U);
  EXPECT_EQ(kNic.Occupancy(126), 5040U);
}

TEST(LogGpTest, LongMessagesTakeTheirBytes) {
  EXPECT_EQ(kNic.Occupancy(8192), 327680U);  // 0.33 us
  EXPECT_EQ(kNic.Occupancy(uint64_t{1} << 30), 42949672960U);
}

TEST(LogGpTest, OneWayIsLatencySwitchesAndBytes) {
  EXPECT_EQ(kNic.OneWay(8, 700 * kNanosecond), 1405 * kNanosecond);
  EXPECT_EQ(kNic.OneWay(1'000'000, 0), 700 * kNanosecond + 40 * kMicrosecond);
}

TEST(TimeTest, ConvertsMicroseconds) {
  EXPECT_EQ(FromMicroseconds(1.5), 1'500'000U);
  EXPECT_DOUBLE_EQ(ToMicroseconds(1'500'000), 1.5);
}

TEST(FifoServerTest, ServesOneAfterTheOther) {
  FifoServer server;
  EXPECT_EQ(server.Reserve(10, 5), 10U);
  EXPECT_EQ(server.Reserve(11, 5), 15U);
  EXPECT_EQ(server.Reserve(30, 5), 30U);
  server.HoldUntil(50);
  EXPECT_EQ(server.Reserve(31, 1), 50U);
  EXPECT_EQ(server.busy(), 16U);
}

}  // namespace
}  // namespace ferry::sim

#include "client/mpi/partitioned/collective_units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace ferry::mpi {
namespace {

using testing::ElementsAre;

Units Cut(int partitions, uint64_t partition_bytes, const UnitLimits& limits = {}) {
  return CutCollective(partitions, partition_bytes, kUnitBytesOfCollectives, limits);
}

TEST(CutCollectiveTest, SmallPartitionsTravelTogether) {
  EXPECT_EQ(Cut(8, 16384).per_unit, 1u);
  EXPECT_EQ(Cut(8, 16383).per_unit, 2u);
  EXPECT_EQ(Cut(8, 4096).per_unit, 4u);
  EXPECT_EQ(Cut(8, 8).per_unit, 8u);
}

TEST(CutCollectiveTest, ThereAreOnlySoManyUnits) {
  EXPECT_EQ(Cut(64, 1 << 20).count(), 64u);
  EXPECT_EQ(Cut(65, 1 << 20).per_unit, 2u);
  EXPECT_EQ(Cut(100000, 1 << 20).count(), 64u);
}

TEST(CutCollectiveTest, EmptyPartitionsStayApart) { EXPECT_EQ(Cut(20, 0).per_unit, 1u); }

TEST(CutCollectiveTest, HintsDecide) {
  EXPECT_EQ(Cut(8, 8, {.min_bytes = 1}).per_unit, 1u);
  EXPECT_EQ(Cut(8, 8, {.min_bytes = 17}).per_unit, 3u);
  EXPECT_EQ(Cut(8, 1 << 20, {.max_units = 3}).per_unit, 3u);
  EXPECT_EQ(Cut(100000, 1 << 20, {.max_units = 1000000}).count(), 4000u);
}

std::vector<uint32_t> CompletedBy(Readiness* readiness, uint64_t round, uint32_t first,
                                  uint32_t last, bool all_new = true) {
  std::vector<uint32_t> completed;
  EXPECT_EQ(readiness->Mark(round, first, last, [&](uint32_t unit) { completed.push_back(unit); }),
            all_new);
  return completed;
}

TEST(ReadinessTest, TheLastPartitionCompletesItsUnit) {
  Readiness readiness(Units{.partitions = 7, .per_unit = 3, .partition_bytes = 1});
  for (uint64_t round = 1; round < 5; ++round) {
    EXPECT_THAT(CompletedBy(&readiness, round, 2, 3), ElementsAre());
    EXPECT_THAT(CompletedBy(&readiness, round, 6, 6), ElementsAre(2));
    EXPECT_THAT(CompletedBy(&readiness, round, 0, 1), ElementsAre(0));
    EXPECT_THAT(CompletedBy(&readiness, round, 4, 5), ElementsAre(1));
  }
}

TEST(ReadinessTest, UnitsMayHaveMorePartitionsThanAWord) {
  Readiness readiness(Units{.partitions = 300, .per_unit = 130, .partition_bytes = 1});
  for (uint64_t round = 1; round < 5; ++round) {
    EXPECT_THAT(CompletedBy(&readiness, round, 1, 259), ElementsAre(1));
    EXPECT_THAT(CompletedBy(&readiness, round, 261, 299), ElementsAre());
    EXPECT_THAT(CompletedBy(&readiness, round, 0, 0), ElementsAre(0));
    EXPECT_THAT(CompletedBy(&readiness, round, 260, 260), ElementsAre(2));
  }
}

TEST(ReadinessTest, APartitionIsReadiedOnceInARound) {
  Readiness readiness(Units{.partitions = 70, .per_unit = 70, .partition_bytes = 1});
  EXPECT_THAT(CompletedBy(&readiness, 1, 0, 0), ElementsAre());
  EXPECT_THAT(CompletedBy(&readiness, 1, 0, 0, false), ElementsAre());
  EXPECT_THAT(CompletedBy(&readiness, 1, 0, 68, false), ElementsAre());
  EXPECT_THAT(CompletedBy(&readiness, 1, 69, 69), ElementsAre(0));
  EXPECT_THAT(CompletedBy(&readiness, 1, 69, 69, false), ElementsAre());
  EXPECT_THAT(CompletedBy(&readiness, 2, 0, 69), ElementsAre(0));
}

// Each unit is completed once in each round, with the data of all its partitions in sight.
TEST(ReadinessTest, ThreadsMayMeet) {
  constexpr uint32_t kPartitions = 1000;
  constexpr uint32_t kThreads = 4;
  Readiness readiness(Units{.partitions = kPartitions, .per_unit = 150, .partition_bytes = 1});
  std::vector<int> data(kPartitions);
  for (int round = 1; round <= 20; ++round) {
    std::atomic<int> completed{0};
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (uint32_t p = t; p < kPartitions; p += kThreads) {
          data[p] = round;
          EXPECT_TRUE(readiness.Mark(static_cast<uint64_t>(round), p, p, [&](uint32_t unit) {
            ++completed;
            for (uint32_t i = unit * 150; i < std::min(kPartitions, (unit + 1) * 150); ++i) {
              EXPECT_EQ(data[i], round);
            }
          }));
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(completed, 7);
  }
}

}  // namespace
}  // namespace ferry::mpi

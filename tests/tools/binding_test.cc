#include "tools/ferryrun/binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ferry::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using topology::CpuSet;

// Two sockets of two cores of two threads.
topology::Machine TwoSockets() {
  topology::Machine machine;
  machine.cores = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};
  machine.sockets = {{0, 1, 2, 3}, {4, 5, 6, 7}};
  return machine;
}

constexpr std::initializer_list<uint32_t> kAll = {0, 1, 2, 3, 4, 5, 6, 7};

TEST(BindingTest, NoneBindsNothing) {
  EXPECT_THAT(*BindRanks(TwoSockets(), kAll, Binding::kNone, 100), IsEmpty());
}

TEST(BindingTest, EachRankHasACoreOfItsOwn) {
  EXPECT_THAT(*BindRanks(TwoSockets(), kAll, Binding::kCore, 3),
              ElementsAre(CpuSet{0, 1}, CpuSet{2, 3}, CpuSet{4, 5}));
}

TEST(BindingTest, OnlyWhatMayBeUsedIs) {
  EXPECT_THAT(*BindRanks(TwoSockets(), {1, 4, 5}, Binding::kCore, 2),
              ElementsAre(CpuSet{1}, CpuSet{4, 5}));
  EXPECT_THAT(*BindRanks(TwoSockets(), {6}, Binding::kSocket, 2),
              ElementsAre(CpuSet{6}, CpuSet{6}));
}

TEST(BindingTest, RanksTakeSocketsInTurn) {
  EXPECT_THAT(*BindRanks(TwoSockets(), kAll, Binding::kSocket, 3),
              ElementsAre(CpuSet{0, 1, 2, 3}, CpuSet{4, 5, 6, 7}, CpuSet{0, 1, 2, 3}));
}

TEST(BindingTest, TooFewCoresAreRefused) {
  EXPECT_THAT(BindRanks(TwoSockets(), {0, 1, 2}, Binding::kCore, 3).status().message(),
              HasSubstr("--bind-to core: 3 ranks here, but 2 cores"));
}

}  // namespace
}  // namespace ferry::tools

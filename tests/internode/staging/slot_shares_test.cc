#include "internode/staging/slot_shares.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace ferry::progress {
namespace {

// Takes all that the flow may have, and returns how many that was.
uint32_t TakeAll(SlotShares& shares, SlotFlow& flow) {
  uint32_t taken = 0;
  for (; shares.MayTake(flow); ++taken) {
    shares.Take(flow);
  }
  return taken;
}

TEST(SlotSharesTest, AFlowAloneMayHaveAll) {
  SlotShares shares(64);
  SlotFlow flow;
  EXPECT_EQ(TakeAll(shares, flow), 64U);
  shares.Give(flow);
  EXPECT_EQ(TakeAll(shares, flow), 1U);
}

TEST(SlotSharesTest, WhoHoldsAllLeavesOthersTheirParts) {
  SlotShares shares(64);
  SlotFlow stuck;
  EXPECT_EQ(TakeAll(shares, stuck), 64U);
  SlotFlow second;
  EXPECT_EQ(TakeAll(shares, second), 32U);
  SlotFlow third;
  EXPECT_EQ(TakeAll(shares, third), 21U);
}

TEST(SlotSharesTest, EachOfManyHasTheLeast) {
  SlotShares shares(8);
  std::vector<SlotFlow> flows(100);
  for (SlotFlow& flow : flows) {
    EXPECT_GE(TakeAll(shares, flow), SlotShares::kLeast);
  }
}

// Fragments end one after the other on both sides, and each has more to do.
TEST(SlotSharesTest, TwoThatWantMoreThanThereIsComeToHaveTheSame) {
  SlotShares shares(64);
  SlotFlow first;
  SlotFlow second;
  TakeAll(shares, first);
  TakeAll(shares, second);
  for (int i = 0; i < 100; ++i) {
    for (SlotFlow* flow : {&first, &second}) {
      shares.Give(*flow);
      TakeAll(shares, *flow);
    }
  }
  EXPECT_EQ(first.under_way, 32U);
  EXPECT_EQ(second.under_way, 32U);
}

TEST(SlotSharesTest, AFlowThatWaitsHoldsUpNoOther) {
  SlotShares shares(4);
  SlotFlow stuck;
  TakeAll(shares, stuck);
  shares.Wait(stuck, 1);
  shares.Wait(stuck, 2);
  SlotFlow other;
  shares.Wait(other, 11);
  shares.Wait(other, 12);
  std::vector<uint64_t> resumed;
  shares.Advance([&](uint64_t id) {
    resumed.push_back(id);
    shares.Take(other);
    return false;
  });
  EXPECT_EQ(resumed, (std::vector<uint64_t>{11, 12}));
}

TEST(SlotSharesTest, WhoWaitsAgainGoesBehindTheOthersOfItsFlow) {
  SlotShares shares(4);
  SlotFlow flow;
  shares.Wait(flow, 1);
  shares.Wait(flow, 2);
  std::vector<uint64_t> resumed;
  const auto refuse = [&](uint64_t id) {
    resumed.push_back(id);
    shares.Wait(flow, id);
    return true;
  };
  shares.Advance(refuse);
  shares.Advance(refuse);
  EXPECT_EQ(resumed, (std::vector<uint64_t>{1, 2}));
}

TEST(SlotSharesTest, WhatIsForgottenTakesNothing) {
  SlotShares shares(8);
  {
    SlotFlow gone;
    TakeAll(shares, gone);
    shares.Wait(gone, 1);
    shares.Forget(gone);
  }
  EXPECT_EQ(shares.under_way(), 0U);
  SlotFlow flow;
  EXPECT_EQ(TakeAll(shares, flow), 8U);
  shares.Advance([](uint64_t) {
    ADD_FAILURE();
    return false;
  });
}

}  // namespace
}  // namespace ferry::progress

// A node that stands still costs the others nothing.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kLong = 256 << 10;
constexpr uint64_t kDestination = 4 << 20;  // in a heap

class NeighboursTest : public PlaneTest, public testing::WithParamInterface<Memory> {
 protected:
  // Ranks 0, 1 and 2, each on a node of its own.
  void StartThree() {
    config::Options options = FastOptions();
    options.staging_blocks = 32;
    ASSERT_NO_FATAL_FAILURE(Start({1, 1, 1}, options));
  }
  // More than may be under way at a time.
  std::vector<Passage> BeginMany(uint32_t from, uint32_t to) {
    std::vector<Passage> passages;
    for (size_t i = 0; i < kMany; ++i) {
      passages.push_back(
          Begin(from, to, GetParam().Source(0, memory_.data()),
                GetParam().Destination(kDestination, memory_.data() + (1 + i) * kLong), kLong,
                static_cast<int32_t>(i)));
    }
    return passages;
  }
  // As many as `node` may have under way.
  void ExpectHeld(uint32_t node, uint32_t least) {
    ASSERT_TRUE(Meanwhile([&] { return gate(node).held.load() >= least; })) << gate(node).held;
  }
  // The reads that one node may have under way of another one, if no other wants any: of all, or of
  // half of the staging blocks.
  static uint32_t ReadsOfOne() {
    return GetParam().source_in_heap && GetParam().destination_in_heap ? 64 : 12;
  }
  // Messages between two others pass while none of those has ended.
  void ExpectOthersGoOn(uint32_t from, uint32_t to, const std::vector<Passage>& stuck) {
    for (int i = 0; i < 20; ++i) {
      ExpectEnd(Begin(from, to, GetParam().Source(0, others_.data()),
                      GetParam().Destination(kDestination + kLong, others_.data() + kLong), kLong,
                      1000 + i));
    }
    for (const Passage& passage : stuck) {
      EXPECT_FALSE(rank(passage.to).Test(passage.receive));
    }
  }

  static constexpr size_t kMany = 64;
  std::vector<std::byte> memory_ = std::vector<std::byte>((1 + kMany) * kLong);
  std::vector<std::byte> others_ = std::vector<std::byte>(2 * kLong);
};

INSTANTIATE_TEST_SUITE_P(, NeighboursTest, testing::ValuesIn(kAllMemory),
                         [](const auto& test) { return test.param.name; });

// All that may be read at a time is to come from a daemon that is stopped.
TEST_P(NeighboursTest, ReceivesFromAStoppedNodeDoNotHoldUpOthers) {
  ASSERT_NO_FATAL_FAILURE(StartThree());
  gate(0).closed = true;
  const std::vector<Passage> stuck = BeginMany(2, 0);
  ASSERT_NO_FATAL_FAILURE(ExpectHeld(0, ReadsOfOne()));
  gate(2).stands_still = true;
  gate(0).closed = false;
  ExpectOthersGoOn(1, 0, stuck);
  gate(2).GoOn();
  for (const Passage& passage : stuck) {
    ExpectEnd(passage);
  }
  ExpectNothingLeft();
}

// Sends to a stopped node: announced or staged messages are not taken.
TEST_P(NeighboursTest, SendsToAStoppedNodeDoNotHoldUpOthers) {
  ASSERT_NO_FATAL_FAILURE(StartThree());
  gate(2).closed = true;
  const std::vector<Passage> stuck = BeginMany(0, 2);
  ASSERT_NO_FATAL_FAILURE(ExpectHeld(2, 12));
  gate(2).stands_still = true;
  ExpectOthersGoOn(0, 1, stuck);
  gate(2).GoOn();
  gate(2).closed = false;
  for (const Passage& passage : stuck) {
    ExpectEnd(passage);
  }
  ExpectNothingLeft();
}

}  // namespace
}  // namespace ferry::daemon

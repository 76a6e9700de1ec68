// Nodes with two NICs: which NIC carries which transfers. Messages of all kinds over two NICs are
// in progress_transfer_rails_test and tests/e2e/between_nodes_test.cc.
#include <algorithm>
#include <cstring>

#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class ProgressRailsTest : public PlaneTest {
 protected:
  // Between heaps: the receiver's daemon reads the message, in pieces if it is long.
  void Transfer(uint32_t from, uint32_t to, uint64_t size_bytes) {
    const std::vector<std::byte> sent = Pattern(size_bytes, from + 3);
    std::memcpy(rank(from).heap(), sent.data(), size_bytes);
    ExpectEnd(Begin(from, to, InHeap(0), InHeap(64), size_bytes));
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), rank(to).heap() + 64));
  }
  // Transfers until the second NIC of `to` has answered a probe, and so is used.
  void TransferUntilBothAreUp(uint32_t from, uint32_t to) {
    EXPECT_TRUE(Eventually([&] {
      Transfer(from, to, 2 * kMiB);
      return Reads(NodeOf(to))[1] > 0;
    }));
  }
  // By NIC.
  std::vector<uint64_t> Reads(uint32_t node) {
    std::vector<uint64_t> reads;
    for (const NicStatistics& nic : plane(node).Nics()) {
      reads.push_back(nic.reads);
    }
    return reads;
  }
};

TEST_F(ProgressRailsTest, LargeTransfersUseBothNics) {
  Start({1, 1});
  ASSERT_EQ(plane(1).Nics().size(), 2U);
  TransferUntilBothAreUp(0, 1);
  const std::vector<uint64_t> before = Reads(1);
  Transfer(0, 1, 7 * kMiB);
  const std::vector<uint64_t> reads = Reads(1);
  EXPECT_GT(reads[0], before[0]);
  EXPECT_GT(reads[1], before[1]);
  EXPECT_EQ(reads[0] + reads[1] - before[0] - before[1],
            7 * kMiB / FastOptions().rail_stripe_bytes);
  EXPECT_LE(plane(1).Nics()[1].messages_received, 1U);  // a probe
}

TEST_F(ProgressRailsTest, ShortTransfersUseTheNicOfTheirRank) {
  Start({1, 2});
  TransferUntilBothAreUp(0, 2);
  const std::vector<uint64_t> before = Reads(1);
  for (int i = 0; i < 5; ++i) {
    Transfer(0, 2, 100'000);
  }
  EXPECT_EQ(Reads(1), (std::vector<uint64_t>{before[0], before[1] + 5}));
  Transfer(0, 1, 100'000);
  EXPECT_EQ(Reads(1), (std::vector<uint64_t>{before[0] + 1, before[1] + 5}));
}

// A node with one NIC, named as a rail, and one with two.
TEST_F(ProgressRailsTest, NodesMayHaveDifferentNumbersOfNics) {
  amend_options_ = [](uint32_t node, config::Options& options) {
    options.fabric_rails = node == 0 ? "127.0.0.2,127.0.0.3" : "127.0.0.2";
  };
  Start({1, 1});
  TransferUntilBothAreUp(1, 0);
  TransferUntilBothAreUp(0, 1);
  EXPECT_EQ(Reads(0)[2], 0U);
}

TEST_F(ProgressRailsTest, MemoryThatGoesAndComesBackIsOtherMemory) {
  Start({1, 1});
  for (int i = 0; i < 3; ++i) {
    Transfer(0, 1, 2 * kMiB);
    plane(0).RemoveRegion(kJob, 0, kHeapRegion);
    ASSERT_TRUE(plane(0).AddRegion(kJob, 0, rank(0).MakeHeap()).ok());
  }
  EXPECT_TRUE(AllIdle());
  EXPECT_TRUE(told_.TakeRefusals().empty());
}

}  // namespace
}  // namespace ferry::daemon

// One-sided operations that come in bursts are held back for a turn or more, and nothing else is.
#include <cstring>
#include <optional>
#include <vector>

#include "shm/layout/one_sided_layout.h"
#include "tests/daemon/progress_parts_fixture.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kNowNs = 1;
constexpr uint32_t kBurst = 4;  // the least that is held back

class HeldPacketsTest : public ProgressPartsTest {
 protected:
  void SetUp() override {
    ServeRank(2);
    (void)OpenWay();
  }

  void Say(uint32_t count, uint32_t peer = 1, uint16_t answer = shm::kNoAnswer) {
    for (; count != 0; --count) {
      shm::Descriptor put{};
      put.kind = static_cast<uint8_t>(shm::DescriptorKind::kOneSided);
      put.destination = peer;
      put.context = kHeapRegion;
      put.size_bytes = 8;
      shm::OneSidedCommand words{};
      words.operation = static_cast<uint8_t>(shm::OneSidedOperation::kPut);
      words.answer = answer;
      if (answer != shm::kNoAnswer) {
        words.operation = static_cast<uint8_t>(shm::OneSidedOperation::kAdd);
        words.width = 8;
        put.size_bytes = 0;
      }
      std::memcpy(put.payload, &words, sizeof(words));
      ASSERT_EQ(OneSided::Check(*rank_, put), std::nullopt);
      ASSERT_TRUE(one_sided_.Start(*rank_, put, kNowNs));
    }
  }
  // The order of ProgressCore::Turn. Returns how many messages have left.
  size_t Turn(uint32_t operations) {
    Say(operations);
    outbound_.FlushCommands(kNowNs);
    outbound_.Flush(kNowNs);
    outbound_.Flush(kNowNs);
    return transport_.messages().size();
  }
  // Of the last message, which is one packet.
  size_t Operations() {
    const std::vector<std::byte>& message = transport_.messages().back();
    PacketHeader header;
    std::memcpy(&header, message.data(), sizeof(header));
    EXPECT_EQ(sizeof(header) + header.body_bytes, message.size());
    return header.body_bytes / sizeof(WireOneSided);
  }
};

TEST_F(HeldPacketsTest, FewAtATimeLeaveAtOnce) {
  for (uint32_t few = 1; few < kBurst; ++few) {
    EXPECT_EQ(Turn(few), few);
    EXPECT_EQ(Operations(), few);
    EXPECT_FALSE(outbound_.is_holding());
  }
}

TEST_F(HeldPacketsTest, ABurstLeavesWithTheFirstTurnThatBringsNoMore) {
  EXPECT_EQ(Turn(kBurst), 0U);
  EXPECT_TRUE(outbound_.is_holding());
  EXPECT_EQ(Turn(20), 0U);
  EXPECT_TRUE(outbound_.is_holding());
  EXPECT_EQ(Turn(0), 1U);
  EXPECT_EQ(Operations(), kBurst + 20U);
  EXPECT_FALSE(outbound_.is_holding());
  EXPECT_EQ(Turn(0), 1U);
  EXPECT_EQ(Turn(1), 2U);  // and what comes later knows nothing of it
}

TEST_F(HeldPacketsTest, ATrickleTakesItAlong) {
  EXPECT_EQ(Turn(kBurst), 0U);
  EXPECT_EQ(Turn(1), 1U);
  EXPECT_EQ(Operations(), kBurst + 1U);
}

TEST_F(HeldPacketsTest, NoStreamIsHeldForLong) {
  for (int turn = 0; transport_.messages().empty(); ++turn) {
    ASSERT_LT(turn, 100);
    Turn(kBurst);
  }
  EXPECT_GE(transport_.messages().front().size(), 4096U);
  EXPECT_LT(transport_.messages().front().size(), 4096U + kBurst * sizeof(WireOneSided));
  EXPECT_FALSE(outbound_.is_holding());
}

TEST_F(HeldPacketsTest, NothingIsHeldThatSomebodyWaitsFor) {
  Say(kBurst, 1);
  Say(1, 1, /*answer=*/0);
  EXPECT_EQ(Turn(kBurst), 1U) << "an answer";
  EXPECT_EQ(Operations(), 2 * kBurst + 1U);
  rank_->delivery.wake().Enter();
  EXPECT_EQ(Turn(kBurst), 2U) << "the rank is in a call";
  rank_->delivery.wake().Leave();
  EXPECT_EQ(Turn(kBurst), 2U);
  rank_->delivery.wake().Enter();
  EXPECT_EQ(Turn(kBurst), 3U) << "and what it said before goes along";
  rank_->delivery.wake().Leave();
}

// A message to that node, or operations with another rank there.
TEST_F(HeldPacketsTest, OtherPacketsTakeItAlong) {
  Say(kBurst, 2);
  EXPECT_EQ(Turn(kBurst), 1U) << "two packets are no burst";
  EXPECT_EQ(Turn(kBurst), 1U);
  outbound_.Post(*job_, PacketKind::kSendDone, 0, 1, WireResult{}, kNowNs);
  outbound_.Flush(kNowNs);
  EXPECT_EQ(transport_.messages().size(), 2U) << "in the same turn";
  EXPECT_EQ(Turn(kBurst), 2U);
  outbound_.Post(*job_, PacketKind::kSendDone, 0, 1, WireResult{}, kNowNs);
  EXPECT_EQ(Turn(kBurst), 3U) << "and in the next one";
  EXPECT_FALSE(outbound_.is_holding());
}

}  // namespace
}  // namespace ferry::daemon

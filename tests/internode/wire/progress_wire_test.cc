#include <gtest/gtest.h>

#include <vector>

#include "internode/wire/wire.h"

namespace ferry::daemon {
namespace {

// The numbers that other daemons of this version expect. A change needs another kProtocolVersion.
TEST(WireTest, NumbersStayWhatTheyAre) {
  EXPECT_EQ(progress::kPacketMagic, 0x4b505246U);
  EXPECT_EQ(progress::kPacketVersion, 12);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kEager), 1);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kRemoteRts), 2);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kCredit), 3);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kSendDone), 4);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kRndvGet), 5);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kBlockReady), 6);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kBlockDone), 7);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kRtr), 8);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kWithdraw), 9);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kWithdrawn), 10);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kPut), 11);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kPutDone), 12);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kPairWindow), 13);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kPairClear), 14);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kPairData), 15);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kPairArrived), 16);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kPairEnd), 17);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kPairNic), 18);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kRetract), 19);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kEnded), 20);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kOneSided), 21);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kOneSidedDone), 22);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kOneSidedRts), 23);
  EXPECT_EQ(static_cast<int>(progress::PacketKind::kSwitch), 24);
  EXPECT_EQ(sizeof(progress::WireCredit), 16U);
  EXPECT_EQ(offsetof(progress::WireCredit, flags), 4U);
  EXPECT_EQ(offsetof(progress::WireCredit, bytes), 8U);
  EXPECT_EQ(offsetof(progress::WireCredit, epoch), 12U);
  EXPECT_EQ(offsetof(progress::PacketHeader, version), 4U);
  EXPECT_EQ(offsetof(progress::PacketHeader, kind), 5U);
  EXPECT_EQ(offsetof(progress::PacketHeader, flags), 6U);
  EXPECT_EQ(offsetof(progress::PacketHeader, stream), 7U);
  EXPECT_EQ(offsetof(progress::PacketHeader, job_key), 16U);
  EXPECT_EQ(offsetof(progress::PacketHeader, body_bytes), 28U);
  EXPECT_EQ(offsetof(progress::PacketHeader, destination), 36U);
  EXPECT_EQ(offsetof(progress::PacketHeader, context), 40U);
  EXPECT_EQ(offsetof(progress::PacketHeader, tag), 44U);
  EXPECT_EQ(offsetof(progress::PacketHeader, number), 56U);
  EXPECT_EQ(offsetof(progress::WireRts, key), 8U);
  EXPECT_EQ(offsetof(progress::WireResult, error), 8U);
  EXPECT_EQ(offsetof(progress::WireRndvGet, size_bytes), 16U);
  EXPECT_EQ(offsetof(progress::WireRndvGet, longest_bytes), 24U);
  EXPECT_EQ(offsetof(progress::WireRndvGet, blocks), 28U);
  EXPECT_EQ(offsetof(progress::WireBlock, key), 24U);
  EXPECT_EQ(offsetof(progress::WireBlock, error), 44U);
  EXPECT_EQ(offsetof(progress::WireSend, generation), 4U);
  EXPECT_EQ(offsetof(progress::WireRtr, seen), 8U);
  EXPECT_EQ(offsetof(progress::WireRtr, key), 16U);
  EXPECT_EQ(offsetof(progress::WirePut, send_request), 8U);
  EXPECT_EQ(offsetof(progress::WirePutDone, error), 8U);
  EXPECT_EQ(sizeof(progress::WireOneSided), 40U);
  EXPECT_EQ(offsetof(progress::WireOneSided, operation), 0U);
  EXPECT_EQ(offsetof(progress::WireOneSided, wants_answer), 3U);
  EXPECT_EQ(offsetof(progress::WireOneSided, region), 4U);
  EXPECT_EQ(offsetof(progress::WireOneSided, size_bytes), 8U);
  EXPECT_EQ(offsetof(progress::WireOneSided, signal_region), 12U);
  EXPECT_EQ(offsetof(progress::WireOneSided, offset), 16U);
  EXPECT_EQ(offsetof(progress::WireOneSided, compare), 32U);
  EXPECT_EQ(offsetof(progress::WireOneSidedDone, value), 8U);
  EXPECT_EQ(offsetof(progress::WireOneSidedDone, error), 16U);
  EXPECT_EQ(offsetof(progress::WireOneSidedDone, stream), 20U);
  EXPECT_EQ(offsetof(progress::WireOneSidedRts, rts), 8U);
  EXPECT_EQ(offsetof(progress::WirePair, round), 8U);
  EXPECT_EQ(offsetof(progress::WirePairWindow, address), 16U);
  EXPECT_EQ(offsetof(progress::WirePairEnd, error), 8U);
  EXPECT_EQ(offsetof(progress::WirePairEnd, rounds), 16U);
  EXPECT_EQ(offsetof(progress::WirePairNic, refused), 24U);
  EXPECT_EQ(offsetof(progress::WirePairNic, nic), 28U);
}

std::vector<std::byte> MakePacket(uint32_t body_bytes) {
  progress::PacketHeader header{};
  header.magic = progress::kPacketMagic;
  header.version = progress::kPacketVersion;
  header.body_bytes = body_bytes;
  const auto bytes = progress::BytesOf(header);
  std::vector<std::byte> packet(bytes.begin(), bytes.end());
  packet.resize(sizeof(header) + body_bytes, std::byte{7});
  return packet;
}

std::optional<progress::Packet> Parse(std::span<const std::byte> bytes) {
  return progress::TakePacket(&bytes);
}

TEST(WireTest, ParsesAPacket) {
  const std::vector<std::byte> bytes = MakePacket(8);
  const auto packet = Parse(bytes);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->body.size(), 8U);
  EXPECT_TRUE(progress::BodyOf<progress::WireBlockDone>(packet->body));
  EXPECT_FALSE(progress::BodyOf<progress::WireResult>(packet->body));
  EXPECT_TRUE(Parse(MakePacket(0)));
}

TEST(WireTest, RejectsWhatIsNoPacket) {
  const std::vector<std::byte> good = MakePacket(8);
  EXPECT_FALSE(Parse({}));
  EXPECT_FALSE(Parse(std::span(good).first(63)));
  EXPECT_FALSE(Parse(std::span(good).first(70)));  // truncated
  std::vector<std::byte> bad = good;
  bad[0] ^= std::byte{1};  // magic
  EXPECT_FALSE(Parse(bad));
  bad = good;
  bad[4] ^= std::byte{1};  // version
  EXPECT_FALSE(Parse(bad));
}

TEST(WireTest, TakesTheLastOfSeveralPacketsWithoutPadding) {
  std::vector<std::byte> frame = MakePacket(5);
  frame.resize(frame.size() + progress::PaddingOf(5));
  const std::vector<std::byte> second = MakePacket(3);
  frame.insert(frame.end(), second.begin(), second.end());
  std::span<const std::byte> rest = frame;
  EXPECT_EQ(progress::TakePacket(&rest)->body.size(), 5U);
  EXPECT_EQ(progress::TakePacket(&rest)->body.size(), 3U);
  EXPECT_TRUE(rest.empty());
}

TEST(WireTest, LeavesWhatIsNoPacketInTheFrame) {
  std::vector<std::byte> frame = MakePacket(8);
  frame.resize(frame.size() + 9);
  std::span<const std::byte> rest = frame;
  EXPECT_TRUE(progress::TakePacket(&rest));
  EXPECT_FALSE(progress::TakePacket(&rest));
  EXPECT_EQ(rest.size(), 9U);
}

}  // namespace
}  // namespace ferry::daemon

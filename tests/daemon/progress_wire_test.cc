#include <gtest/gtest.h>

#include <vector>

#include "daemon/wire/wire.h"

namespace ferry::daemon {
namespace {

// The numbers that other daemons of this version expect. A change needs another kProtocolVersion.
TEST(WireTest, NumbersStayWhatTheyAre) {
  EXPECT_EQ(kPacketMagic, 0x4b505246U);
  EXPECT_EQ(kPacketVersion, 8);
  EXPECT_EQ(static_cast<int>(PacketKind::kEager), 1);
  EXPECT_EQ(static_cast<int>(PacketKind::kRemoteRts), 2);
  EXPECT_EQ(static_cast<int>(PacketKind::kCredit), 3);
  EXPECT_EQ(static_cast<int>(PacketKind::kSendDone), 4);
  EXPECT_EQ(static_cast<int>(PacketKind::kPull), 5);
  EXPECT_EQ(static_cast<int>(PacketKind::kBlockReady), 6);
  EXPECT_EQ(static_cast<int>(PacketKind::kBlockDone), 7);
  EXPECT_EQ(static_cast<int>(PacketKind::kAdvert), 8);
  EXPECT_EQ(static_cast<int>(PacketKind::kWithdraw), 9);
  EXPECT_EQ(static_cast<int>(PacketKind::kWithdrawn), 10);
  EXPECT_EQ(static_cast<int>(PacketKind::kPut), 11);
  EXPECT_EQ(static_cast<int>(PacketKind::kPutDone), 12);
  EXPECT_EQ(static_cast<int>(PacketKind::kChannelWindow), 13);
  EXPECT_EQ(static_cast<int>(PacketKind::kChannelClear), 14);
  EXPECT_EQ(static_cast<int>(PacketKind::kChannelData), 15);
  EXPECT_EQ(static_cast<int>(PacketKind::kChannelArrived), 16);
  EXPECT_EQ(static_cast<int>(PacketKind::kChannelEnd), 17);
  EXPECT_EQ(static_cast<int>(PacketKind::kChannelNic), 18);
  EXPECT_EQ(static_cast<int>(PacketKind::kRetract), 19);
  EXPECT_EQ(static_cast<int>(PacketKind::kEnded), 20);
  EXPECT_EQ(static_cast<int>(PacketKind::kOneSided), 21);
  EXPECT_EQ(static_cast<int>(PacketKind::kOneSidedDone), 22);
  EXPECT_EQ(static_cast<int>(PacketKind::kOneSidedOffer), 23);
  EXPECT_EQ(offsetof(PacketHeader, version), 4U);
  EXPECT_EQ(offsetof(PacketHeader, kind), 5U);
  EXPECT_EQ(offsetof(PacketHeader, flags), 6U);
  EXPECT_EQ(offsetof(PacketHeader, stream), 7U);
  EXPECT_EQ(offsetof(PacketHeader, job_key), 16U);
  EXPECT_EQ(offsetof(PacketHeader, body_bytes), 28U);
  EXPECT_EQ(offsetof(PacketHeader, destination), 36U);
  EXPECT_EQ(offsetof(PacketHeader, context), 40U);
  EXPECT_EQ(offsetof(PacketHeader, tag), 44U);
  EXPECT_EQ(offsetof(PacketHeader, number), 56U);
  EXPECT_EQ(offsetof(WireRts, key), 8U);
  EXPECT_EQ(offsetof(WireResult, error), 8U);
  EXPECT_EQ(offsetof(WirePull, size_bytes), 16U);
  EXPECT_EQ(offsetof(WirePull, longest_bytes), 24U);
  EXPECT_EQ(offsetof(WirePull, blocks), 28U);
  EXPECT_EQ(offsetof(WireBlock, key), 24U);
  EXPECT_EQ(offsetof(WireBlock, error), 44U);
  EXPECT_EQ(offsetof(WireSend, generation), 4U);
  EXPECT_EQ(offsetof(WireAdvert, seen), 8U);
  EXPECT_EQ(offsetof(WireAdvert, key), 16U);
  EXPECT_EQ(offsetof(WirePut, send_request), 8U);
  EXPECT_EQ(offsetof(WirePutDone, error), 8U);
  EXPECT_EQ(sizeof(WireOneSided), 40U);
  EXPECT_EQ(offsetof(WireOneSided, operation), 0U);
  EXPECT_EQ(offsetof(WireOneSided, wants_answer), 3U);
  EXPECT_EQ(offsetof(WireOneSided, region), 4U);
  EXPECT_EQ(offsetof(WireOneSided, size_bytes), 8U);
  EXPECT_EQ(offsetof(WireOneSided, signal_region), 12U);
  EXPECT_EQ(offsetof(WireOneSided, offset), 16U);
  EXPECT_EQ(offsetof(WireOneSided, compare), 32U);
  EXPECT_EQ(offsetof(WireOneSidedDone, value), 8U);
  EXPECT_EQ(offsetof(WireOneSidedDone, error), 16U);
  EXPECT_EQ(offsetof(WireOneSidedDone, stream), 20U);
  EXPECT_EQ(offsetof(WireOneSidedOffer, rts), 8U);
  EXPECT_EQ(offsetof(WireChannel, round), 8U);
  EXPECT_EQ(offsetof(WireChannelWindow, address), 16U);
  EXPECT_EQ(offsetof(WireChannelEnd, error), 8U);
  EXPECT_EQ(offsetof(WireChannelNic, refused), 24U);
  EXPECT_EQ(offsetof(WireChannelNic, nic), 28U);
}

std::vector<std::byte> MakePacket(uint32_t body_bytes) {
  PacketHeader header{};
  header.magic = kPacketMagic;
  header.version = kPacketVersion;
  header.body_bytes = body_bytes;
  const auto bytes = BytesOf(header);
  std::vector<std::byte> packet(bytes.begin(), bytes.end());
  packet.resize(sizeof(header) + body_bytes, std::byte{7});
  return packet;
}

std::optional<Packet> Parse(std::span<const std::byte> bytes) { return TakePacket(&bytes); }

TEST(WireTest, ParsesAPacket) {
  const std::vector<std::byte> bytes = MakePacket(8);
  const auto packet = Parse(bytes);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->body.size(), 8U);
  EXPECT_TRUE(BodyOf<WireBlockDone>(packet->body));
  EXPECT_FALSE(BodyOf<WireResult>(packet->body));
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
  frame.resize(frame.size() + PaddingOf(5));
  const std::vector<std::byte> second = MakePacket(3);
  frame.insert(frame.end(), second.begin(), second.end());
  std::span<const std::byte> rest = frame;
  EXPECT_EQ(TakePacket(&rest)->body.size(), 5U);
  EXPECT_EQ(TakePacket(&rest)->body.size(), 3U);
  EXPECT_TRUE(rest.empty());
}

TEST(WireTest, LeavesWhatIsNoPacketInTheFrame) {
  std::vector<std::byte> frame = MakePacket(8);
  frame.resize(frame.size() + 9);
  std::span<const std::byte> rest = frame;
  EXPECT_TRUE(TakePacket(&rest));
  EXPECT_FALSE(TakePacket(&rest));
  EXPECT_EQ(rest.size(), 9U);
}

}  // namespace
}  // namespace ferry::daemon

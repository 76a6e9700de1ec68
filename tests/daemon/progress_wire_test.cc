#include <gtest/gtest.h>

#include <vector>

#include "daemon/progress/wire.h"

namespace ferry::daemon {
namespace {

// What other daemons of this version expect. A change needs another kProtocolVersion.
TEST(WireTest, NumbersStayWhatTheyAre) {
  EXPECT_EQ(kPacketMagic, 0x4b505246U);
  EXPECT_EQ(kPacketVersion, 1);
  EXPECT_EQ(static_cast<int>(PacketKind::kEager), 1);
  EXPECT_EQ(static_cast<int>(PacketKind::kRemoteRts), 2);
  EXPECT_EQ(static_cast<int>(PacketKind::kCredit), 3);
  EXPECT_EQ(static_cast<int>(PacketKind::kSendDone), 4);
  EXPECT_EQ(static_cast<int>(PacketKind::kPull), 5);
  EXPECT_EQ(static_cast<int>(PacketKind::kBlockReady), 6);
  EXPECT_EQ(static_cast<int>(PacketKind::kBlockDone), 7);
  EXPECT_EQ(offsetof(PacketHeader, version), 4U);
  EXPECT_EQ(offsetof(PacketHeader, kind), 5U);
  EXPECT_EQ(offsetof(PacketHeader, flags), 6U);
  EXPECT_EQ(offsetof(PacketHeader, job_key), 16U);
  EXPECT_EQ(offsetof(PacketHeader, body_bytes), 28U);
  EXPECT_EQ(offsetof(PacketHeader, destination), 36U);
  EXPECT_EQ(offsetof(PacketHeader, context), 40U);
  EXPECT_EQ(offsetof(PacketHeader, tag), 44U);
  EXPECT_EQ(offsetof(WireRts, key), 8U);
  EXPECT_EQ(offsetof(WireResult, error), 8U);
  EXPECT_EQ(offsetof(WirePull, size_bytes), 16U);
  EXPECT_EQ(offsetof(WireBlock, key), 24U);
  EXPECT_EQ(offsetof(WireBlock, error), 44U);
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

TEST(WireTest, ParsesAPacket) {
  const std::vector<std::byte> bytes = MakePacket(8);
  const auto packet = ParsePacket(bytes);
  ASSERT_TRUE(packet);
  EXPECT_EQ(packet->body.size(), 8U);
  EXPECT_TRUE(BodyOf<WireBlockDone>(packet->body));
  EXPECT_FALSE(BodyOf<WireResult>(packet->body));
  EXPECT_TRUE(ParsePacket(MakePacket(0)));
}

TEST(WireTest, RejectsWhatIsNoPacket) {
  const std::vector<std::byte> good = MakePacket(8);
  EXPECT_FALSE(ParsePacket({}));
  EXPECT_FALSE(ParsePacket(std::span(good).first(63)));
  EXPECT_FALSE(ParsePacket(std::span(good).first(70)));  // cut off
  std::vector<std::byte> bad = good;
  bad[0] ^= std::byte{1};  // magic
  EXPECT_FALSE(ParsePacket(bad));
  bad = good;
  bad[4] = std::byte{2};  // version
  EXPECT_FALSE(ParsePacket(bad));
  bad = good;
  bad.push_back(std::byte{0});  // longer than it says
  EXPECT_FALSE(ParsePacket(bad));
}

}  // namespace
}  // namespace ferry::daemon

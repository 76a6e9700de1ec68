// Packets that only processes with one secret read and write.
#include "client/bootstrap/meeting_seal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "client/bootstrap/meeting_stream.h"

namespace ferry::client {
namespace {

Secret NumberOf(int value) {
  Secret number{};
  number[0] = static_cast<std::byte>(value);
  return number;
}

const Secret kKey = KeyOfText("a secret");
const ConnectionNumbers kNumbers = {NumberOf(1), NumberOf(2)};

MeetingSeal Seal(const Secret& key = kKey, const ConnectionNumbers& numbers = kNumbers,
                 Direction direction = Direction::kToServer) {
  return MeetingSeal(key, numbers, direction);
}

TEST(MeetingSealTest, PacketsOpenInOrderAndShowNothing) {
  MeetingSeal one = Seal();
  MeetingSeal other = Seal();
  std::set<std::string> seen;
  for (const size_t size : {0, 1, 15, 16, 17, 1000}) {
    const std::string words(size, 'w');
    const std::string packet = one.Close(words);
    EXPECT_EQ(packet.size(), size + MeetingSeal::kTagBytes);
    EXPECT_EQ(packet.find(std::string(8, 'w')), packet.npos);
    EXPECT_TRUE(seen.insert(packet).second);
    EXPECT_EQ(other.Open(packet), words);
  }
}

TEST(MeetingSealTest, NoChangedPacketOpens) {
  const std::string packet = Seal().Close("twenty-one bytes long");
  for (size_t at = 0; at < packet.size(); ++at) {
    for (const int bit : {1, 128}) {
      std::string changed = packet;
      changed[at] = static_cast<char>(changed[at] ^ bit);
      EXPECT_EQ(Seal().Open(changed), std::nullopt) << at;
    }
  }
  for (size_t size = 0; size < packet.size(); ++size) {
    EXPECT_EQ(Seal().Open(packet.substr(0, size)), std::nullopt) << size;
  }
  EXPECT_EQ(Seal().Open(packet + "x"), std::nullopt);
}

TEST(MeetingSealTest, NoPacketOfAnotherPlaceOpens) {
  MeetingSeal one = Seal();
  const std::string first = one.Close("words");
  const std::string second = one.Close("words");
  EXPECT_NE(first, second);
  EXPECT_EQ(Seal().Open(second), std::nullopt);  // left out
  MeetingSeal other = Seal();
  EXPECT_EQ(other.Open(first), "words");
  EXPECT_EQ(other.Open(first), std::nullopt);  // repeated
  EXPECT_EQ(other.Open(second), "words");
  EXPECT_EQ(Seal(KeyOfText("a secre7")).Open(first), std::nullopt);
  EXPECT_EQ(Seal(kKey, {NumberOf(1), NumberOf(3)}).Open(first), std::nullopt);
  EXPECT_EQ(Seal(kKey, {NumberOf(3), NumberOf(2)}).Open(first), std::nullopt);
  EXPECT_EQ(Seal(kKey, kNumbers, Direction::kToCaller).Open(first), std::nullopt);
}

TEST(PacketFieldsTest, WhatIsCutOffIsRefused) {
  std::string words;
  AddField("one", &words);
  AddField("", &words);
  for (size_t size = 0; size <= words.size(); ++size) {
    std::string_view rest = std::string_view(words).substr(0, size);
    const auto first = TakeField(&rest);
    EXPECT_EQ(first.has_value(), size >= 7) << size;
    if (first) {
      EXPECT_EQ(*first, "one");
      EXPECT_EQ(TakeField(&rest).has_value(), size == words.size());
    }
  }
  std::string_view huge("\xff\xff\xff\xffx", 5);
  EXPECT_EQ(TakeField(&huge), std::nullopt);
}

}  // namespace
}  // namespace ferry::client

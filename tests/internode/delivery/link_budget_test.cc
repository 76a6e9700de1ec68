// The limits on memory that a link may make this node keep, and on requests to it in turn.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "internode/delivery/node_use.h"
#include "internode/wire/wire.h"
#include "shm/layout/one_sided_layout.h"
#include "tests/internode/core/progress_parts_fixture.h"

namespace ferry::daemon {
namespace {

using progress::PacketKind;

constexpr uint64_t kNowNs = 1;

class LinkBudgetTest : public ProgressPartsTest {
 protected:
  void SetUp() override {
    ServeRank(1);
    progress::ClaimableRegion& heap = rank_->regions[kHeapRegion].memory;
    heap.base = reinterpret_cast<std::byte*>(memory_.data());
    heap.size_bytes = memory_.size() * sizeof(uint64_t);
    heap.number = kHeapRegion;
  }
  // A way to the other node, which takes nothing yet.
  progress::Link& OpenStalledWay() {
    return *(job_->routes[1].link = directory_.AddLink(NodeRoute{}, transport::PeerId{}));
  }
  void Answer(uint64_t number, size_t bytes) {
    outbound_.Post(*job_, PacketKind::kOneSidedDone, 0, 1,
                   progress::WireOneSidedDone{number, 0, 0, 0}, kNowNs,
                   std::vector<std::byte>(bytes));
  }
  bool Get(uint16_t answer, uint64_t bytes) {
    shm::Descriptor command{};
    command.kind = static_cast<uint8_t>(shm::DescriptorKind::kOneSided);
    command.destination = 1;
    command.context = kHeapRegion;
    command.size_bytes = bytes;
    shm::OneSidedCommand words{};
    words.operation = static_cast<uint8_t>(shm::OneSidedOperation::kGet);
    words.width = 8;
    words.answer = answer;
    std::memcpy(command.payload, &words, sizeof(words));
    rank_->asks_too_much = false;
    return one_sided_.Start(*rank_, command, kNowNs);
  }
  void OnDone(uint64_t number, size_t bytes) {
    progress::PacketHeader header{};
    header.source = 1;
    header.destination = 0;
    EXPECT_TRUE(one_sided_.OnDone(*job_, header, {number, 0, 0, 0}, std::vector<std::byte>(bytes)));
  }
  // A put of the other node.
  void Land(uint64_t number) {
    progress::PacketHeader header{};
    header.kind = static_cast<uint8_t>(PacketKind::kOneSided);
    header.source = 1;
    header.destination = 0;
    header.number = number;
    progress::WireOneSided put{};
    put.operation = static_cast<uint8_t>(shm::OneSidedOperation::kPut);
    put.width = 8;
    put.region = kHeapRegion;
    put.size_bytes = sizeof(uint64_t);
    put.operand = number;
    EXPECT_TRUE(one_sided_.memory().OnPacket(*job_, {header, progress::BytesOf(put)}, kNowNs));
  }
  progress::NodeUse& use() { return job_->UseOf(1); }

  std::vector<uint64_t> memory_ = std::vector<uint64_t>(16);
};

TEST_F(LinkBudgetTest, AnswersThatNobodyTakesCostTheLinkAndNoMoreMemory) {
  progress::Link& link = OpenStalledWay();
  uint64_t most = 0;
  for (uint64_t number = 1; number < 10'000; ++number) {
    Answer(number, shm::kCellBytes);
    most = std::max(most, link.waiting_bytes);
  }
  EXPECT_TRUE(link.broken);
  EXPECT_LE(most, progress::kMostBytesWaiting);
  EXPECT_GT(most, progress::kMostBytesAsked);
  EXPECT_EQ(link.waiting_bytes, 0U);
  EXPECT_TRUE(link.waiting.empty());
  EXPECT_NE(link.trouble.find("asks for more than it takes"), std::string::npos) << link.trouble;
}

TEST_F(LinkBudgetTest, WhatIsTakenCountsNoMore) {
  progress::Link& link = OpenStalledWay();
  for (uint64_t round = 0; round < 10; ++round) {
    for (uint64_t number = 0; number < 1000; ++number) {
      Answer(1 + number, shm::kCellBytes);
    }
    EXPECT_GT(link.waiting_bytes, uint64_t{900} * shm::kCellBytes);
    transport_.TakeMessages();
    outbound_.Flush(kNowNs);
    EXPECT_EQ(link.waiting_bytes, 0U);
    transport_.TakeMessages(false);
  }
  EXPECT_FALSE(link.broken);
}

TEST_F(LinkBudgetTest, ARankWaitsWhileTooManyBytesAreAsked) {
  OpenWay().routes = 1;
  const uint64_t own = progress::kAnswerBytes + shm::kCellBytes;
  use().bytes_asked = progress::kMostBytesAsked - own;
  EXPECT_TRUE(Get(0, shm::kCellBytes));
  EXPECT_EQ(use().bytes_asked, progress::kMostBytesAsked);
  EXPECT_FALSE(Get(1, 8));
  EXPECT_TRUE(rank_->asks_too_much) << "it is held for that, and for no node that is lost";
  OnDone(1, shm::kCellBytes);
  EXPECT_EQ(use().bytes_asked, progress::kMostBytesAsked - own);
  EXPECT_TRUE(Get(1, 8));
  one_sided_.FailBetween(*rank_, 1, ErrorCode::kLinkDown);
  EXPECT_EQ(use().bytes_asked, progress::kMostBytesAsked - own);
  use().bytes_asked = 0;
}

TEST_F(LinkBudgetTest, JobsOfOneLinkHaveTheirParts) {
  OpenWay().routes = 1'000'000;
  for (uint16_t answer = 0; answer < progress::kLeastAsked; ++answer) {
    EXPECT_TRUE(Get(answer, shm::kCellBytes)) << answer;
  }
  EXPECT_FALSE(Get(progress::kLeastAsked, shm::kCellBytes));
  EXPECT_TRUE(use().MayAskLong(1'000'000));
  use().long_asked = progress::kLeastAsked;
  EXPECT_FALSE(use().MayAskLong(1'000'000));
  EXPECT_TRUE(use().MayAskLong(1));
  use().long_asked = 0;
}

// Puts of the other node: one number says that all of them are over.
TEST_F(LinkBudgetTest, ANodeThatIsBehindIsToldOfAllTogether) {
  progress::Link& link = OpenStalledWay();
  while (link.waiting.empty()) {
    Answer(1, shm::kCellBytes);
  }
  const size_t before = link.waiting.size();
  for (uint64_t number = 1; number <= 1000; ++number) {
    Land(number);
    one_sided_.memory().Report(kNowNs);
  }
  EXPECT_EQ(link.waiting.size(), before);
  EXPECT_TRUE(one_sided_.memory().OwesNews(job_.get(), 1));
  transport_.TakeMessages();
  outbound_.Flush(kNowNs);
  EXPECT_EQ(memory_[0], 1000U);
  const size_t sent = transport_.messages().size();
  one_sided_.memory().Report(kNowNs);
  outbound_.Flush(kNowNs);
  EXPECT_FALSE(one_sided_.memory().OwesNews(job_.get(), 1));
  ASSERT_EQ(transport_.messages().size(), sent + 1);
  std::span<const std::byte> frame = transport_.messages().back();
  const auto packet = progress::TakePacket(&frame);
  ASSERT_TRUE(packet.has_value());
  EXPECT_TRUE(frame.empty());
  EXPECT_EQ(progress::BodyOf<progress::WireOneSidedDone>(packet->body)->number, 1000U);
}

}  // namespace
}  // namespace ferry::daemon

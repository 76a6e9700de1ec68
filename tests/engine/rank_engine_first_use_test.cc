// A peer's inbox is mapped when it is first needed; and what happens if it cannot be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

using shm::RequestState;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint32_t kPeer = 1;
constexpr uint32_t kOther = 2;

class RankEngineFirstUseTest : public testing::Test {
 protected:
  RankEngineFirstUseTest() {
    peers_.map = [this](uint32_t rank) {
      asked_.push_back(rank);
      if (refusal_ == ErrorCode::kOk) {
        peers_.by_rank[rank].SetInbox(node_.view(rank).inbox);
      }
      return refusal_;
    };
  }

  static PeerTable OnlySelf(const TestNode& node) {
    PeerTable peers = node.peers();
    for (Peer& peer : peers.by_rank) {
      peer.mapped = 0;
    }
    peers.by_rank[0].SetInbox(node.view(0).inbox);
    return peers;
  }
  uint32_t Receive(int32_t source, uint64_t size_bytes) {
    const uint32_t request =
        rank_.NewRequest(shm::RequestKind::kReceive, source, 7, 0, std::string(size_bytes, '\0'));
    Effects effects;
    EXPECT_EQ(engine_.StartReceive(request, effects), ErrorCode::kOk);
    return request;
  }
  uint32_t Send(uint32_t destination, const std::string& data) {
    const uint32_t request =
        rank_.NewRequest(shm::RequestKind::kSend, static_cast<int32_t>(destination), 7, 0, data);
    Effects effects;
    engine_.StartSend(request, effects);
    return request;
  }

  TestNode node_{NodeOptions{.local_ranks = 3, .remote_ranks = 1}};
  TestRank& rank_ = node_[0];
  PeerTable peers_ = OnlySelf(node_);
  RankEngine engine_{node_.view(0), peers_, node_.engine_options(), Runner::kRank};
  std::vector<uint32_t> asked_;
  ErrorCode refusal_ = ErrorCode::kOk;
};

TEST_F(RankEngineFirstUseTest, SmallMessagesOfOthersNeedNothing) {
  const uint32_t posted = Receive(kPeer, 16);
  node_[kPeer].Isend(0, 7, "small");
  Effects effects;
  EXPECT_EQ(engine_.Progress(effects), 1U);
  EXPECT_EQ(rank_.Wait(posted).data, "small");
  node_[kOther].Isend(0, 7, "unexpected");
  EXPECT_EQ(rank_.Wait(Receive(shm::kAnySource, 16)).data, "unexpected");
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(RankEngineFirstUseTest, ASendNeedsItsDestinationOnly) {
  EXPECT_FALSE(engine_.LaneIsOpen(kPeer));
  EXPECT_EQ(engine_.OpenLane(kPeer), ErrorCode::kOk);
  EXPECT_TRUE(engine_.LaneIsOpen(kPeer));
  EXPECT_TRUE(engine_.TrySendLocal({kPeer, 0, 7, 3}, "abc", shm::kNoCell));
  EXPECT_EQ(node_[kPeer].Receive(0, 7, 16).data, "abc");
  EXPECT_THAT(asked_, ElementsAre(kPeer));
  // The same by a request, whose lane nobody has opened.
  Send(kOther, Pattern(50'000, 1));
  EXPECT_THAT(asked_, ElementsAre(kPeer, kOther));
  EXPECT_EQ(engine_.OpenLane(3),
            ErrorCode::kOk);  // on another node: the daemon carries its messages
  EXPECT_THAT(asked_, ElementsAre(kPeer, kOther));
}

TEST_F(RankEngineFirstUseTest, ALongMessageNeedsItsSource) {
  node_[kPeer].IsendByRequest(0, 7, Pattern(50'000, 1));
  const uint32_t request = Receive(shm::kAnySource, 50'000);
  Effects effects;
  EXPECT_EQ(engine_.Progress(effects), 1U);
  EXPECT_EQ(rank_.state(request), RequestState::kTransferring);
  EXPECT_THAT(asked_, ElementsAre(kPeer));
  EXPECT_EQ(rank_.Wait(request).data, Pattern(50'000, 1));
}

TEST_F(RankEngineFirstUseTest, WhoHasDiedBeforeIsAnErrorOfTheSend) {
  refusal_ = ErrorCode::kPeerDied;
  EXPECT_EQ(engine_.OpenLane(kPeer), ErrorCode::kPeerDied);
  EXPECT_FALSE(engine_.LaneIsOpen(kPeer));
  EXPECT_EQ(rank_.Finish(Send(kPeer, "x")).error, ErrorCode::kPeerDied);
  EXPECT_EQ(rank_.Finish(Send(kPeer, Pattern(50'000, 1))).error, ErrorCode::kPeerDied);
  EXPECT_EQ(node_.view(0).layout->queued_sends, 0U);
}

TEST_F(RankEngineFirstUseTest, WhatTheDeadHadSentCountsIfItIsHere) {
  node_[kPeer].Isend(0, 7, "small");
  node_[kPeer].IsendByRequest(0, 7, Pattern(50'000, 1));
  refusal_ = ErrorCode::kPeerDied;
  EXPECT_EQ(rank_.Wait(Receive(kPeer, 16)).data, "small");
  const uint32_t lost = Receive(kPeer, 50'000);
  EXPECT_EQ(rank_.state(lost), RequestState::kComplete);
  EXPECT_EQ(rank_.Finish(lost).error, ErrorCode::kPeerDied);
  EXPECT_EQ(rank_.poison(), ErrorCode::kOk);
}

TEST_F(RankEngineFirstUseTest, AnotherTryMaySucceed) {
  refusal_ = ErrorCode::kOutOfMemory;
  EXPECT_EQ(rank_.Finish(Send(kPeer, "x")).error, ErrorCode::kOutOfMemory);
  refusal_ = ErrorCode::kOk;
  EXPECT_EQ(engine_.OpenLane(kPeer), ErrorCode::kOk);
  EXPECT_TRUE(engine_.TrySendLocal({kPeer, 0, 7, 1}, "y", shm::kNoCell));
  EXPECT_EQ(node_[kPeer].Receive(0, 7, 16).data, "y");
}

TEST_F(RankEngineFirstUseTest, WakingWhoIsOutOfReachHarmsNobody) {
  refusal_ = ErrorCode::kPeerDied;
  shm::Wake(peers_.Wake(kPeer)).PublishLane(0);
  EXPECT_FALSE(peers_.Inbox(kPeer).valid());
  EXPECT_EQ(peers_.Inbox(kPeer).transfer(1), nullptr);
}

}  // namespace
}  // namespace ferry::engine

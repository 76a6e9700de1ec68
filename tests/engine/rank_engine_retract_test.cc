// Sends to another node that are cancelled: the test runs both ends, one rank at a time. The test
// is its daemon.
#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::RequestState;
using shm::RtrState;

constexpr uint32_t kFar = 1;    // elsewhere, as
constexpr uint32_t kOther = 2;  // this one
constexpr uint64_t kLarge = 100'000;
constexpr int32_t kTag = 7;

class RankEngineRetractTest : public testing::Test {
 protected:
  TestRank& rank() { return node_[0]; }
  RtrState retraction(uint32_t request) { return static_cast<RtrState>(rank().slot(request).rtr); }
  uint32_t Send(uint64_t size_bytes = kLarge, uint32_t flags = 0) {
    return rank().IsendByRequest(kFar, kTag, std::string(size_bytes, 's'), flags);
  }
  void Answer(uint32_t send, ErrorCode error) {
    ASSERT_TRUE(
        daemon_.Result(DescriptorKind::kSendDone, send, rank().slot(send).generation, error));
    rank().Progress();
  }
  // A packet of a peer's daemon: it makes an RTS by `key`, or takes it back.
  void PeerSays(DescriptorKind kind, uint64_t key, int32_t tag = kTag, uint32_t source = kFar) {
    ASSERT_TRUE(daemon_.Push(kind, source, tag, kLarge, shm::RemoteRts{7, 3, key, {}}));
  }
  void PeerRts(uint64_t key, int32_t tag = kTag) { PeerSays(DescriptorKind::kRemoteRts, key, tag); }
  void PeerRetracts(uint64_t key, int32_t tag = kTag, uint32_t source = kFar) {
    PeerSays(DescriptorKind::kRetract, key, tag, source);
    rank().Progress();
  }
  // The keys that the rank has given back since, or asks for.
  std::vector<uint64_t> Keys(DescriptorKind kind) {
    std::vector<uint64_t> keys;
    for (const Descriptor& descriptor : daemon_.TakeOf(kind)) {
      EXPECT_EQ(descriptor.destination, kFar);
      keys.push_back(kind == DescriptorKind::kRetracted
                         ? PayloadOf<shm::RemoteRts>(descriptor).key
                         : node_.view(0)
                               .inbox.transfer(PayloadOf<shm::RndvGetCommand>(descriptor).transfer)
                               ->remote_key);
    }
    return keys;
  }
  uint32_t unexpected() { return node_.view(0).match()->unexpected_count; }
  using KeyList = std::vector<uint64_t>;

  TestNode node_{NodeOptions{.local_ranks = 1, .remote_ranks = 2}};
  FakeDaemon daemon_{node_.view(0)};
};

// ---- The sender ---------------------------------------------------------------------------------

TEST_F(RankEngineRetractTest, ACancelledSendEndsAsTheReceiverSays) {
  for (const ErrorCode answer : {ErrorCode::kCancelled, ErrorCode::kOk, ErrorCode::kPeerDied}) {
    for (const uint32_t flags : {0U, shm::kRequestSynchronous}) {
      const uint32_t send = Send(kLarge, flags);
      (void)daemon_.Take();
      EXPECT_TRUE(rank().Cancel(send));
      EXPECT_TRUE(rank().Cancel(send)) << "once is enough, twice does no harm";
      EXPECT_EQ(rank().state(send), RequestState::kRemoteWait);
      const std::vector<Descriptor> said = daemon_.TakeOf(DescriptorKind::kRetract);
      ASSERT_EQ(said.size(), 1U);
      EXPECT_EQ(said[0].destination, kFar);
      EXPECT_EQ(said[0].tag, kTag);
      EXPECT_EQ(PayloadOf<shm::RemoteRts>(said[0]).send_request, send);
      EXPECT_EQ(PayloadOf<shm::RemoteRts>(said[0]).send_generation, rank().slot(send).generation);
      Answer(send, answer);
      EXPECT_EQ(retraction(send), RtrState::kQuiet) << "or its next use would begin with it";
      EXPECT_FALSE(rank().Cancel(send)) << "it is complete";
      EXPECT_EQ(rank().Finish(send).error, answer);
    }
  }
  EXPECT_EQ(shm::Statistics(node_.view(0).layout->counters).Read(shm::Statistic::kErrors), 2U)
      << "to be cancelled is no error";
}

TEST_F(RankEngineRetractTest, AsksLaterWhenTheLaneIsFull) {
  const uint32_t first = Send();
  const uint32_t second = Send();
  daemon_.FillLane();
  EXPECT_TRUE(rank().Cancel(first));
  EXPECT_TRUE(rank().Cancel(second));
  EXPECT_EQ(retraction(first), RtrState::kToWithdraw);
  EXPECT_TRUE(rank().engine().WaitsForRoom());
  (void)daemon_.Take();
  Answer(first, ErrorCode::kOk);  // received meanwhile
  rank().Progress();
  const std::vector<Descriptor> said = daemon_.TakeOf(DescriptorKind::kRetract);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(PayloadOf<shm::RemoteRts>(said[0]).send_request, second);
  EXPECT_FALSE(rank().engine().WaitsForRoom());
  EXPECT_EQ(rank().Finish(first).error, ErrorCode::kOk);
  Answer(second, ErrorCode::kCancelled);
  EXPECT_EQ(rank().Finish(second).error, ErrorCode::kCancelled);
}

// The error names the node's failure, and no request waits for its answer.
TEST_F(RankEngineRetractTest, EndsWithTheNodeThatShouldAnswer) {
  for (const bool asked : {true, false}) {
    for (const ErrorCode error : {ErrorCode::kLinkDown, ErrorCode::kNodeUnreachable}) {
      TestNode node(NodeOptions{.local_ranks = 1, .remote_ranks = 1});
      const uint32_t send = node[0].IsendByRequest(kFar, kTag, std::string(kLarge, 's'));
      if (!asked) {
        shm::LaneProducer producer(&node.view(0).layout->to_daemon);
        while (producer.TryPush(Descriptor{})) {
        }
      }
      EXPECT_TRUE(node[0].Cancel(send));
      EXPECT_EQ(node[0].state(send), RequestState::kRemoteWait);
      node.MarkDead(0, kFar, error);
      node[0].Progress();
      ASSERT_EQ(node[0].state(send), RequestState::kComplete);
      EXPECT_EQ(node[0].slot(send).rtr, static_cast<uint32_t>(RtrState::kQuiet));
      EXPECT_EQ(node[0].Finish(send).error, error);
    }
  }
}

// ---- The receiver -------------------------------------------------------------------------------

TEST_F(RankEngineRetractTest, AnRtsThatNobodyMatchedIsGivenBack) {
  PeerRts(11);
  PeerRetracts(11);
  EXPECT_EQ(Keys(DescriptorKind::kRetracted), KeyList{11});
  EXPECT_EQ(unexpected(), 0U);
  const uint32_t receive = rank().Irecv(kFar, kTag, kLarge);
  EXPECT_EQ(rank().state(receive), RequestState::kPosted);
  PeerRts(12);
  rank().Progress();
  EXPECT_EQ(Keys(DescriptorKind::kRndvGet), KeyList{12});
}

// While the rank computes, the daemon's worker does it.
TEST_F(RankEngineRetractTest, TheRankNeedNotTakePart) {
  TestRank worker(node_, 0, Runner::kWorker);
  PeerRts(11);
  PeerSays(DescriptorKind::kRetract, 11);
  worker.Progress();
  EXPECT_EQ(Keys(DescriptorKind::kRetracted), KeyList{11});
}

TEST_F(RankEngineRetractTest, AMatchThatCameFirstWins) {
  for (const bool posted_before : {true, false}) {
    const uint32_t early = posted_before ? rank().Irecv(kFar, kTag, kLarge) : 0;
    PeerRts(11);
    rank().Progress();
    if (!posted_before) {
      EXPECT_EQ(rank().state(rank().Irecv(kFar, kTag, kLarge)), RequestState::kRemoteWait);
    } else {
      EXPECT_EQ(rank().state(early), RequestState::kRemoteWait);
    }
    EXPECT_EQ(Keys(DescriptorKind::kRndvGet), KeyList{11});
    PeerRetracts(11);
    EXPECT_TRUE(daemon_.Take().empty()) << "its rendezvous get is the answer";
  }
}

TEST_F(RankEngineRetractTest, WhatWasProbedIsGivenBack) {
  PeerRts(11);
  rank().Progress();
  ProbeResult result;
  ASSERT_EQ(rank().engine().receives().Probe({0, kFar, kTag}, &result), ErrorCode::kOk);
  PeerRetracts(11);
  EXPECT_EQ(Keys(DescriptorKind::kRetracted), KeyList{11});
  EXPECT_EQ(rank().engine().receives().Probe({0, kFar, kTag}, &result), ErrorCode::kWouldBlock);
}

TEST_F(RankEngineRetractTest, OnlyWhoAnnouncedItCanTakeItBack) {
  PeerRts(11);
  PeerRts(12, kTag + 1);
  PeerRetracts(11, kTag, kOther);
  PeerRetracts(12, kTag);
  PeerRetracts(13, kTag);
  EXPECT_TRUE(daemon_.Take().empty());
  EXPECT_EQ(unexpected(), 2U);
}

TEST_F(RankEngineRetractTest, WaitsForRoomToAnswer) {
  PeerRts(11);
  rank().Progress();
  daemon_.FillLane();
  PeerRetracts(11);
  EXPECT_EQ(unexpected(), 1U);
  (void)daemon_.Take();
  rank().Progress();
  EXPECT_EQ(Keys(DescriptorKind::kRetracted), KeyList{11});
  EXPECT_EQ(unexpected(), 0U);
}

// ---- Both, in any order -------------------------------------------------------------------------

// RTSs, retractions, receives and probes at random. Each RTS is given back or asked for, never
// both; those that are asked for come in the order of the RTSs; and a retraction that found its
// RTS unmatched always gets an answer, whether it was probed or not.
TEST_F(RankEngineRetractTest, EachRtsHasOneEnd) {
  std::mt19937 random(22);
  uint64_t given_back = 0;
  uint64_t asked_for = 0;
  for (uint32_t round = 0; round < 300; ++round) {
    std::deque<uint64_t> waiting;  // announced and not ended, in order
    uint64_t key = 1000 * round;
    for (uint32_t step = 0; step < 40; ++step) {
      const uint32_t what = random() % 8;
      if (what < 3) {
        PeerRts(++key);
        waiting.push_back(key);
        rank().Progress();
      } else if (what < 6 && !waiting.empty()) {
        const size_t place = random() % waiting.size();
        const uint64_t retracted = waiting[place];
        PeerRetracts(retracted);
        ASSERT_EQ(Keys(DescriptorKind::kRetracted), KeyList{retracted});
        waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(place));
        ++given_back;
      } else if (what == 6) {
        ProbeResult result;
        const bool found =
            rank().engine().receives().Probe({0, kFar, kTag}, &result) == ErrorCode::kOk;
        ASSERT_EQ(found, !waiting.empty());
      } else if (!waiting.empty()) {
        const uint32_t receive = rank().Irecv(kFar, kTag, kLarge);
        ASSERT_EQ(Keys(DescriptorKind::kRndvGet), KeyList{waiting.front()});
        PeerRetracts(waiting.front());
        ASSERT_EQ(Keys(DescriptorKind::kRetracted), KeyList{}) << "it comes too late";
        waiting.pop_front();
        ++asked_for;
        ASSERT_TRUE(
            daemon_.Result(DescriptorKind::kRndvGetDone, receive, rank().slot(receive).generation));
        ASSERT_EQ(rank().Wait(receive).error, ErrorCode::kOk);
      }
    }
    while (!waiting.empty()) {
      const uint32_t receive = rank().Irecv(kFar, kTag, kLarge);
      ASSERT_EQ(Keys(DescriptorKind::kRndvGet), KeyList{waiting.front()});
      waiting.pop_front();
      ASSERT_TRUE(
          daemon_.Result(DescriptorKind::kRndvGetDone, receive, rank().slot(receive).generation));
      ASSERT_EQ(rank().Wait(receive).error, ErrorCode::kOk);
    }
    ASSERT_EQ(unexpected(), 0U);
  }
  EXPECT_GT(given_back, 100U);
  EXPECT_GT(asked_for, 100U);
}

}  // namespace
}  // namespace ferry::engine

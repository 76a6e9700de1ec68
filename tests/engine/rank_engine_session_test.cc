// Contents that no correct library leaves in a session: the engine over it, the rank's or the
// progress worker's, notes what it found, poisons the rank, tells the daemon, and does nothing
// more. It neither crashes nor walks for ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shm/atomic.h"
#include "shm/fault.h"
#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

using shm::RequestState;
using testing::HasSubstr;

constexpr uint32_t kWild = 0x3FFF'FFFF;  // far out of every table
constexpr uint32_t kRequests = 64;

// Rank 0 and its neighbour, and a worker's engine over rank 0's session.
class SessionTest : public testing::Test {
 protected:
  SessionTest()
      : node_(NodeOptions{.local_ranks = 2, .remote_ranks = 1, .request_limit = kRequests}),
        worker_(node_, 0, Runner::kWorker) {}

  shm::SessionLayout& session() { return *node_.view(0).layout; }
  shm::MatchTableLayout& table() { return *node_.view(0).match(); }
  shm::MatchEntry& entry(uint32_t index) {
    return reinterpret_cast<shm::MatchEntry*>(&table() + 1)[index];
  }
  // Sends to rank 1 until one waits in the queue.
  uint32_t QueueOne() {
    for (;;) {
      const uint32_t request = node_[0].Isend(1, 7, "");
      if (node_[0].state(request) == RequestState::kQueued) {
        return request;
      }
      node_[0].Finish(request);
    }
  }
  // The text that the daemon will log.
  std::string Found() { return Found(worker_); }
  std::string Found(TestRank& finder) {
    EXPECT_EQ(session().daemon_wake.poison, static_cast<int32_t>(ErrorCode::kCorrupt));
    EXPECT_EQ(worker_.poison(), ErrorCode::kCorrupt);
    finder.Progress();
    EXPECT_TRUE(finder.rang_daemon);
    EXPECT_EQ(finder.Progress(), 0U) << "it must come to rest";
    return shm::Describe(shm::ReadFault(session().fault));
  }

  TestNode node_;
  TestRank worker_;
};

TEST_F(SessionTest, QueueThatLeadsNowhere) {
  QueueOne();
  session().peers[1].queue_first = kWild;
  worker_.Progress();
  EXPECT_THAT(Found(), HasSubstr("a chain of requests leads to request 1073741823"));
}

TEST_F(SessionTest, QueueThatHoldsARequestForAnother) {
  const uint32_t request = QueueOne();
  node_[0].slot(request).peer = 12345;
  worker_.Progress();
  EXPECT_THAT(Found(), HasSubstr("a chain of requests leads to request"));
}

TEST_F(SessionTest, QueueThatBitesItsTail) {
  const uint32_t first = QueueOne();
  const uint32_t second = node_[0].Isend(1, 7, "");
  node_[0].slot(second).next = first;
  const uint32_t receive = node_[1].Irecv(0, 8, 16);  // drains the lane
  node_[1].Progress();
  for (int i = 0; i < 100; ++i) {
    node_[1].Progress();
    worker_.Progress();
  }
  EXPECT_EQ(node_[1].state(receive), RequestState::kPosted);
  EXPECT_THAT(Found(), HasSubstr("a chain of requests leads to request " + std::to_string(first)));
}

TEST_F(SessionTest, ChainOfPullsThatLeadsNowhere) {
  session().control_first = kWild;
  worker_.Progress();
  EXPECT_THAT(Found(), HasSubstr("a chain of requests leads to request 1073741823"));
}

TEST_F(SessionTest, ChainOfPullsThatBitesItsTailEnds) {
  session().request_fresh = 3;
  session().control_first = 1;
  node_[0].slot(1).next = 2;
  node_[0].slot(2).next = 1;
  worker_.Progress();
  EXPECT_EQ(session().control_first, 0U);
}

TEST_F(SessionTest, QueueEndThatLeadsOutOfTheSegments) {
  QueueOne();
  session().peers[1].queue_last = kWild;
  node_[0].Isend(1, 7, "");
  node_[0].Progress();
  EXPECT_THAT(Found(node_[0]), HasSubstr("an index in the session leads out of its segments"));
}

TEST_F(SessionTest, DeathAmongRequestsOfNobody) {
  session().request_fresh = 4;
  for (const auto state :
       {RequestState::kQueued, RequestState::kTransferring, RequestState::kRemoteWait}) {
    shm::RequestLayout& slot = node_[0].slot(static_cast<uint32_t>(state) - 1);
    slot.state = static_cast<uint32_t>(state);
    slot.kind = static_cast<uint32_t>(shm::RequestKind::kSend);
    slot.peer = -77;
    slot.transfer_rank = kWild;
    slot.transfer_index = kWild;
  }
  session().request_fresh = kWild;
  node_.MarkDead(0, 1);
  worker_.Progress();
  EXPECT_THAT(Found(), HasSubstr("which the job does not have"));
}

TEST_F(SessionTest, PostedChainThatBitesItsTail) {
  const uint32_t first = node_[0].Irecv(1, 7, 16);
  const uint32_t second = node_[0].Irecv(1, 7, 16);
  const uint32_t tail = node_[0].slot(second).match_entry;
  // All of them wait for another tag, in one bucket.
  entry(node_[0].slot(first).match_entry).tag = 9;
  entry(tail).tag = 9;
  entry(tail).next[0] = node_[0].slot(first).match_entry;
  node_[1].Isend(0, 7, "x");
  worker_.Progress();
  EXPECT_THAT(Found(), HasSubstr("the match table has a cycle"));
}

TEST_F(SessionTest, PostedEntryThatLeadsNowhere) {
  const uint32_t receive = node_[0].Irecv(1, 7, 16);
  shm::MatchEntry& posted = entry(node_[0].slot(receive).match_entry);
  posted.tag = 9;
  posted.next[0] = kWild;
  node_[1].Isend(0, 7, "x");
  worker_.Progress();
  EXPECT_THAT(Found(), HasSubstr("the match table names entry 1073741823, but has"));
}

TEST_F(SessionTest, PostedEntryWhoseNeighbourIsWildIsNotMatched) {
  const uint32_t receive = node_[0].Irecv(1, 7, 16);
  entry(node_[0].slot(receive).match_entry).previous[0] = kWild;
  node_[1].Isend(0, 7, "x");
  worker_.Progress();
  EXPECT_THAT(Found(), HasSubstr("the match table names entry 1073741823, but has"));
  EXPECT_EQ(node_[0].state(receive), RequestState::kPosted);
}

TEST_F(SessionTest, PostedEntryInAWrongState) {
  const uint32_t receive = node_[0].Irecv(1, 7, 16);
  entry(node_[0].slot(receive).match_entry).state = 5;
  node_[1].Isend(0, 7, "x");
  worker_.Progress();
  EXPECT_THAT(Found(), HasSubstr("is in state 5"));
}

TEST_F(SessionTest, PostedEntryThatNamesNoRequest) {
  const uint32_t receive = node_[0].Irecv(1, 7, 16);
  entry(node_[0].slot(receive).match_entry).request = kWild;
  node_[1].Isend(0, 7, "x");
  worker_.Progress();
  EXPECT_THAT(Found(), HasSubstr("names request 1073741823, which is no posted receive"));
}

TEST_F(SessionTest, UnexpectedEntryThatNamesNoLane) {
  node_[1].Isend(0, 7, "x");
  worker_.Progress();
  for (uint32_t i = 1; i < 4; ++i) {
    entry(i).lane = kWild;
  }
  const uint32_t receive = node_[0].Irecv(1, 7, 16);
  EXPECT_EQ(node_[0].start_error(), ErrorCode::kCorrupt);
  EXPECT_NE(node_[0].state(receive), RequestState::kLanded);
  EXPECT_THAT(Found(node_[0]), HasSubstr("the match table's entry 1 is in state 2"));
}

TEST_F(SessionTest, CapacityBeyondTheSegment) {
  table().capacity = kWild;
  TestRank late(node_, 0, Runner::kWorker);
  node_[1].Isend(0, 7, "x");
  late.Progress();
  EXPECT_THAT(Found(late), HasSubstr("the match table of 1073741823 entries does not fit"));
}

TEST_F(SessionTest, JournalThatLeadsOutOfTheSegments) {
  session().journal.entries[0] = {uint64_t{1} << 40, 1};
  session().journal.count = 1;
  EXPECT_EQ(worker_.engine().RecoverFromDeadHolder(), ErrorCode::kCorrupt);
  EXPECT_THAT(Found(), HasSubstr("the journal that a dead holder left"));
}

TEST_F(SessionTest, PushOfARequestForNobodyIsNotFinished) {
  session().push_request = 1;
  node_[0].slot(1).peer = 12345;
  EXPECT_EQ(worker_.engine().RecoverFromDeadHolder(), ErrorCode::kOk);
  EXPECT_THAT(Found(), HasSubstr("request 1 is for rank 12345"));
}

}  // namespace
}  // namespace ferry::engine

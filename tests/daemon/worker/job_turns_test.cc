// The worker's turns, one by one, over sessions whose ranks write what they like.
#include "daemon/worker/job_turns.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "shm/atomic.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kRequests = 8;
constexpr uint32_t kMatches = 16;
constexpr uint64_t kBytes = 4096;
constexpr uint32_t kGeneration = 3;

JobPlan TwoRanksHere() {
  JobPlan plan;
  plan.job_id = "job";
  plan.node_of_rank = {0, 0};
  plan.local_index = {0, 1};
  return plan;
}

class JobTurnsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      ASSERT_NO_FATAL_FAILURE(AddRank(rank));
    }
  }

  void AddRank(uint32_t rank) {
    const engine::SegmentPlan plan{rank, 2, 2, kRequests, kMatches};
    auto session = std::make_shared<Session>();
    session->job_id = "job";
    session->rank = session->local_index = rank;
    session->local_size = session->job_size = 2;
    session->pid = getpid();
    session->private_memory_reachable = true;
    session->session_fd = std::move(*shm::CreateSegment("test-session", plan.session_bytes()));
    session->inbox_fd = std::move(*shm::CreateSegment("test-inbox", plan.inbox_bytes()));
    session->session_map = std::move(*shm::MapSegment(session->session_fd.get(), 0));
    session->inbox_map = std::move(*shm::MapSegment(session->inbox_fd.get(), 0));
    engine::InitializeSegments(plan, 1, session->session_map.base(), session->inbox_map.base());
    wanted_[rank] = std::make_shared<uint32_t>(0);
    const Status added = job_.AddRank(session, wanted_[rank], engine::EngineOptions{});
    ASSERT_TRUE(added.ok()) << added.ToString();
  }

  // Rank 1 has matched a message of rank 0, which may now say where to copy it.
  void Match(const shm::Location& said_destination) {
    shm::TransferLayout& transfer = *job_.Inbox(0).transfer(1);
    engine::TransferRts offer;
    offer.source = {0, 0, reinterpret_cast<uint64_t>(sent_.data())};
    offer.size_bytes = kBytes;
    offer.chunk_bytes = kBytes;
    offer.destination_rank = 1;
    engine::AnnounceTransfer(transfer, kGeneration, offer);
    ASSERT_TRUE(engine::MatchTransfer(transfer, kGeneration, said_destination, kBytes));
    SessionOf(1).layout->request_fresh = 2;
    shm::RequestLayout& slot = *SessionOf(1).request(1);
    slot.kind = static_cast<uint32_t>(shm::RequestKind::kReceive);
    slot.buffer = Location(got_);
    slot.size_bytes = kBytes;
    slot.transfer_rank = 0;
    slot.transfer_index = 1;
    slot.transfer_generation = kGeneration;
    shm::StoreRelease(slot.state, static_cast<uint32_t>(shm::RequestState::kTransferring));
  }
  void TurnUntilIdle(uint32_t rank) {
    *wanted_[rank] = 1;
    for (int turns = 0; turns < 100; ++turns) {
      turns_.Turn();
    }
    EXPECT_FALSE(turns_.IsBusy());
  }

  engine::SessionView& SessionOf(uint32_t rank) { return job_.Find(rank)->view; }
  using Buffer = std::array<char, kBytes>;
  static shm::Location Location(const Buffer& buffer) {
    return {0, 0, reinterpret_cast<uint64_t>(buffer.data())};
  }

  WorkerJob job_{TwoRanksHere()};
  const std::function<void()> ring_ = [] {};
  JobTurns turns_{job_, ring_};
  std::array<std::shared_ptr<uint32_t>, 2> wanted_;
  Buffer sent_{'s'};
  Buffer got_{};
  Buffer other_{};
};

TEST_F(JobTurnsTest, CopiesWhatARankHasMatched) {
  Match(Location(got_));
  TurnUntilIdle(1);
  EXPECT_EQ(got_, sent_);
}

TEST_F(JobTurnsTest, LeavesToARankThatIsThereWhatItHasMatched) {
  Match(Location(got_));
  SessionOf(1).inbox.wake()->inside = 1;
  TurnUntilIdle(1);
  EXPECT_EQ(got_, Buffer{});
  SessionOf(1).inbox.wake()->inside = 0;  // it has left, and asks
  TurnUntilIdle(1);
  EXPECT_EQ(got_, sent_);
}

// The slot lies where the sender can write.
TEST_F(JobTurnsTest, CopiesNothingWhereTheSenderSaysAnotherBuffer) {
  Match(Location(other_));
  TurnUntilIdle(1);
  EXPECT_EQ(other_, Buffer{}) << "a peer chose where the rank's memory is written";
  EXPECT_EQ(got_, Buffer{}) << "the request may be at another message by now";
}

// No correct receive names memory that is lent, which the worker has mapped to read it.
TEST_F(JobTurnsTest, CopiesNothingIntoLentMemory) {
  for (const bool lent : {false, true}) {
    auto region = std::make_shared<Region>();
    region->id = 7;
    region->lent = lent;
    region->mapping =
        std::move(*shm::MapSegment(shm::CreateSegment("test-region", kBytes)->get(), 0));
    job_.Find(1)->regions[7] = region;
    Match({7, 0, 0});
    SessionOf(1).request(1)->buffer = {7, 0, 0};
    TurnUntilIdle(1);
    const engine::TransferProgress progress = engine::Look(*job_.Inbox(0).transfer(1), kGeneration);
    EXPECT_TRUE(progress.done);
    EXPECT_EQ(progress.error, lent ? ErrorCode::kInvalidBuffer : ErrorCode::kOk);
    const Buffer& expected = lent ? other_ : sent_;
    EXPECT_EQ(std::memcmp(region->mapping.base(), expected.data(), kBytes), 0);
  }
}

// A rank uses its request anew while the worker looks, so the worker reads words of two messages.
TEST_F(JobTurnsTest, CopiesNoMessageIntoTheBufferOfAnother) {
  Match(Location(got_));
  SessionOf(1).request(1)->buffer = Location(other_);
  TurnUntilIdle(1);
  EXPECT_EQ(other_, Buffer{});
  EXPECT_FALSE(engine::Look(*job_.Inbox(0).transfer(1), kGeneration).done)
      << "the rank itself has yet to copy it";
}

TEST_F(JobTurnsTest, DoesNotCopyMoreThanTheReceiverAskedFor) {
  Match(Location(got_));
  SessionOf(1).request(1)->size_bytes = kBytes - 1;
  TurnUntilIdle(1);
  EXPECT_EQ(got_, Buffer{});
}

TEST_F(JobTurnsTest, TransfersThatDoNotExistAreLetGo) {
  Match(Location(got_));
  shm::RequestLayout& slot = *SessionOf(1).request(1);
  for (const uint32_t rank : {0U, 1U, 2U, UINT32_MAX}) {
    for (const uint32_t index : {0U, kRequests, UINT32_MAX}) {
      slot.transfer_rank = rank;
      slot.transfer_index = index;
      TurnUntilIdle(1);
    }
  }
  EXPECT_EQ(got_, Buffer{});
}

TEST(WorkerCopiesTest, HoldsOneOfEachRequest) {
  WorkerCopies copies;
  WorkerCopy copy;
  for (uint32_t use = 1; use <= 1000; ++use) {
    copy.transfer = use;  // another one each time: a correct rank has one transfer for a request
    copies.Put(1, copy);
  }
  EXPECT_EQ(copies.size(), 1U);
  EXPECT_EQ(copies.Next().transfer, 1000U) << "the last counts";
  copies.DropLast();
  EXPECT_TRUE(copies.empty());
}

TEST(WorkerCopiesTest, WhatTheWorkerHasMatchedStaysSo) {
  WorkerCopies copies;
  WorkerCopy copy;
  copy.generation = 1;
  copies.Put(1, copy);
  copy.is_ranks = true;
  copies.Put(1, copy);
  EXPECT_FALSE(copies.Next().is_ranks);
  copy.generation = 2;
  copies.Put(1, copy);
  EXPECT_TRUE(copies.Next().is_ranks);
}

TEST(WorkerCopiesTest, TakesTurns) {
  WorkerCopies copies;
  for (uint32_t request = 1; request <= 3; ++request) {
    WorkerCopy copy;
    copy.transfer = 10 * request;
    copies.Put(request, copy);
  }
  EXPECT_EQ(copies.Next().transfer, 10U);
  EXPECT_EQ(copies.Next().transfer, 20U);
  copies.DropLast();
  EXPECT_EQ(copies.Next().transfer, 30U);
  EXPECT_EQ(copies.Next().transfer, 10U);
  EXPECT_EQ(copies.size(), 2U);
}

}  // namespace
}  // namespace ferry::daemon

// A rank's engines: what they share by its session, who runs them, and what they open when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "shm/atomic.h"
#include "shm/fault.h"
#include "shm/lease.h"
#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

using shm::RequestState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// ---- Sessions

// Contents that no correct library leaves in a session: the engine over it, the rank's or the
// progress worker's, notes what it found, poisons the rank, tells the daemon, and does nothing
// more. It neither crashes nor walks for ever.

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
  node_.view(0).by_rank.peers[1].queue_first = kWild;
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

TEST_F(SessionTest, ChainOfRndvGetsThatLeadsNowhere) {
  session().control_first = kWild;
  worker_.Progress();
  EXPECT_THAT(Found(), HasSubstr("a chain of requests leads to request 1073741823"));
}

TEST_F(SessionTest, ChainOfRndvGetsThatBitesItsTailEnds) {
  session().request_fresh = 3;
  session().control_first = 1;
  node_[0].slot(1).next = 2;
  node_[0].slot(2).next = 1;
  worker_.Progress();
  EXPECT_EQ(session().control_first, 0U);
}

TEST_F(SessionTest, QueueEndThatLeadsOutOfTheSegments) {
  QueueOne();
  node_.view(0).by_rank.peers[1].queue_last = kWild;
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

// ---- A peer's inbox is mapped when it is first needed; and what happens if it cannot be

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
    PeerTable peers;
    peers.by_rank = ZeroedArray<Peer>(node.peers().by_rank.size());
    peers.rank_of_local = node.peers().rank_of_local;
    for (const uint32_t rank : peers.rank_of_local) {
      peers.by_rank[rank].local = true;
      peers.by_rank[rank].local_index = node.peers().by_rank[rank].local_index;
    }
    peers.by_rank[0].SetInbox(node.view(0).inbox);
    return peers;
  }
  uint32_t Receive(int32_t source, uint64_t size_bytes) {
    const uint32_t request =
        rank_.NewRequest(shm::RequestKind::kReceive, source, 7, 0, std::string(size_bytes, '\0'));
    Effects effects;
    EXPECT_EQ(engine_.receives().StartReceive(request, effects), ErrorCode::kOk);
    return request;
  }
  uint32_t Send(uint32_t destination, const std::string& data) {
    const uint32_t request =
        rank_.NewRequest(shm::RequestKind::kSend, static_cast<int32_t>(destination), 7, 0, data);
    Effects effects;
    engine_.sends().StartSend(request, effects);
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
  EXPECT_FALSE(engine_.sends().LaneIsOpen(kPeer));
  EXPECT_EQ(engine_.sends().OpenLane(kPeer), ErrorCode::kOk);
  EXPECT_TRUE(engine_.sends().LaneIsOpen(kPeer));
  EXPECT_TRUE(engine_.sends().TrySendLocal({kPeer, 0, 7, 3}, "abc", shm::kNoCell));
  EXPECT_EQ(node_[kPeer].Receive(0, 7, 16).data, "abc");
  EXPECT_THAT(asked_, ElementsAre(kPeer));
  // A request opens its lane as well, which no message has opened before.
  Send(kOther, Pattern(50'000, 1));
  EXPECT_THAT(asked_, ElementsAre(kPeer, kOther));
  EXPECT_EQ(engine_.sends().OpenLane(3),
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
  EXPECT_EQ(engine_.sends().OpenLane(kPeer), ErrorCode::kPeerDied);
  EXPECT_FALSE(engine_.sends().LaneIsOpen(kPeer));
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
  EXPECT_EQ(engine_.sends().OpenLane(kPeer), ErrorCode::kOk);
  EXPECT_TRUE(engine_.sends().TrySendLocal({kPeer, 0, 7, 1}, "y", shm::kNoCell));
  EXPECT_EQ(node_[kPeer].Receive(0, 7, 16).data, "y");
}

TEST_F(RankEngineFirstUseTest, WakingWhoIsOutOfReachHarmsNobody) {
  refusal_ = ErrorCode::kPeerDied;
  shm::Wake(peers_.Wake(kPeer)).PublishLane(0);
  EXPECT_FALSE(peers_.Inbox(kPeer).valid());
  EXPECT_EQ(peers_.Inbox(kPeer).transfer(1), nullptr);
}

// ---- Runners

// Two engines serve one session, as the rank and the progress worker do: each takes the lease,
// progresses, and releases, while a peer's engine sends from a third thread.

constexpr uint32_t kHolder = 11;  // any id that is not the worker's

// Progress under the lease; returns what was handled, 0 if the lease was taken.
uint32_t ProgressUnderLease(TestRank& runner, uint32_t holder) {
  shm::Lease lease(&runner.view().layout->lease);
  if (!lease.TryAcquire(holder)) {
    return 0;
  }
  Effects effects;
  const uint32_t handled = runner.engine().Progress(effects);
  lease.Release(holder);
  runner.Perform(effects);
  return handled;
}

class Underway {
 public:
  template <typename Body>
  explicit Underway(Body body)
      : thread_([this, body] {
          while (!over_.load()) {
            if (!body()) {
              std::this_thread::yield();
            }
          }
        }) {}
  ~Underway() {
    over_.store(true);
    thread_.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

TEST(RankEngineRunnersTest, EveryMessageArrivesOnceInOrder) {
  constexpr uint32_t kMessages = 3000;
  TestNode node(NodeOptions{.request_limit = 4096, .unexpected_limit = 4096});
  TestRank worker(node, 1, Runner::kWorker);
  shm::Lease lease(&node.view(1).layout->lease);
  std::atomic<bool> received{false};
  const auto message = [](uint32_t i) {
    constexpr uint64_t kSizes[] = {8, 8, 8, 100, 8, 5000, 8, 12'000};
    return Pattern(kSizes[i % std::size(kSizes)], i);
  };

  std::thread sender([&] {
    std::vector<uint32_t> sends;
    for (uint32_t i = 0; i < kMessages; ++i) {
      sends.push_back(node[0].Isend(1, 7, message(i)));
      while (node[0].engine().WaitsForRoom()) {
        node[0].Progress();
        std::this_thread::yield();
      }
      if (sends.size() > 64) {
        while (!node[0].Test(sends.front())) {
          node[0].Progress();
          std::this_thread::yield();
        }
        EXPECT_EQ(node[0].Finish(sends.front()).error, ErrorCode::kOk);
        sends.erase(sends.begin());
      }
    }
    while (!received.load()) {
      node[0].Progress();
      std::this_thread::yield();
    }
  });
  {
    const Underway working([&] { return ProgressUnderLease(worker, shm::kLeaseWorker) != 0; });
    for (uint32_t i = 0; i < kMessages; ++i) {
      ASSERT_TRUE(lease.Acquire(kHolder));
      const uint32_t receive = node[1].Irecv(i % 3 == 0 ? shm::kAnySource : 0, 7, 12'000);
      lease.Release(kHolder);
      while (!node[1].Test(receive)) {
        if (ProgressUnderLease(node[1], kHolder) == 0) {
          std::this_thread::yield();
        }
      }
      ASSERT_EQ(node[1].Finish(receive).data, message(i)) << "message " << i;
    }
    received.store(true);
  }
  sender.join();
  EXPECT_EQ(node[1].poison(), ErrorCode::kOk);
  EXPECT_FALSE(node[1].engine().HasArrivals());
}

TEST(RankEngineRunnersTest, CreditsFlowWhoeverDrains) {
  // The daemon sends as a remote peer may: never more than the window ahead of the credits.
  constexpr uint32_t kMessages = 5000;
  TestNode node(NodeOptions{.local_ranks = 1, .remote_ranks = 1, .unexpected_limit = 8192});
  TestRank worker(node, 0, Runner::kWorker);
  std::atomic<uint32_t> sent{0};
  std::thread daemon([&] {
    FakeDaemon daemon(node.view(0));
    uint32_t credited = 0;
    while (sent.load() < kMessages) {
      for (const shm::Descriptor& descriptor : daemon.Take()) {
        credited = PayloadOf<shm::CreditReturn>(descriptor).count;
      }
      ASSERT_LE(credited, sent.load());
      if (sent.load() - credited < kRemoteWindow &&
          daemon.Eager(1, 7, std::to_string(sent.load()))) {
        ++sent;
      } else {
        std::this_thread::yield();
      }
    }
  });
  {
    const Underway working([&] { return ProgressUnderLease(worker, shm::kLeaseWorker) != 0; });
    while (sent.load() < kMessages || node[0].engine().HasArrivals()) {
      if (ProgressUnderLease(node[0], kHolder) == 0) {
        std::this_thread::yield();
      }
    }
  }
  daemon.join();
  for (uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(node[0].Receive(1, 7, 16).data, std::to_string(i));
  }
}

TEST(RankEngineRunnersTest, QueuedSendsLeaveOnceWhoeverFlushes) {
  constexpr uint32_t kMessages = 3000;
  TestNode node(NodeOptions{.request_limit = kMessages + 10, .unexpected_limit = 4096});
  TestRank worker(node, 0, Runner::kWorker);
  std::atomic<bool> received{false};
  std::thread receiver([&] {
    for (uint32_t i = 0; i < kMessages; ++i) {
      const uint32_t receive = node[1].Irecv(0, 7, 12'000);
      while (!node[1].Test(receive)) {
        node[1].Progress();
        std::this_thread::yield();
      }
      ASSERT_EQ(node[1].Finish(receive).data, Pattern(i % 7 == 0 ? 12'000 : 8, i));
    }
    received.store(true);
  });
  shm::Lease lease(&node.view(0).layout->lease);
  std::vector<uint32_t> sends;
  {
    const Underway working([&] { return ProgressUnderLease(worker, shm::kLeaseWorker) != 0; });
    for (uint32_t i = 0; i < kMessages; ++i) {
      ASSERT_TRUE(lease.Acquire(kHolder));
      sends.push_back(node[0].Isend(1, 7, Pattern(i % 7 == 0 ? 12'000 : 8, i)));
      lease.Release(kHolder);
    }
    while (!received.load()) {
      if (ProgressUnderLease(node[0], kHolder) == 0) {
        std::this_thread::yield();
      }
    }
  }
  receiver.join();
  for (const uint32_t send : sends) {
    EXPECT_TRUE(node[0].Test(send));
    EXPECT_EQ(node[0].Finish(send).error, ErrorCode::kOk);
  }
  EXPECT_EQ(node.view(0).layout->queued_sends, 0U);
}

}  // namespace
}  // namespace ferry::engine

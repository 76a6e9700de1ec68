// A progress worker is killed at any instruction while it holds the lease: the rank takes the lease
// over, and every message still arrives, or leaves, once and in order.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "shm/lease.h"
#include "tests/engine/rank_fixture.h"
#include "tests/shm/step_kill.h"

namespace ferry::engine {
namespace {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::RequestState;

constexpr uint32_t kHolder = 11;  // any id that is not the worker's
// The number of instructions between kills (primes); the stress test tries many more.
#ifdef FERRY_STRESS
constexpr uint64_t kRefinement = 16;
#else
constexpr uint64_t kRefinement = 1;
#endif

class RankEngineKillTest : public testing::Test {
 protected:
  // Makes `prepare`'s node, lets a worker of `rank` progress in a child, kills it and takes over.
  template <typename Prepare, typename Check>
  void KillWorkerOf(uint32_t rank, uint64_t stride, Prepare&& prepare, Check&& check) {
    const auto progress = [](RankEngine& engine, Effects& effects) { engine.Progress(effects); };
    KillWorkerOf(rank, stride, prepare, progress, check);
  }
  // Kills a worker that calls `act` instead.
  template <typename Prepare, typename Act, typename Check>
  void KillWorkerOf(uint32_t rank, uint64_t stride, Prepare&& prepare, Act&& act, Check&& check) {
    const uint64_t points = shm::ForEachInstruction(
        std::max<uint64_t>(stride / kRefinement, 1),
        [&] {
          node_ = prepare();
          worker_ = std::make_unique<TestRank>(*node_, rank, Runner::kWorker);
        },
        [&] {
          shm::Lease lease(&node_->view(rank).layout->lease);
          lease.TryAcquire(shm::kLeaseWorker);
          Effects effects;
          act(worker_->engine(), effects);
          lease.Release(shm::kLeaseWorker);
        },
        [&](shm::SteppedChild& child) {
          child.Kill();
          shm::Lease lease(&node_->view(rank).layout->lease);
          const bool broken = lease.BreakDead(shm::kLeaseWorker, kHolder);
          ASSERT_TRUE(broken || lease.TryAcquire(kHolder));
          ASSERT_EQ((*node_)[rank].engine().RecoverFromDeadHolder(), ErrorCode::kOk);
          lease.Release(kHolder);
          broken_ += broken ? 1 : 0;
          recovered_ += node_->view(rank).layout->journal.recoveries;
          // The dead worker may have pushed without announcing: the control plane announces again.
          for (uint32_t peer = 0; peer < node_->local_ranks(); ++peer) {
            for (uint32_t lane = 0; lane < shm::LaneCount(node_->local_ranks()); ++lane) {
              shm::Wake(node_->view(peer).inbox.wake()).PublishLane(lane);
            }
          }
          check();
        });
    EXPECT_GT(points, 10U * kRefinement);
    EXPECT_GT(broken_, 8U * kRefinement) << "the worker was hardly ever killed with the lease";
    if (kRefinement > 1) {
      EXPECT_GT(recovered_, 0U) << "no transaction was ever cut";
    }
  }

  std::unique_ptr<TestNode> node_;
  std::unique_ptr<TestRank> worker_;
  uint64_t broken_ = 0;
  uint64_t recovered_ = 0;
};

TEST_F(RankEngineKillTest, DrainedMessagesArriveOnceInOrder) {
  FERRY_REQUIRE_STEPPING();
  // For each path, one message is awaited and one is not.
  const std::vector<uint64_t> sizes = {8, 100, 12'000, 8, 100, 12'000};
  std::vector<uint32_t> receives;
  KillWorkerOf(
      1, 401,
      [&] {
        auto node = std::make_unique<TestNode>(NodeOptions{.request_limit = 32});
        receives.clear();
        for (int i = 0; i < 3; ++i) {
          receives.push_back((*node)[1].Irecv(0, 7, 12'000));
        }
        for (uint32_t i = 0; i < sizes.size(); ++i) {
          (*node)[0].Isend(1, 7, Pattern(sizes[i], i));
        }
        return node;
      },
      [&] {
        TestRank& rank = (*node_)[1];
        for (uint32_t i = 0; i < sizes.size(); ++i) {
          const Outcome received =
              i < receives.size() ? rank.Wait(receives[i]) : rank.Receive(0, 7, 12'000);
          ASSERT_EQ(received.error, ErrorCode::kOk);
          ASSERT_EQ(received.data, Pattern(sizes[i], i)) << "message " << i;
        }
        ProbeResult probe;
        EXPECT_EQ(rank.engine().receives().Probe({0, shm::kAnySource, shm::kAnyTag}, &probe),
                  ErrorCode::kWouldBlock)
            << "a message came twice";
      });
}

// Commands have no transaction, as messages have: each is in the lane, whole, or it is not.
TEST_F(RankEngineKillTest, OneSidedCommandsLeaveOnceInOrderAmongMessages) {
  FERRY_REQUIRE_STEPPING();
  constexpr int32_t kPushes = 6;
  const auto kind_of = [](int32_t number) {
    return static_cast<uint8_t>(number % 2 == 0 ? DescriptorKind::kEager
                                                : DescriptorKind::kOneSided);
  };
  const auto push = [&](RankEngine& engine, int32_t number) {
    Effects effects;
    if (kind_of(number) == static_cast<uint8_t>(DescriptorKind::kEager)) {
      return engine.sends().TrySendInline({1, 0, number, 0}, nullptr, effects);
    }
    Descriptor command{};
    command.kind = kind_of(number);
    command.destination = 1;
    command.tag = number;
    return engine.sends().TryCommand(Core::kDaemon, command);
  };
  KillWorkerOf(
      0, 101,
      [] {
        return std::make_unique<TestNode>(
            NodeOptions{.local_ranks = 1, .remote_ranks = 1, .request_limit = 32});
      },
      [&](RankEngine& engine, Effects&) {
        for (int32_t number = 1; number <= kPushes; ++number) {
          push(engine, number);
        }
      },
      [&] {
        FakeDaemon daemon(node_->view(0));
        std::vector<Descriptor> taken = daemon.Take();
        for (auto next = static_cast<int32_t>(taken.size()) + 1; next <= kPushes; ++next) {
          ASSERT_TRUE(push((*node_)[0].engine(), next));
        }
        const std::vector<Descriptor> rest = daemon.Take();
        taken.insert(taken.end(), rest.begin(), rest.end());
        ASSERT_EQ(taken.size(), static_cast<size_t>(kPushes));
        for (int32_t i = 0; i < kPushes; ++i) {
          ASSERT_EQ(taken[i].tag, i + 1);
          ASSERT_EQ(taken[i].kind, kind_of(i + 1));
          ASSERT_EQ(taken[i].destination, 1U);
        }
      });
}

TEST_F(RankEngineKillTest, ArrivedMessagesAreTakenOnceByTheReceiveThatIsStarted) {
  FERRY_REQUIRE_STEPPING();
  const std::vector<uint64_t> sizes = {8, 100, 12'000};  // the first one matches an earlier receive
  uint32_t posted = 0;
  uint32_t started = 0;
  KillWorkerOf(
      1, 97,
      [&] {
        auto node = std::make_unique<TestNode>(NodeOptions{.request_limit = 32});
        posted = (*node)[1].Irecv(0, 7, 12'000);
        for (uint32_t i = 0; i < sizes.size(); ++i) {
          (*node)[0].Isend(1, 7, Pattern(sizes[i], i));
        }
        started = (*node)[1].NewRequest(shm::RequestKind::kReceive, 0, 7, 0, Pattern(12'000, 9));
        return node;
      },
      [&](RankEngine& engine, Effects& effects) {
        (void)engine.receives().StartReceive(started, effects);
      },
      [&] {
        TestRank& rank = (*node_)[1];
        if (rank.state(started) == RequestState::kInactive) {  // then it has taken nothing
          Effects effects;
          ASSERT_EQ(rank.engine().receives().StartReceive(started, effects), ErrorCode::kOk);
        }
        ASSERT_EQ(rank.Wait(posted).data, Pattern(sizes[0], 0));
        ASSERT_EQ(rank.Wait(started).data, Pattern(sizes[1], 1));
        ASSERT_EQ(rank.Receive(0, 7, 12'000).data, Pattern(sizes[2], 2));
        ProbeResult probe;
        EXPECT_EQ(rank.engine().receives().Probe({0, shm::kAnySource, shm::kAnyTag}, &probe),
                  ErrorCode::kWouldBlock)
            << "a message came twice";
      });
}

TEST_F(RankEngineKillTest, RndvGetsAndCreditsGoToTheDaemonOnce) {
  FERRY_REQUIRE_STEPPING();
  std::vector<uint32_t> receives;
  KillWorkerOf(
      0, 397,
      [&] {
        auto node = std::make_unique<TestNode>(
            NodeOptions{.local_ranks = 1, .remote_ranks = 1, .request_limit = 32});
        shm::PeerWords& peer = node->view(0).by_rank.peers[1];
        peer.drained = kRemoteWindow / 2 - 2;  // the second message owes a credit
        FakeDaemon daemon(node->view(0));
        receives.clear();
        for (int32_t tag = 0; tag < 3; ++tag) {
          receives.push_back((*node)[0].Irecv(1, tag, 1000));
        }
        for (int32_t tag = 0; tag < 3; ++tag) {
          daemon.RemoteRts(1, tag, 1000);
        }
        return node;
      },
      [&] {
        TestRank& rank = (*node_)[0];
        node_->Settle();
        std::vector<uint32_t> rndv_gets;
        uint32_t credits = 0;
        for (const Descriptor& descriptor : FakeDaemon(node_->view(0)).Take()) {
          if (descriptor.kind == static_cast<uint8_t>(DescriptorKind::kRndvGet)) {
            rndv_gets.push_back(PayloadOf<shm::RndvGetCommand>(descriptor).transfer);
          } else {
            ASSERT_EQ(descriptor.kind, static_cast<uint8_t>(DescriptorKind::kCredit));
            credits += PayloadOf<shm::CreditReturn>(descriptor).count;
          }
        }
        EXPECT_EQ(rndv_gets, receives);
        EXPECT_EQ(credits, kRemoteWindow / 2 + 1);
        EXPECT_EQ(node_->view(0).layout->credits_owed, 0U);
        EXPECT_EQ(rank.state(receives[0]), RequestState::kRemoteWait);
      });
}

// Queued sends of rank 0 to local rank 1, or to remote rank 2, leave once the lane has room.
class QueuedSendKillTest : public RankEngineKillTest, public testing::WithParamInterface<bool> {
 protected:
  static constexpr uint32_t kFill = shm::kLaneSlots;
  static uint64_t SizeOf(uint32_t i) { return i % 2 == 0 ? 8 : 12'000; }
};

INSTANTIATE_TEST_SUITE_P(Local, QueuedSendKillTest, testing::Bool());

TEST_P(QueuedSendKillTest, LeaveOnceInOrder) {
  FERRY_REQUIRE_STEPPING();
  const bool local = GetParam();
  const uint32_t destination = local ? 1 : 2;
  std::vector<uint32_t> sends;
  KillWorkerOf(
      0, local ? 97 : 199,
      [&] {
        auto node = std::make_unique<TestNode>(NodeOptions{
            .local_ranks = 2, .remote_ranks = 1, .request_limit = 32, .unexpected_limit = 512});
        shm::LaneLayout* lane =
            local ? node->view(1).inbox.lane(0) : &node->view(0).layout->to_daemon;
        (*node)[0].engine().sends().OpenLane(destination);
        shm::LaneProducer producer(lane);
        while (producer.TryPush(Descriptor{})) {
        }
        sends.clear();
        for (uint32_t i = 0; i < 4; ++i) {
          sends.push_back((*node)[0].Isend(destination, 7, Pattern(SizeOf(i), i)));
        }
        shm::LaneConsumer consumer(lane);
        for (uint32_t i = 0; i < kFill; ++i) {
          consumer.Pop();
        }
        return node;
      },
      [&] {
        TestRank& rank = (*node_)[0];
        if (local) {
          for (uint32_t i = 0; i < 4; ++i) {
            ASSERT_EQ((*node_)[1].Receive(0, 7, 12'000).data, Pattern(SizeOf(i), i));
            ASSERT_EQ(rank.Wait(sends[i]).error, ErrorCode::kOk);
          }
          node_->Settle();
          ProbeResult probe;
          EXPECT_EQ((*node_)[1].engine().receives().Probe({0, 0, 7}, &probe),
                    ErrorCode::kWouldBlock)
              << "a message was sent twice";
        } else {
          node_->Settle();
          const std::vector<Descriptor> taken = FakeDaemon(node_->view(0)).Take();
          ASSERT_EQ(taken.size(), 4U);
          for (uint32_t i = 0; i < 4; ++i) {
            EXPECT_EQ(taken[i].size_bytes, SizeOf(i));
            EXPECT_EQ(rank.state(sends[i]),
                      i % 2 == 0 ? RequestState::kComplete : RequestState::kRemoteWait);
          }
          EXPECT_EQ(node_->view(0).by_rank.peers[2].sent, 4U);
        }
        EXPECT_EQ(node_->view(0).layout->queued_sends, 0U);
        EXPECT_EQ(node_->view(0).by_rank.peers[destination].queue_first, 0U);
      });
}

// ---- Direct links: what a worker does for them

class PathKillTest : public RankEngineKillTest {
 protected:
  static constexpr uint32_t kFar = 1;

  static std::unique_ptr<TestNode> MakeNode() {
    auto node = std::make_unique<TestNode>(
        NodeOptions{.local_ranks = 1, .remote_ranks = 1, .request_limit = 32});
    (*node)[0].engine().sends().OpenLane(kFar);
    return node;
  }
  // Answers the marker that is out.
  static void Answer(TestNode& node) {
    const shm::PeerWords& peer = node.view(0).by_rank.peers[kFar];
    ASSERT_TRUE(FakeDaemon(node.view(0))
                    .Push(DescriptorKind::kCredit, kFar, 0, 0,
                          shm::CreditReturn{peer.sent, shm::kCreditAll, 0, peer.path_epoch, {}}));
  }
  static void UseLink(TestNode& node) {
    Effects effects;
    ASSERT_EQ(node[0].engine().paths().UseLink(kFar, effects), ErrorCode::kOk);
    Answer(node);
    node.Settle();
    (void)FakeDaemon(node.view(0)).Take();
  }
  shm::PeerWords& peer() { return node_->view(0).by_rank.peers[kFar]; }
  shm::SessionLayout& session() { return *node_->view(0).layout; }
  std::vector<Descriptor> TakeAll() {
    node_->Settle();
    return FakeDaemon(node_->view(0)).Take();
  }
};

TEST_F(PathKillTest, MarkersAreAnsweredOnce) {
  FERRY_REQUIRE_STEPPING();
  KillWorkerOf(
      0, 97,
      [] {
        auto node = MakeNode();
        FakeDaemon daemon(node->view(0));
        daemon.Eager(kFar, 7, "before");
        daemon.Push(DescriptorKind::kSwitch, kFar, 0, 0, shm::SwitchMarker{3, 0, {}});
        return node;
      },
      [&] {
        const std::vector<Descriptor> said = TakeAll();
        ASSERT_EQ(said.size(), 1U);
        const auto credit = PayloadOf<shm::CreditReturn>(said[0]);
        EXPECT_EQ(credit.count, 1U);
        EXPECT_EQ(credit.flags, shm::kCreditAll);
        EXPECT_EQ(credit.epoch, 3U);
        EXPECT_EQ(peer().inward_path, static_cast<uint32_t>(shm::PeerPath::kLink));
        EXPECT_EQ(peer().marker_owed, 0U);
        EXPECT_EQ(session().credits_owed, 0U);
        EXPECT_EQ(session().linked_peers, 1U);
        EXPECT_EQ((*node_)[0].Receive(kFar, 7, 16).data, "before");
      });
}

TEST_F(PathKillTest, AnAnswerLetsMessagesGoOnceInOrder) {
  FERRY_REQUIRE_STEPPING();
  KillWorkerOf(
      0, 199,
      [] {
        auto node = MakeNode();
        UseLink(*node);
        Effects effects;
        (*node)[0].engine().paths().LeaveLink(kFar, effects);
        for (int i = 0; i < 3; ++i) {
          (*node)[0].Isend(kFar, i, "x");
        }
        Answer(*node);
        return node;
      },
      [&] {
        const std::vector<Descriptor> said = TakeAll();
        ASSERT_EQ(said.size(), 3U);
        for (int i = 0; i < 3; ++i) {
          EXPECT_EQ(said[i].kind, static_cast<uint8_t>(DescriptorKind::kEager));
          EXPECT_EQ(said[i].tag, i);
        }
        EXPECT_EQ(peer().path, static_cast<uint32_t>(shm::PeerPath::kDaemon));
        EXPECT_EQ(peer().sent - peer().credited, 3U);
        EXPECT_EQ(session().queued_sends, 0U);
        EXPECT_EQ(session().linked_peers, 0U);
      });
}

// A link is asked for, and another one's marker leaves, once there is room.
TEST_F(PathKillTest, MarkersAndWordsForTheDaemonLeaveOnce) {
  FERRY_REQUIRE_STEPPING();
  KillWorkerOf(
      0, 199,
      [] {
        auto node = std::make_unique<TestNode>(
            NodeOptions{.local_ranks = 1, .remote_ranks = 2, .request_limit = 32});
        (*node)[0].engine().sends().OpenLane(kFar);
        node->view(0).layout->link_after_messages = 1;
        FakeDaemon daemon(node->view(0));
        daemon.FillLane();
        (*node)[0].Isend(2, 7, "x");
        Effects effects;
        (void)(*node)[0].engine().paths().UseLink(kFar, effects);
        (void)daemon.Take();
        return node;
      },
      [&] {
        std::vector<uint8_t> kinds;
        for (const Descriptor& descriptor : TakeAll()) {
          kinds.push_back(descriptor.kind);
        }
        EXPECT_EQ(kinds, (std::vector<uint8_t>{static_cast<uint8_t>(DescriptorKind::kEager),
                                               static_cast<uint8_t>(DescriptorKind::kSwitch),
                                               static_cast<uint8_t>(DescriptorKind::kLinkWanted)}));
        EXPECT_EQ(peer().path, static_cast<uint32_t>(shm::PeerPath::kToLink));
        EXPECT_EQ(peer().path_epoch, 1U);
        EXPECT_EQ(node_->view(0).by_rank.links[2].state,
                  static_cast<uint32_t>(shm::LinkState::kAsked));
        EXPECT_EQ(session().linked_peers, 1U);
        EXPECT_EQ(session().link_duties, 0U);
      });
}

TEST_F(PathKillTest, ACutBeginsThePathsAnewOnce) {
  FERRY_REQUIRE_STEPPING();
  std::vector<uint32_t> sends;
  KillWorkerOf(
      0, 101,
      [&] {
        auto node = MakeNode();
        UseLink(*node);
        FakeDaemon(node->view(0))
            .Push(DescriptorKind::kSwitch, kFar, 0, 0, shm::SwitchMarker{1, 0, {}});
        node->Settle();
        sends = {(*node)[0].Isend(kFar, 7, Pattern(12'000, 1)),
                 (*node)[0].Isend(kFar, 7, Pattern(12'000, 2))};
        node->MarkDead(0, kFar, ErrorCode::kLinkDown);
        return node;
      },
      [&] {
        node_->Settle();
        for (const uint32_t send : sends) {
          EXPECT_EQ((*node_)[0].Finish(send).error, ErrorCode::kLinkDown);
        }
        for (const uint32_t word :
             {peer().path, peer().inward_path, peer().sent, peer().credited, peer().pushed,
              peer().pushed_credited, peer().marker_owed, session().linked_peers,
              session().credits_owed, session().queued_sends,
              node_->view(0).by_rank.links[kFar].state}) {
          EXPECT_EQ(word, 0U);
        }
        EXPECT_EQ(peer().path_epoch, 1U);
      });
}

}  // namespace
}  // namespace ferry::engine

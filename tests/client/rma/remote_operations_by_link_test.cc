// A rank's one-sided operations with a rank to which it has a direct link: when they take it, and
// what becomes of them when that changes.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "shm/accumulate.h"
#include "tests/client/rma/remote_operations_fixture.h"

namespace ferry::client {
namespace {

using shm::PeerPath;

// Nothing turns the links but the test.
class IdleTurns final : public LinkTurns {
 public:
  explicit IdleTurns(uint32_t job_size) : LinkTurns(job_size) { SetLinks(1); }
  uint32_t Turn(engine::Effects& effects) override {
    effects.to_link = false;
    return 0;
  }
  void Arm() override {}
  void Serve() override {}
  uint32_t Expose(std::byte* /*base*/, uint64_t /*size_bytes*/,
                  shm::ElementLock* /*lock*/) override {
    return 0;
  }
  void Unexpose(uint32_t /*segment*/) override {}
  void GiveUpLinks() override { ++given_up; }
  int given_up = 0;
  bool IsHeldFor(uint32_t peer) const { return IsHeld(peer); }
};

class RemoteOperationsByLinkTest : public RemoteOperationsTest {
 protected:
  RemoteOperationsByLinkTest() {
    progress_.SetLinks(&links_, [](const engine::Effects&) {});
  }

  // Of messages to the peer.
  void SetPath(PeerPath path) {
    shm::StoreRelaxed(rank_.view().by_rank.peers[kPeer].path, static_cast<uint32_t>(path));
  }
  // Which lanes have commands.
  std::string Waiting() {
    const bool by_daemon = shm::LaneConsumer(&rank_.view().layout->to_daemon).Peek() != nullptr;
    const bool by_link = shm::LaneConsumer(&rank_.view().layout->to_link).Peek() != nullptr;
    return std::string(by_daemon ? "daemon" : "") + (by_link ? "link" : "");
  }
  void PutAndExpect(const std::string& lane) {
    EXPECT_EQ(Put(0, Text(8)), ErrorCode::kOk);
    EXPECT_EQ(Waiting(), lane);
    daemon_.Serve();
    core_.Serve();
  }

  IdleTurns links_{rank_.view().job_size};
  FakeOneSidedDaemon core_{rank_.view(), engine::Core::kLink};
};

TEST_F(RemoteOperationsByLinkTest, TheyTakeTheLinkOnceNoneIsUnderWay) {
  EXPECT_EQ(Put(0, Text(8)), ErrorCode::kOk);
  SetPath(PeerPath::kToLink);
  EXPECT_EQ(Put(8, Text(8)), ErrorCode::kOk);
  SetPath(PeerPath::kLink);
  EXPECT_EQ(Put(16, Text(8)), ErrorCode::kOk);
  EXPECT_EQ(Waiting(), "daemon");
  EXPECT_EQ(daemon_.Take(), 3U) << "the first was under way";
  daemon_.CarryOut();
  EXPECT_EQ(carried_on_, 0U);
  const std::string data = Text(5000, 7);
  EXPECT_EQ(Put(24, data), ErrorCode::kOk);
  EXPECT_EQ(Waiting(), "link");
  EXPECT_EQ(carried_on_, 1U);
  EXPECT_EQ(core_.Take(), 1U);
  EXPECT_EQ(core_.under_way.front().number, 4U);
  EXPECT_EQ(core_.under_way.front().data.size(), data.size());
  core_.CarryOut();
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(core_.MemoryOf(kPeer)) + 24, data.size()), data);
  EXPECT_FALSE(links_.IsHeldFor(kPeer));
}

TEST_F(RemoteOperationsByLinkTest, OtherRanksAreReachedByTheDaemons) {
  SetPath(PeerPath::kLink);
  EXPECT_EQ(Put(0, Text(8), {}, kOther), ErrorCode::kOk);
  EXPECT_EQ(Waiting(), "daemon");
}

// Where only streams reach, no link does.
TEST_F(RemoteOperationsByLinkTest, MemoryForStreamsIsReachedByTheDaemons) {
  SetPath(PeerPath::kLink);
  PutAndExpect("link");
  Signal none;
  uint64_t word = 0;
  EXPECT_EQ(remote_.Put(context_, {kPeer, kSegment | kSegmentByStream, 0}, &word, 8, none),
            ErrorCode::kOk);
  EXPECT_EQ(Waiting(), "daemon");
  EXPECT_EQ(links_.given_up, 1) << "the next ones need not change their way";
  daemon_.Serve();
  PutAndExpect("link");
}

// Where the program's own memory is, only links do.
TEST_F(RemoteOperationsByLinkTest, WhatTheProgramExposesIsReachedByTheLinkOrNotAtAll) {
  const RemoteAddress exposed{kPeer, kSegmentPrivate | 5, 0};
  const auto put = [&] { return remote_.Put(context_, exposed, "12345678", 8, {}); };
  for (const PeerPath path :
       {PeerPath::kDaemon, PeerPath::kToLink, PeerPath::kToDaemon, PeerPath::kBroken}) {
    SetPath(path);
    EXPECT_EQ(put(), ErrorCode::kUnsupported);
    EXPECT_EQ(Waiting(), "");
  }
  SetPath(PeerPath::kDaemon);
  EXPECT_EQ(Put(0, Text(8)), ErrorCode::kOk);
  SetPath(PeerPath::kLink);
  EXPECT_EQ(Put(8, Text(8)), ErrorCode::kOk);
  EXPECT_EQ(daemon_.Take(), 2U) << "the first was under way";
  int looks = 0;
  meanwhile_ = [&] {
    EXPECT_EQ(Waiting(), "") << "it waits for them";
    if (++looks == 3) {
      daemon_.CarryOut();
    }
  };
  EXPECT_EQ(put(), ErrorCode::kOk);
  EXPECT_EQ(looks, 3);
  EXPECT_EQ(Waiting(), "link");
  ASSERT_EQ(core_.Take(), 1U);
  EXPECT_EQ(core_.under_way.front().descriptor.context, exposed.segment);
}

// And all elements: whoever changes them has their lock.
TEST_F(RemoteOperationsByLinkTest, ElementsThatTheProgramExposesAreChangedByTheLink) {
  SetPath(PeerPath::kLink);
  const auto sum = *shm::Accumulation::Of(reduction::OpKind::kSum, reduction::NumberKind::kFloat64);
  const double one = 1;
  EXPECT_EQ(remote_.Accumulate(context_, {{kPeer, kSegmentPrivate | 5, 12}, sum, 1}, &one, nullptr,
                               WhenDone::kAtQuiet),
            ErrorCode::kOk);
  EXPECT_EQ(Waiting(), "link");
}

// So do accumulates, unless no CPU changes their elements at once.
TEST_F(RemoteOperationsByLinkTest, AccumulatesThatOnlyFerrydCanCarryOutLeaveTheLink) {
  SetPath(PeerPath::kLink);
  const auto sum = *shm::Accumulation::Of(reduction::OpKind::kSum, reduction::NumberKind::kFloat64);
  const double one = 1;
  const auto add_at = [&](uint64_t offset) {
    EXPECT_EQ(remote_.Accumulate(context_, {{kPeer, kSegment, offset}, sum, 1}, &one, nullptr,
                                 WhenDone::kAtQuiet),
              ErrorCode::kOk);
  };
  add_at(8);
  EXPECT_EQ(Waiting(), "link");
  meanwhile_ = [this] { core_.Serve(); };
  add_at(12);
  EXPECT_EQ(Waiting(), "daemon");
  daemon_.Serve();
  PutAndExpect("link");
}

TEST_F(RemoteOperationsByLinkTest, WhenTheLinkIsLeftThoseByItEndFirst) {
  for (const PeerPath path : {PeerPath::kToDaemon, PeerPath::kDaemon}) {
    SetPath(PeerPath::kLink);
    EXPECT_EQ(Put(0, Text(8)), ErrorCode::kOk);
    SetPath(path);
    int looks = 0;
    meanwhile_ = [&] {
      EXPECT_EQ(Waiting(), looks < 3 ? "link" : "");
      if (++looks == 3) {
        core_.Serve();
      }
    };
    EXPECT_EQ(Put(8, Text(8)), ErrorCode::kOk);
    EXPECT_GE(looks, 3);
    EXPECT_EQ(Waiting(), "daemon");
    daemon_.Serve();
    meanwhile_ = [] {};
    EXPECT_EQ(Quiet(), ErrorCode::kOk);
  }
}

// They have no number.
TEST_F(RemoteOperationsByLinkTest, LongOnesKeepThePath) {
  SetPath(PeerPath::kLink);
  const std::string data = Text(100'000);
  Signal none;
  EXPECT_EQ(remote_.Put(context_, {kPeer, kSegment, 64}, data.data(), data.size(), none,
                        WhenDone::kAtQuiet),
            ErrorCode::kOk);
  ASSERT_EQ(core_.Take(), 1U);
  EXPECT_EQ(core_.under_way.front().here(), reinterpret_cast<const std::byte*>(data.data()))
      << "the rank's own core reaches it where it lies";
  SetPath(PeerPath::kDaemon);
  int looks = 0;
  meanwhile_ = [&] {
    EXPECT_EQ(Waiting(), "");
    if (++looks == 3) {
      core_.CarryOut();
    }
  };
  EXPECT_EQ(Put(0, Text(8)), ErrorCode::kOk);
  EXPECT_EQ(looks, 3);
  EXPECT_EQ(Waiting(), "daemon");
  daemon_.Serve();
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(core_.MemoryOf(kPeer)) + 64, data.size()), data);
}

TEST_F(RemoteOperationsByLinkTest, LongGetsLandWhereTheyAreWanted) {
  SetPath(PeerPath::kLink);
  const std::string data = Text(50'000);
  std::memcpy(core_.MemoryOf(kPeer) + 64, data.data(), data.size());
  std::string got(data.size(), ' ');
  meanwhile_ = [&] {
    ASSERT_EQ(core_.Take(), 1U);
    EXPECT_EQ(core_.under_way.front().here(), reinterpret_cast<const std::byte*>(got.data()));
    core_.CarryOut();
  };
  EXPECT_EQ(
      remote_.Get(context_, got.data(), {kPeer, kSegment, 64}, got.size(), WhenDone::kAtReturn),
      ErrorCode::kOk);
  EXPECT_EQ(got, data);
}

TEST_F(RemoteOperationsByLinkTest, AnswersComeByEitherPath) {
  daemon_.Word(kPeer, 0) = core_.Word(kPeer, 0) = 5;
  uint64_t found = 0;
  EXPECT_EQ(FetchAdd(0, 1, &found), ErrorCode::kOk);
  EXPECT_EQ(found, 5U);
  EXPECT_EQ(daemon_.Word(kPeer, 0), 6U);
  SetPath(PeerPath::kLink);
  meanwhile_ = [this] { core_.Serve(); };
  EXPECT_EQ(FetchAdd(0, 10, &found), ErrorCode::kOk);
  EXPECT_EQ(found, 5U);
  EXPECT_EQ(core_.Word(kPeer, 0), 15U);
}

// Each core tells its own.
TEST_F(RemoteOperationsByLinkTest, FailuresOfBothPathsAreTold) {
  for (int round = 0; round < 3; ++round) {
    SetPath(PeerPath::kDaemon);
    EXPECT_EQ(Put(FakeOneSidedDaemon::kSegmentBytes, Text(8)), ErrorCode::kOk);
    daemon_.Serve();
    SetPath(PeerPath::kLink);
    PutAndExpect("link");
    EXPECT_EQ(Quiet(), ErrorCode::kInvalidBuffer);
    EXPECT_EQ(Put(FakeOneSidedDaemon::kSegmentBytes, Text(8)), ErrorCode::kOk);
    EXPECT_EQ(Waiting(), "link");
    core_.Serve();
    EXPECT_EQ(Quiet(), ErrorCode::kInvalidBuffer);
    EXPECT_EQ(Quiet(), ErrorCode::kOk);
  }
}

// From when it looks for the path, until its last command is in the lane: all the time that it
// waits for a cell.
TEST_F(RemoteOperationsByLinkTest, AnOperationHoldsTheLink) {
  SetPath(PeerPath::kLink);
  const std::string data = Text(shm::kCellBytes);
  for (uint32_t i = 0; i < shm::kLaneCells; ++i) {
    ASSERT_EQ(Put(0, data), ErrorCode::kOk);
    EXPECT_FALSE(links_.IsHeldFor(kPeer));
  }
  int looks = 0;
  meanwhile_ = [&] {
    EXPECT_TRUE(links_.IsHeldFor(kPeer));
    SetPath(PeerPath::kToDaemon);  // which it does not mind any more
    if (++looks == 3) {
      core_.Serve();
    }
  };
  EXPECT_EQ(Put(0, data), ErrorCode::kOk);
  EXPECT_EQ(looks, 3);
  EXPECT_EQ(Waiting(), "link");
  EXPECT_FALSE(links_.IsHeldFor(kPeer));
}

// ---- A link that is lost

TEST_F(RemoteOperationsByLinkTest, WhatComesAfterALossWaitsForTheDaemons) {
  SetPath(PeerPath::kBroken);
  int looks = 0;
  meanwhile_ = [&] {
    EXPECT_EQ(Waiting(), "");
    if (++looks == 3) {
      daemon_.Lose(kPeer, ErrorCode::kLinkDown);  // they part the two
    }
  };
  EXPECT_EQ(Put(0, Text(8)), ErrorCode::kLinkDown);
  EXPECT_EQ(looks, 3);
  daemon_.Mend(kPeer);
  SetPath(PeerPath::kDaemon);
  PutAndExpect("daemon");
}

TEST_F(RemoteOperationsByLinkTest, OfADeathTheRankHearsAfterTheLoss) {
  for (const ErrorCode reason :
       {ErrorCode::kPeerDied, ErrorCode::kNodeUnreachable, ErrorCode::kLinkDown}) {
    for (const bool has_result : {false, true}) {
      SetPath(PeerPath::kLink);
      ErrorCode result = ErrorCode::kOk;
      int looks = 0;
      const auto lose = [&] {
        if (++looks == 1) {
          core_.Take();
          const uint64_t number = core_.under_way.front().number;
          SetPath(PeerPath::kBroken);
          core_.Lose(kPeer, ErrorCode::kLinkDown);
          daemon_.Mend(kPeer);  // that is not known yet
          EXPECT_EQ(shm::LoadAcquire(rank_.view().by_rank.one_sided[kPeer].done), number);
        } else if (looks == 4) {
          daemon_.Lose(kPeer, reason);
        }
      };
      meanwhile_ = lose;
      if (has_result) {
        uint64_t found = 0;
        result = FetchAdd(0, 1, &found);
      } else {
        EXPECT_EQ(Put(0, Text(8)), ErrorCode::kOk);
        result = Quiet();
      }
      EXPECT_EQ(result, reason);
      EXPECT_EQ(looks, 4);
      daemon_.Mend(kPeer);
      SetPath(PeerPath::kDaemon);
      PutAndExpect("daemon");
    }
  }
}

// ---- Threads

TEST_F(RemoteOperationsByLinkTest, ThreadsGoOnWhileThePathChanges) {
  LetThreadsCall();
  constexpr int kThreads = 3;
  constexpr uint64_t kRounds = 300;
  std::atomic<int> running = kThreads;
  std::vector<std::thread> threads;
  std::atomic<uint64_t> wrong = 0;
  std::atomic<uint64_t> added = 0;
  std::atomic<bool> have_both_carried = false;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      OneSidedContext own;
      const std::string data = Text(100 + 3000 * static_cast<uint64_t>(thread));
      for (uint64_t round = 0; round < kRounds || !have_both_carried; ++round) {
        const AtomicCall add{{kPeer, kSegment, 0}, OneSidedOperation::kAdd, 8, 1};
        wrong += remote_.Atomic(own, add, nullptr, WhenDone::kAtQuiet) != ErrorCode::kOk;
        wrong +=
            remote_.Put(own, {kPeer, kSegment, 64}, data.data(), data.size(), {}) != ErrorCode::kOk;
        uint64_t found = 0;
        added += 1;
        if (round % 3 == 0) {
          added += 1;
          wrong += remote_.Atomic(own, add, &found, WhenDone::kAtReturn) != ErrorCode::kOk;
        } else if (round % 3 == 1) {
          uint32_t rank = 0;
          wrong += remote_.Quiet(own, std::nullopt, &rank) != ErrorCode::kOk;
        }
      }
      uint32_t rank = 0;
      wrong += remote_.Quiet(own, std::nullopt, &rank) != ErrorCode::kOk;
      --running;
    });
  }
  uint64_t carried[2] = {0, 0};
  uint64_t changes = 0;
  while (running != 0) {
    // Never has one path any while the other has some.
    const size_t by_daemon = daemon_.Take();
    const size_t by_link = core_.Take();
    EXPECT_TRUE(by_daemon == 0 || by_link == 0);
    carried[0] += by_daemon;
    carried[1] += by_link;
    have_both_carried = carried[0] != 0 && carried[1] != 0;
    daemon_.CarryOut();
    core_.CarryOut();
    constexpr PeerPath kCircle[] = {PeerPath::kDaemon, PeerPath::kToLink, PeerPath::kLink,
                                    PeerPath::kToDaemon};
    SetPath(kCircle[++changes / 64 % 4]);
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(daemon_.Word(kPeer, 0) + core_.Word(kPeer, 0), added);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(links_.IsHeldFor(kPeer));
  }
}

}  // namespace
}  // namespace ferry::client

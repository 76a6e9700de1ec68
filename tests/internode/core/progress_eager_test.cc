// Small and medium messages between nodes, credits, deaths, wrong commands and packets.
#include <unistd.h>

#include <cstring>

#include "daemon/progress/progress_plane.h"
#include "internode/wire/wire.h"
#include "shm/atomic.h"
#include "tests/internode/core/forged_packets.h"
#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

class ProgressEagerTest : public PlaneTest {
 protected:
  // Returns true once the daemon of the rank sleeps.
  bool FallsAsleep(uint32_t of_rank) {
    return Eventually([&] {
      return shm::LoadAcquire(rank(of_rank).session().layout()->daemon_wake.sleepers) != 0;
    });
  }
};

TEST_F(ProgressEagerTest, CarriesInlineAndMediumMessages) {
  Start({1, 1});
  for (const uint64_t size_bytes :
       {uint64_t{0}, uint64_t{8}, uint64_t{32}, uint64_t{33}, uint64_t{8192}}) {
    const std::vector<std::byte> sent = Pattern(size_bytes, 1);
    std::vector<std::byte> got(size_bytes + 1);
    const uint32_t receive = rank(1).Receive(0, 5, Private(got.data()), got.size());
    const uint32_t send = rank(0).Send(1, 5, sent.data(), size_bytes);
    EXPECT_EQ(rank(0).Wait(send), ErrorCode::kOk);
    EXPECT_EQ(rank(1).Wait(receive), ErrorCode::kOk);
    EXPECT_EQ(rank(1).MessageBytes(receive), size_bytes);
    got.resize(size_bytes);
    EXPECT_EQ(got, sent);
  }
}

TEST_F(ProgressEagerTest, RanksThatEndTogetherAreAllToldOf) {
  Start({1, 3});
  const auto dead = [&](uint32_t peer) {
    return static_cast<ErrorCode>(shm::LoadAcquire(rank(0).view().by_rank.peers[peer].dead));
  };
  EXPECT_EQ(Carry(2, 0), ErrorCode::kOk);
  int word = 0;
  const uint32_t from_first = rank(0).Receive(1, 1, Private(&word), sizeof(word));
  const uint32_t from_last = rank(0).Receive(3, 1, Private(&word), sizeof(word));
  const daemon::DataPlane::RankEnd ends[] = {{1, ErrorCode::kPeerDied},
                                             {99, ErrorCode::kPeerDied},  // there is none
                                             {3, ErrorCode::kNodeUnreachable}};
  plane(0).RanksEnded(kJob, ends);
  EXPECT_EQ(rank(0).Wait(from_first), ErrorCode::kPeerDied);
  EXPECT_EQ(rank(0).Wait(from_last), ErrorCode::kNodeUnreachable);
  EXPECT_EQ(dead(1), ErrorCode::kPeerDied);
  EXPECT_EQ(dead(2), ErrorCode::kOk);
  EXPECT_EQ(dead(3), ErrorCode::kNodeUnreachable);
  EXPECT_EQ(Carry(2, 0), ErrorCode::kOk);
}

// So a rank that gives up because of it, and says so to others, is not asked for the reason.
TEST_F(ProgressEagerTest, ADeathIsToldAheadOfWhatSurvivorsSay) {
  Start({1, 2});
  const auto dead = [&] {
    return static_cast<ErrorCode>(shm::LoadAcquire(rank(0).view().by_rank.peers[1].dead));
  };
  EXPECT_EQ(Carry(2, 0), ErrorCode::kOk);
  EXPECT_EQ(dead(), ErrorCode::kOk);
  plane(1).RankEnded(kJob, 1, ErrorCode::kWorkerDied);
  EXPECT_EQ(Carry(2, 0), ErrorCode::kOk);
  EXPECT_EQ(dead(), ErrorCode::kWorkerDied);
  plane(0).RankEnded(kJob, 1, ErrorCode::kWorkerDied);  // what the control plane says comes later
  EXPECT_EQ(dead(), ErrorCode::kWorkerDied);
  EXPECT_EQ(Carry(0, 2), ErrorCode::kOk);
}

TEST_F(ProgressEagerTest, TruncatesToTheReceiversBuffer) {
  Start({1, 1});
  const std::vector<std::byte> sent = Pattern(100, 1);
  std::vector<std::byte> got(40);
  const uint32_t receive = rank(1).Receive(0, 5, Private(got.data()), got.size());
  rank(0).Send(1, 5, sent.data(), sent.size());
  EXPECT_EQ(rank(1).Wait(receive), ErrorCode::kTruncated);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin()));
}

// The receiver reads nothing until its senders are out of credit; then it reads all, in order.
TEST_F(ProgressEagerTest, BoundsWhatASlowReceiverMakesWait) {
  constexpr uint32_t kMessages = 10'000;
  Start({1, 2, 1});  // rank 1 receives from 0 and 3; rank 2 is a bystander
  uint32_t sent[4] = {};
  const auto send_some = [&](uint32_t from) {
    // Sends as many as leave at once: the rest stays with the sender.
    while (sent[from] < kMessages / 2) {
      const uint64_t word = sent[from];
      if (rank(from).engine().WaitsForRoom()) {
        rank(from).Progress();
        return;
      }
      const uint32_t request = rank(from).Send(1, static_cast<int32_t>(from), &word, sizeof(word));
      ++sent[from];
      if (request != 0) {
        rank(from).Progress();
        return;
      }
    }
    rank(from).Progress();  // the last one may have been queued
  };
  for (int i = 0; i < 100; ++i) {
    send_some(0);
    send_some(3);
  }
  // At most 32 of each sender are on their way; its next one waits in its own queue.
  EXPECT_LE(sent[0], engine::kRemoteWindow + 1);
  EXPECT_LE(sent[3], engine::kRemoteWindow + 1);
  EXPECT_EQ(Carry(0, 2), ErrorCode::kOk);  // the slow rank is in no other's way
  for (uint32_t i = 0; i < kMessages / 2; ++i) {
    for (const uint32_t from : {0U, 3U}) {
      uint64_t got = ~uint64_t{0};
      const uint32_t receive = rank(1).Receive(
          static_cast<int32_t>(from), static_cast<int32_t>(from), Private(&got), sizeof(got));
      ASSERT_TRUE(Eventually([&] {
        send_some(from);
        rank(1).Progress();
        return rank(1).Test(receive);
      })) << "message "
          << i << " of rank " << from;
      EXPECT_EQ(rank(1).Wait(receive), ErrorCode::kOk);
      ASSERT_EQ(got, i);
    }
  }
  EXPECT_TRUE(told_.failed_jobs.empty());
}

// More unexpected medium messages than the lane has cells: they are parked, and the one that is
// awaited comes through.
TEST_F(ProgressEagerTest, ManyUnexpectedMediumMessagesDoNotBlockTheAwaitedOne) {
  constexpr uint32_t kUnexpected = 500;
  Start({1, 1});
  std::vector<std::vector<std::byte>> sent;
  std::vector<uint32_t> queued;
  for (uint32_t i = 0; i < kUnexpected; ++i) {
    sent.push_back(Pattern(1000 + i, i));
    const uint32_t request = rank(0).Send(1, 1, sent.back().data(), sent.back().size());
    if (request != 0) {
      queued.push_back(request);
    }
    rank(1).Progress();
    // Makes all but a few go eagerly.
    Meanwhile([&] { return !rank(0).engine().WaitsForRoom(); });
  }
  uint64_t awaited = 0;
  const uint64_t word = 4711;
  const uint32_t receive = rank(1).Receive(0, 2, Private(&awaited), sizeof(awaited));
  const uint32_t send = rank(0).Send(1, 2, &word, sizeof(word));
  ASSERT_TRUE(Meanwhile([&] { return rank(0).Test(send); }));
  EXPECT_EQ(rank(1).Wait(receive), ErrorCode::kOk);
  EXPECT_EQ(awaited, word);
  for (uint32_t i = 0; i < kUnexpected; ++i) {
    std::vector<std::byte> got(sent[i].size());
    // Receives go into private memory and into the heap in turn.
    const bool heap = i % 2 == 0;
    const uint32_t request =
        rank(1).Receive(0, 1, heap ? InHeap(64) : Private(got.data()), got.size());
    ASSERT_EQ(rank(1).Wait(request), ErrorCode::kOk) << i;
    if (heap) {
      std::memcpy(got.data(), rank(1).heap() + 64, got.size());
    }
    ASSERT_EQ(got, sent[i]) << i;
  }
  for (const uint32_t request : queued) {
    EXPECT_EQ(rank(0).Wait(request), ErrorCode::kOk);
  }
}

// Messages that wait in a rank's lane when the daemon looks go out as one message of the transport.
TEST_F(ProgressEagerTest, SendsWhatWaitsTogether) {
  constexpr uint64_t kMessages = 20;
  StartPlanes({1, 1}, FastOptions());
  AttachAlone(1);
  amend_session_ = [](Session& session) {
    shm::LaneProducer lane(&session.layout()->to_daemon);
    lane.Open(0);
    for (uint64_t word = 0; word < kMessages; ++word) {
      shm::Descriptor command = MakeCommand(shm::DescriptorKind::kEager, word);
      command.destination = 1;
      command.tag = 3;
      command.size_bytes = word % 8 + 1;  // so that most need padding
      ASSERT_TRUE(lane.TryPush(command));
    }
  };
  Attach(0);
  for (uint64_t word = 0; word < kMessages; ++word) {
    uint64_t got = 0;
    const uint32_t receive = rank(1).Receive(0, 3, Private(&got), sizeof(got));
    EXPECT_EQ(rank(1).Wait(receive), ErrorCode::kOk);
    EXPECT_EQ(rank(1).MessageBytes(receive), word % 8 + 1);
    EXPECT_EQ(got, word);
  }
  EXPECT_EQ(plane(0).Nic().messages_sent + plane(1).Nic().messages_received, 2U);
}

TEST_F(ProgressEagerTest, SendsMiddleSizedHeapMessagesAlongWithTheirRts) {
  Start({1, 1});
  for (const uint64_t size_bytes : {uint64_t{8193}, uint64_t{16384}, uint64_t{shm::kRunBytes}}) {
    const std::vector<std::byte> sent = Pattern(size_bytes, 7);
    std::memcpy(rank(0).heap() + 96, sent.data(), size_bytes);
    std::vector<std::byte> got(size_bytes);
    ExpectEnd(Begin(0, 1, InHeap(96), Private(got.data()), size_bytes));
    EXPECT_EQ(got, sent);
  }
  EXPECT_EQ(plane(1).Nic().reads, 0U);
}

// Beyond 32 KiB only the first message of a stream carries its data; the others are fetched.
TEST_F(ProgressEagerTest, FetchesTheLongMessagesOfAStream) {
  constexpr uint64_t kMessages = 4;
  constexpr uint64_t kRtsBytes = sizeof(progress::PacketHeader) + sizeof(progress::WireRts);
  StartPlanes({1, 1}, FastOptions());
  AttachAlone(0);
  std::vector<uint32_t> sends;
  for (uint64_t i = 0; i < kMessages; ++i) {
    const std::vector<std::byte> data = Pattern(shm::kRunBytes, i);
    std::memcpy(rank(0).heap() + i * shm::kRunBytes, data.data(), data.size());
    sends.push_back(rank(0).SendFrom(1, 3, InHeap(i * shm::kRunBytes), shm::kRunBytes));
  }
  const uint64_t expected = shm::kRunBytes + kMessages * kRtsBytes;
  ASSERT_TRUE(Eventually([&] { return plane(0).Nic().bytes_sent >= expected; }));
  EXPECT_LT(plane(0).Nic().bytes_sent, 2 * uint64_t{shm::kRunBytes});
  AttachAlone(1);
  for (uint64_t i = 0; i < kMessages; ++i) {
    std::vector<std::byte> got(shm::kRunBytes);
    const uint32_t receive = rank(1).Receive(0, 3, Private(got.data()), got.size());
    ASSERT_EQ(WaitTogether(1, receive), ErrorCode::kOk) << i;
    EXPECT_EQ(got, Pattern(shm::kRunBytes, i)) << i;
    EXPECT_EQ(WaitTogether(0, sends[i]), ErrorCode::kOk) << i;
  }
}

// More messages than the receiver has room for: those that find none are fetched when their receive
// is posted.
TEST_F(ProgressEagerTest, ManyUnexpectedMiddleSizedMessagesStayWithTheirSender) {
  constexpr uint32_t kUnexpected = 40;
  constexpr uint64_t kBytes = 30'000;
  Start({1, 1});
  std::vector<uint32_t> sends;
  for (uint32_t i = 0; i < kUnexpected; ++i) {
    const std::vector<std::byte> data = Pattern(kBytes, i);
    std::memcpy(rank(0).heap() + i * kBytes, data.data(), kBytes);
    sends.push_back(rank(0).SendFrom(1, 1, InHeap(i * kBytes), kBytes));
  }
  ASSERT_TRUE(Meanwhile([&] { return rank(1).view().match()->unexpected_count == kUnexpected; }));
  EXPECT_EQ(Carry(0, 1, 2), ErrorCode::kOk);
  for (uint32_t i = 0; i < kUnexpected; ++i) {
    std::vector<std::byte> got(kBytes);
    const uint32_t request = rank(1).Receive(0, 1, Private(got.data()), kBytes);
    ASSERT_EQ(WaitTogether(1, request), ErrorCode::kOk) << i;
    ASSERT_EQ(got, Pattern(kBytes, i)) << i;
    EXPECT_EQ(WaitTogether(0, sends[i]), ErrorCode::kOk) << i;
  }
  EXPECT_GT(plane(1).Nic().reads, 0U);
}

TEST_F(ProgressEagerTest, KeepsMessagesForARankThatAttachesLater) {
  StartPlanes({1, 1}, FastOptions());
  AttachAlone(0);
  uint64_t word = 99;
  rank(0).Send(1, 3, &word, sizeof(word));
  ASSERT_TRUE(Eventually([&] { return plane(1).Nic().messages_received == 1; }));
  AttachAlone(1);
  uint64_t got = 0;
  EXPECT_EQ(rank(1).Wait(rank(1).Receive(0, 3, Private(&got), sizeof(got))), ErrorCode::kOk);
  EXPECT_EQ(got, word);
}

TEST_F(ProgressEagerTest, SendsTheLastMessagesOfALeavingRank) {
  Start({1, 1});
  for (uint64_t word = 0; word < 30; ++word) {
    EXPECT_EQ(rank(0).Send(1, 3, &word, sizeof(word)), 0U);
  }
  RemoveRank(0);
  for (uint64_t word = 0; word < 30; ++word) {
    uint64_t got = ~uint64_t{0};
    EXPECT_EQ(rank(1).Wait(rank(1).Receive(0, 3, Private(&got), sizeof(got))), ErrorCode::kOk);
    EXPECT_EQ(got, word);
  }
}

// ---- Sleeping ----------------------------------------------------------------------------------

TEST_F(ProgressEagerTest, SleepsWhenIdleAndIsWokenByTheDoorbell) {
  Start({1, 1});
  ASSERT_TRUE(Eventually([&] { return Turns(0).sleeps > 0; }));
  // Each round trip starts with both daemons asleep.
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(FallsAsleep(0));
    ASSERT_TRUE(FallsAsleep(1));
    ASSERT_EQ(Carry(0, 1), ErrorCode::kOk);
  }
}

TEST_F(ProgressEagerTest, AnIdlePlaneDoesNotTurn) {
  Start({1, 1});
  ASSERT_EQ(Carry(0, 1), ErrorCode::kOk);
  ASSERT_TRUE(FallsAsleep(0));
  const TurnStatistics before = Turns(0);
  usleep(300'000);  // the test measures how often it turns meanwhile
  const TurnStatistics after = Turns(0);
  EXPECT_LT(after.turns - before.turns, 200U);  // thousands if it polls
  EXPECT_TRUE(plane(0).Idle());
}

// ---- Deaths ------------------------------------------------------------------------------------

TEST_F(ProgressEagerTest, ADeadRankFailsReceivesFromIt) {
  Start({1, 2});
  uint64_t word = 0;
  const uint32_t from_dead = rank(1).Receive(0, 1, Private(&word), sizeof(word));
  const uint32_t from_living = rank(1).Receive(2, 1, Private(&word), sizeof(word));
  plane(1).RankEnded(kJob, 0, ErrorCode::kPeerDied);
  EXPECT_EQ(rank(1).Wait(from_dead), ErrorCode::kPeerDied);
  EXPECT_FALSE(rank(1).Test(from_living));
  EXPECT_EQ(rank(1).Wait(rank(1).Send(0, 1, &word, 4000)), ErrorCode::kPeerDied);
  EXPECT_EQ(rank(2).Wait(rank(2).Send(1, 1, &word, sizeof(word))), ErrorCode::kOk);
  EXPECT_EQ(rank(1).Wait(from_living), ErrorCode::kOk);
}

TEST_F(ProgressEagerTest, AFailedNodeFailsReceivesFromItsRanks) {
  Start({2, 1, 1});
  uint64_t word = 0;
  const uint32_t first = rank(2).Receive(0, 1, Private(&word), sizeof(word));
  const uint32_t second = rank(2).Receive(1, 1, Private(&word), sizeof(word));
  plane(1).NodeFailed(Incarnation(0), ErrorCode::kNodeUnreachable);
  EXPECT_EQ(rank(2).Wait(first), ErrorCode::kNodeUnreachable);
  EXPECT_EQ(rank(2).Wait(second), ErrorCode::kNodeUnreachable);
  // The third node is still there.
  EXPECT_EQ(Carry(3, 2), ErrorCode::kOk);
}

TEST_F(ProgressEagerTest, ANodeThatVanishesIsNoticedByWhoSendsToIt) {
  Start({1, 1}, FastOptions(1000));
  uint64_t word = 0;
  const uint32_t receive = rank(0).Receive(1, 1, Private(&word), sizeof(word));
  ASSERT_EQ(Carry(0, 1, 2), ErrorCode::kOk);
  planes_[1].reset();
  rank(0).Send(1, 1, &word, sizeof(word));
  ASSERT_TRUE(Eventually(
      [&] { return told_.Get(&Told::lost_links) == std::vector<uint64_t>{Incarnation(1)}; }));
  // Nothing is lost until the control plane has judged.
  EXPECT_FALSE(rank(0).Test(receive));
  plane(0).NodeFailed(Incarnation(1), ErrorCode::kNodeUnreachable);
  EXPECT_EQ(rank(0).Wait(receive), ErrorCode::kNodeUnreachable);
}

class ProgressCutTest : public ProgressEagerTest {
 protected:
  // Two nodes, of a rank each, were cut, and each takes packets of the link's next life. Rank 1 has
  // been told.
  void SetUp() override {
    Start({1, 1}, FastOptions());
    ASSERT_EQ(Carry(0, 1), ErrorCode::kOk);
    const uint32_t cut = rank(1).Receive(0, 2, Private(&word_), sizeof(word_));
    Cut();
    EXPECT_EQ(rank(1).Wait(cut), ErrorCode::kLinkDown);
    ASSERT_NO_FATAL_FAILURE(Reconnect(1));
  }

  uint64_t word_ = 0;
};

TEST_F(ProgressCutTest, ALinkThatWasCutCarriesMessagesAgainInItsNextLife) {
  ReturnNodes();

  // Rank 0 hears of the cut by its next operation with that rank.
  const uint32_t told = rank(0).Send(1, 3, &word_, sizeof(word_));
  ASSERT_NE(told, 0U);
  EXPECT_EQ(rank(0).Wait(told), ErrorCode::kLinkDown);
  EXPECT_EQ(Carry(0, 1, 3), ErrorCode::kOk);
}

// Node 1 has not heard yet that node 0 takes packets again; but what comes from there says so.
TEST_F(ProgressCutTest, WhoeverHasAMessageOfTheNextLifeCanAnswerIt) {
  const uint32_t early = rank(1).Send(0, 3, &word_, sizeof(word_));
  ASSERT_NE(early, 0U);
  EXPECT_EQ(rank(1).Wait(early), ErrorCode::kLinkDown);
  plane(0).NodeReturned(kJob, 1);

  const uint32_t told = rank(0).Send(1, 3, &word_, sizeof(word_));
  ASSERT_NE(told, 0U);
  EXPECT_EQ(rank(0).Wait(told), ErrorCode::kLinkDown);
  rank(0).Send(1, 4, &word_, sizeof(word_));
  EXPECT_TRUE(Meanwhile([&] {  // until the message has come
    return rank(1).Wait(rank(1).Receive(0, 4, Private(&word_), sizeof(word_))) == ErrorCode::kOk;
  }));
  EXPECT_EQ(Carry(1, 0, 5), ErrorCode::kOk);
}

// Rank 0 leaves its neighbour 1 and rank 2 of the other node, both of which wait for more than it
// has sent.
TEST_F(ProgressEagerTest, ALeaveCountsBehindWhatWasSent) {
  Start({2, 1});
  uint64_t words[4] = {};
  uint32_t receives[4];
  for (uint32_t i = 0; i < 4; ++i) {
    receives[i] = rank(1 + i / 2).Receive(0, 1, Private(&words[i]), sizeof(words[i]));
  }
  const uint64_t sent[2] = {11, 12};
  rank(0).Send(1, 1, &sent[0], sizeof(sent[0]));
  rank(0).Send(2, 1, &sent[1], sizeof(sent[1]));
  plane(1).RankEnded(kJob, 0, ErrorCode::kNotFound);  // before the messages arrive: no matter
  RemoveRank(0);
  plane(0).RankEnded(kJob, 0, ErrorCode::kNotFound);
  for (uint32_t i = 0; i < 4; i += 2) {
    EXPECT_EQ(rank(1 + i / 2).Wait(receives[i]), ErrorCode::kOk);
    EXPECT_EQ(words[i], sent[i / 2]);
    EXPECT_EQ(rank(1 + i / 2).Wait(receives[i + 1]), ErrorCode::kNotFound);
  }
}

// Then earlier messages come no more, nor the notice behind them.
TEST_F(ProgressEagerTest, ALeaveIsToldAcrossACut) {
  for (const bool before : {true, false}) {
    SCOPED_TRACE(before ? "told before the cut" : "told after it");
    Start({1, 1});
    if (before) {
      plane(1).RankEnded(kJob, 0, ErrorCode::kNotFound);
    }
    Cut();
    ASSERT_NO_FATAL_FAILURE(Reconnect(1));
    ReturnNodes();
    if (!before) {
      plane(1).RankEnded(kJob, 0, ErrorCode::kNotFound);
    }
    uint64_t word = 0;
    const uint32_t told = rank(1).Receive(0, 1, Private(&word), sizeof(word));
    EXPECT_EQ(rank(1).Wait(told), ErrorCode::kLinkDown);
    const uint32_t receive = rank(1).Receive(0, 1, Private(&word), sizeof(word));
    EXPECT_EQ(rank(1).Wait(receive), ErrorCode::kNotFound);
    Stop();
  }
}

TEST_F(ProgressEagerTest, PoisonsEverySessionOfAJob) {
  Start({2, 1});
  plane(0).PoisonJob(kJob, ErrorCode::kAborted);
  EXPECT_EQ(rank(0).wake().poison(), ErrorCode::kAborted);
  EXPECT_EQ(rank(1).wake().poison(), ErrorCode::kAborted);
  EXPECT_EQ(rank(2).wake().poison(), ErrorCode::kOk);
}

// A rank sends more than it has credit for, to one that does not read: its daemon would have to
// hold ever more, and gives the job up.
TEST_F(ProgressEagerTest, SendersWithoutCreditEndTheirJob) {
  Start({1, 1});
  shm::Lease lease(&rank(1).view().layout->lease);
  ASSERT_TRUE(lease.TryAcquire(99));  // so that no worker reads for the rank
  shm::Descriptor command{};
  command.kind = static_cast<uint8_t>(shm::DescriptorKind::kEager);
  command.destination = 1;
  shm::LaneProducer lane(&rank(0).view().layout->to_daemon);
  lane.Open(0);
  ASSERT_TRUE(Eventually([&] {
    if (lane.TryPush(command)) {
      rank(0).RingDaemon();
    }
    return rank(1).wake().poison() == ErrorCode::kCorrupt;
  }));
  EXPECT_TRUE(Eventually([&] { return told_.Get(&Told::failed_jobs).size() == 1; }));
}

// Ranks send to one that has not attached as much as they have credit for.
TEST_F(ProgressEagerTest, DataForRanksThatHaveNotAttachedIsBounded) {
  constexpr uint32_t kSenders = 136;
  constexpr uint32_t kEach = engine::kRemoteWindow;
  const std::vector<std::byte> data = Pattern(8000, 1);
  static_assert(uint64_t{kSenders} * kEach * 8000 > 64 << 20);
  StartPlanes({1, kSenders}, FastOptions());
  std::vector<PlaneRank*> senders;
  for (uint32_t sender = 1; sender <= kSenders; ++sender) {
    ASSERT_NO_FATAL_FAILURE(Attach(sender));
    senders.push_back(&rank(sender));
  }
  for (PlaneRank* const sender : senders) {
    sender->BuildEngine(senders);
    for (uint32_t i = 0; i < kEach; ++i) {
      sender->Send(0, 3, data.data(), data.size());
    }
  }
  EXPECT_TRUE(Eventually([&] {
    for (PlaneRank* const sender : senders) {
      sender->Progress();
    }
    return !told_.Get(&Told::failed_jobs).empty();
  }));
  const std::vector<std::string> failed = told_.Get(&Told::failed_jobs);
  ASSERT_FALSE(failed.empty());
  EXPECT_NE(failed[0].find("64 MiB of messages have come for ranks that have not attached"),
            std::string::npos)
      << failed[0];
}

// ---- Wrong commands and packets ----------------------------------------------------------------

struct WrongCommand {
  const char* name;
  std::function<void(shm::Descriptor&)> spoil;
};

class ProgressViolationTest : public PlaneTest, public testing::WithParamInterface<WrongCommand> {};

TEST_P(ProgressViolationTest, EndsThatRankAlone) {
  Start({2, 1});
  shm::Descriptor command{};
  command.kind = static_cast<uint8_t>(shm::DescriptorKind::kEager);
  command.source = 0;
  command.destination = 2;
  command.size_bytes = 8;
  GetParam().spoil(command);
  rank(0).PushToDaemon(command);
  ASSERT_TRUE(Eventually([&] { return rank(0).wake().poison() == ErrorCode::kCorrupt; }));
  ASSERT_TRUE(Eventually([&] { return told_.Get(&Told::violations).size() == 1; }));
  EXPECT_EQ(Carry(1, 2), ErrorCode::kOk);
}

using Kind = shm::DescriptorKind;

template <typename Payload>
auto SetPayload(Kind kind, const Payload& payload) {
  return [kind, payload](shm::Descriptor& command) {
    command.kind = static_cast<uint8_t>(kind);
    std::memcpy(command.payload, &payload, sizeof(payload));
  };
}

auto SetCell(uint16_t cell, uint64_t size_bytes) {
  return [cell, size_bytes](shm::Descriptor& command) {
    command.flags = shm::kFlagCell;
    command.cell = cell;
    command.size_bytes = size_bytes;
  };
}

INSTANTIATE_TEST_SUITE_P(
    All, ProgressViolationTest,
    testing::Values(
        WrongCommand{"UnknownKind", [](auto& c) { c.kind = 200; }},
        WrongCommand{"AccusesNoLane", SetPayload(Kind::kAccuse, shm::Accusation{2, 0, {}})},
        WrongCommand{"KindOfTheDaemon", [](auto& c) { c.kind = 5; }},
        WrongCommand{"NoSuchRank", [](auto& c) { c.destination = 1000; }},
        WrongCommand{"RankOfThisNode", [](auto& c) { c.destination = 1; }},
        WrongCommand{"NegativeTag", [](auto& c) { c.tag = -1; }},
        WrongCommand{"TooLongForInline", [](auto& c) { c.size_bytes = 33; }},
        WrongCommand{"TooLongForACell", SetCell(0, 8193)},
        WrongCommand{"NoSuchCell", SetCell(64, 8)},
        WrongCommand{"OfferWithoutRequest",
                     SetPayload(Kind::kRemoteRts, shm::RemoteRts{0, 1, 0, {1, 0, 0}})},
        WrongCommand{"OfferThatContradictsItself",
                     SetPayload(Kind::kRemoteRts, shm::RemoteRts{1, 1, 0, {0, 0, 0}})},
        WrongCommand{"PullOutOfRange",
                     SetPayload(Kind::kRndvGet, shm::RndvGetCommand{1'000'000, 1, {}})}),
    [](const auto& info) { return info.param.name; });

// A stranger speaks as rank 1 of node 1.
class ProgressForgeryTest : public PlaneTest {
 protected:
  void Forge(const std::function<void(progress::PacketHeader&)>& change) {
    const uint64_t word = 666;
    progress::PacketHeader header =
        ForgedHeader(/*from=*/1, /*to=*/0, progress::PacketKind::kEager);
    header.source = 1;
    header.destination = 0;
    header.tag = 1;
    header.body_bytes = sizeof(word);
    header.size_bytes = sizeof(word);
    change(header);
    ASSERT_NO_FATAL_FAILURE(SayAsStranger(plane(0), header, progress::BytesOf(word)));
  }
};

TEST_F(ProgressForgeryTest, DropsPacketsThatAreNotGenuine) {
  const std::vector<std::function<void(progress::PacketHeader&)>> changes = {
      [](progress::PacketHeader& h) { h.key += 1; },
      [](progress::PacketHeader& h) { h.job_key += 1; },
      [](progress::PacketHeader& h) { h.magic += 1; },
      [](progress::PacketHeader& h) { h.version += 1; },
      [](progress::PacketHeader& h) { h.source_node = 77; },
      [](progress::PacketHeader& h) { h.source = 0; },
      [](progress::PacketHeader& h) { h.source = 5000; },
      [](progress::PacketHeader& h) { h.destination = 1; },
      [](progress::PacketHeader& h) { h.destination = 5000; },
      [](progress::PacketHeader& h) { h.body_bytes = 7; },
      [](progress::PacketHeader& h) { h.size_bytes = 9; },
      [](progress::PacketHeader& h) { h.tag = -1; },
      [](progress::PacketHeader& h) { h.kind = 99; },
      [](progress::PacketHeader& h) {
        h.kind = static_cast<uint8_t>(progress::PacketKind::kRemoteRts);
      },
      [](progress::PacketHeader& h) {
        h.kind = static_cast<uint8_t>(progress::PacketKind::kEnded);
      },  // as no rank ends
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    Start({1, 1});
    Forge(changes[i]);
    EXPECT_EQ(plane(0).Nic().errors, 1U);
    rank(0).Progress();
    EXPECT_EQ(rank(0).view().match()->unexpected_count, 0U);
    Stop();
  }
}

}  // namespace
}  // namespace ferry::daemon

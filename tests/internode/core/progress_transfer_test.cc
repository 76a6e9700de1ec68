// Large messages between nodes: by RDMA, through staging, and early ends.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <map>

#include "internode/staging/staging_pool.h"
#include "shm/atomic.h"
#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class ProgressTransferTest : public PlaneTest {
 protected:
  // Sends `size_bytes` from rank 0 to rank 1 and checks what arrives.
  void Transfer(const Memory& memory, uint64_t size_bytes, uint64_t capacity_bytes) {
    const std::vector<std::byte> sent = Pattern(size_bytes, 3);
    std::vector<std::byte> got(capacity_bytes);
    std::memcpy(rank(0).heap() + 128, sent.data(), size_bytes);
    const uint32_t receive =
        rank(1).Receive(0, 7, memory.Destination(64, got.data()), capacity_bytes);
    const uint32_t send = rank(0).SendFrom(1, 7, memory.Source(128, sent.data()), size_bytes);
    EXPECT_EQ(WaitTogether(1, receive),
              capacity_bytes < size_bytes ? ErrorCode::kTruncated : ErrorCode::kOk);
    EXPECT_EQ(WaitTogether(0, send), ErrorCode::kOk);
    const uint64_t arrived = std::min(size_bytes, capacity_bytes);
    const std::byte* where = memory.destination_in_heap ? rank(1).heap() + 64 : got.data();
    EXPECT_TRUE(std::equal(where, where + arrived, sent.data()));
  }
  // A message of 1 MiB between heaps, which the receiver's NIC holds.
  Passage BeginHeld() {
    gate(1).closed = true;
    const Passage passage = Begin(0, 1, InHeap(0), InHeap(0), kMiB);
    EXPECT_TRUE(Eventually([&] {
      rank(1).Progress();
      return gate(1).held > 0;
    }));
    return passage;
  }
};

class ProgressPathTest : public ProgressTransferTest, public testing::WithParamInterface<Memory> {
 protected:
  // A message of 1 MiB, while the receiver's NIC reads nothing.
  Passage BeginGated() {
    gate(1).closed = true;
    return Begin(0, 1, GetParam().Source(0, sent_.data()), GetParam().Destination(0, got_.data()),
                 kMiB);
  }
  bool IsHeld() {
    return Meanwhile([this] { return gate(1).held > 0; });
  }

  const std::vector<std::byte> sent_ = Pattern(kMiB, 1);
  std::vector<std::byte> got_ = std::vector<std::byte>(kMiB);
};

TEST_P(ProgressPathTest, MovesMessagesOfAllSizes) {
  Start({1, 1});
  // Sizes around a block, its first quarter, and many of them.
  for (const uint64_t size_bytes :
       {uint64_t{33}, uint64_t{4096}, uint64_t{4097}, uint64_t{16} << 10, uint64_t{20481}, kMiB + 1,
        3 * kMiB + 12345}) {
    SCOPED_TRACE(size_bytes);
    Transfer(GetParam(), size_bytes, size_bytes);
  }
  EXPECT_TRUE(AllIdle());
}

TEST_P(ProgressPathTest, CutsToTheReceiversBuffer) {
  Start({1, 1});
  Transfer(GetParam(), 100'000, 70'000);
  Transfer(GetParam(), 100'000, 0);
  EXPECT_TRUE(AllIdle());
}

TEST_P(ProgressPathTest, ManyAtOnceShareTheStagingBlocks) {
  constexpr uint32_t kMessages = 40;
  constexpr uint64_t kBytes = 150'000;
  Start({1, 1});
  std::vector<std::vector<std::byte>> sent;
  std::vector<std::vector<std::byte>> got(kMessages, std::vector<std::byte>(kBytes));
  std::vector<Passage> passages;
  for (uint32_t i = 0; i < kMessages; ++i) {
    sent.push_back(Pattern(kBytes, i));
    std::memcpy(rank(0).heap() + i * kBytes, sent[i].data(), kBytes);
    passages.push_back(Begin(0, 1, GetParam().Source(i * kBytes, sent[i].data()),
                             GetParam().Destination(i * kBytes, got[i].data()), kBytes,
                             static_cast<int32_t>(i)));
  }
  for (uint32_t i = 0; i < kMessages; ++i) {
    ExpectEnd(passages[i]);
    const std::byte* where =
        GetParam().destination_in_heap ? rank(1).heap() + i * kBytes : got[i].data();
    EXPECT_EQ(std::memcmp(where, sent[i].data(), kBytes), 0) << i;
  }
  EXPECT_TRUE(AllIdle());
}

// The receiver's reads are on their way when its node learns that the sender's node is gone, and
// the other way round.
TEST_P(ProgressPathTest, ANodeFailureInTheMiddleEndsBothSides) {
  Start({1, 1});
  const Passage passage = BeginGated();
  ASSERT_TRUE(IsHeld());
  Cut(ErrorCode::kNodeUnreachable);
  ExpectEnd(passage, ErrorCode::kNodeUnreachable);
  gate(1).closed = false;
  EXPECT_TRUE(AllIdle());
}

TEST_P(ProgressPathTest, ADeadSenderEndsTheReceive) {
  Start({1, 1});
  const Passage passage = BeginGated();
  ASSERT_TRUE(IsHeld());
  RemoveRank(0);  // whatever it had staged is given back
  plane(1).RankEnded(kJob, 0, ErrorCode::kPeerDied);
  gate(1).closed = false;
  EXPECT_EQ(rank(1).Wait(passage.receive), ErrorCode::kPeerDied);
  EXPECT_TRUE(AllIdle());
  EXPECT_TRUE(told_.lost_links.empty());  // no other job on these nodes notices
}

TEST_P(ProgressPathTest, ADeadReceiverEndsTheSend) {
  Start({1, 1});
  const Passage passage = BeginGated();
  ASSERT_TRUE(IsHeld());
  auto removed = std::async(std::launch::async, [&] { RemoveRank(1); });
  // The removal waits for the NIC, which could still write to the rank's memory.
  EXPECT_EQ(removed.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  gate(1).closed = false;
  removed.wait();
  plane(0).RankEnded(kJob, 1, ErrorCode::kPeerDied);
  EXPECT_NE(rank(0).Wait(passage.send), ErrorCode::kOk);
  EXPECT_TRUE(AllIdle());
}

TEST_F(ProgressTransferTest, RemoveRegionWaitsForARunningRead) {
  Start({1, 1});
  const Passage passage = BeginHeld();
  auto removed =
      std::async(std::launch::async, [&] { plane(1).RemoveRegion(kJob, 1, kHeapRegion); });
  // The removal has begun once a further message into the region is refused.
  for (bool refused = false; !refused;) {
    const uint32_t held = gate(1).held;
    // The message is too long to travel with its RTS: it takes a read, or is refused one.
    const uint32_t probe = rank(1).Receive(0, 8, InHeap(kMiB), kMiB);
    rank(0).SendFrom(1, 8, InHeap(kMiB), kMiB);
    ASSERT_TRUE(Eventually([&] {
      rank(1).Progress();
      refused = rank(1).Test(probe);
      return refused || gate(1).held > held;
    }));
  }
  EXPECT_EQ(removed.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  gate(1).closed = false;
  removed.wait();
  ExpectEnd(passage, ErrorCode::kInvalidBuffer);
}

// A NIC that never lets go does not hold up the control plane for ever: the memory is kept for it.
TEST_F(ProgressTransferTest, RemoveRegionGivesUpOnANicThatHoldsOn) {
  Start({1, 1}, FastOptions(200));
  const Passage passage = BeginHeld();
  plane(1).NodeFailed(Incarnation(0), ErrorCode::kNodeUnreachable);
  EXPECT_NE(rank(1).Wait(passage.receive), ErrorCode::kOk);
  plane(1).RemoveRegion(kJob, 1, kHeapRegion);
  EXPECT_GT(gate(1).held, 0U);
}

TEST_F(ProgressTransferTest, ARegionThatIsNoneFailsBothSides) {
  Start({1, 1});
  std::vector<std::byte> got(kMiB);
  ExpectEnd(Begin(0, 1, {77, 0, 0}, Private(got.data()), kMiB), ErrorCode::kInvalidBuffer);
  ExpectEnd(Begin(0, 1, InHeap(0), InHeap(kHeapBytes - 10), kMiB), ErrorCode::kInvalidBuffer);
  EXPECT_TRUE(AllIdle());
}

TEST_F(ProgressTransferTest, MemoryThatIsNotThereFailsBothSides) {
  if (in_own_home) {
    GTEST_SKIP() << "a rank that names memory that is not there dies of it itself";
  }
  Start({1, 1});
  const void* nowhere = reinterpret_cast<const void*>(4096);
  std::vector<std::byte> got(kMiB);
  const shm::Location there = Private(got.data());
  ExpectEnd(Begin(0, 1, Private(nowhere), there, kMiB), ErrorCode::kInvalidBuffer);
  ExpectEnd(Begin(0, 1, there, Private(nowhere), kMiB), ErrorCode::kInvalidBuffer);
  EXPECT_TRUE(AllIdle());
  ExpectEnd(Begin(0, 1, InHeap(0), there, kMiB));
}

// A rank that makes up the source of a message gets an error, and the network is not asked: an
// unknown key would cost other jobs their connection.
TEST_F(ProgressTransferTest, AMadeUpSourceIsNotFetched) {
  Start({1, 1});
  shm::Lease lease(&rank(1).view().layout->lease);
  ASSERT_TRUE(lease.TryAcquire(99));  // no worker gets in between
  rank(0).SendFrom(1, 7, InHeap(0), kMiB);
  ASSERT_TRUE(Eventually([&] { return plane(1).Nic().messages_received == 1; }));
  lease.Release(99);
  ASSERT_TRUE(Eventually([&] {
    rank(1).Progress();
    return rank(1).view().match()->unexpected_count == 1;
  }));
  auto* entries = reinterpret_cast<shm::MatchEntry*>(rank(1).view().match() + 1);
  shm::RemoteRts rts;
  std::memcpy(&rts, entries[1].payload, sizeof(rts));
  rts.key += 1;
  std::memcpy(entries[1].payload, &rts, sizeof(rts));
  EXPECT_EQ(rank(1).Wait(rank(1).Receive(0, 7, InHeap(0), kMiB)), ErrorCode::kInvalidRequest);
  EXPECT_EQ(plane(1).Nic().reads, 0U);
  EXPECT_EQ(plane(1).Nic().errors, 0U);
}

// A rank asks again and again for one message that the daemon keeps for it, more often than there
// are cells to stage it: one rendezvous get gets it, whatever the others wait for.
TEST_F(ProgressTransferTest, AParkedMessageIsFetchedOnce) {
  constexpr uint32_t kRndvGets = 2 * progress::StagingPool::kCells;
  constexpr uint32_t kTransfer = 4000;          // not a request's
  constexpr uint32_t kUnexpectedEntries = 128;  // more than there are
  config::Options options = FastOptions();
  options.copy_workers = 0;  // a turn collects at its end what it has copied
  Start({1, 1}, options);
  const std::vector<std::byte> sent = Pattern(1000, 1);
  for (uint32_t i = 0; i <= shm::kLaneCells; ++i) {
    rank(0).Send(1, 1, sent.data(), sent.size());
  }
  ASSERT_TRUE(
      Meanwhile([&] { return rank(1).view().match()->unexpected_count == shm::kLaneCells + 1; }));
  shm::Lease lease(&rank(1).view().layout->lease);
  ASSERT_TRUE(Eventually([&] { return lease.TryAcquire(99); }));  // no engine reads the answers
  const auto* entries = reinterpret_cast<const shm::MatchEntry*>(rank(1).view().match() + 1);
  const auto* parked = std::find_if(entries, entries + kUnexpectedEntries, [](const auto& entry) {
    return entry.state == static_cast<uint32_t>(shm::MatchState::kUnexpected) &&
           entry.kind == static_cast<uint8_t>(shm::DescriptorKind::kRemoteRts);
  });
  ASSERT_NE(parked, entries + kUnexpectedEntries);
  shm::RemoteRts rts;
  std::memcpy(&rts, parked->payload, sizeof(rts));
  std::vector<std::byte> got(sent.size());
  shm::TransferLayout& transfer = *rank(1).view().inbox.transfer(kTransfer);
  transfer.generation = 1;
  transfer.destination = Private(got.data());
  transfer.size_bytes = got.size();
  transfer.source_rank = 0;
  transfer.remote_key = rts.key;
  shm::StoreRelease(transfer.state, static_cast<uint32_t>(shm::TransferState::kMatched));

  const shm::Descriptor rndv_get =
      MakeCommand(shm::DescriptorKind::kRndvGet, shm::RndvGetCommand{kTransfer, 1, {}});
  shm::LaneProducer lane(&rank(1).view().layout->to_daemon);
  lane.Open(1);
  for (uint32_t i = 0; i < kRndvGets; ++i) {
    ASSERT_TRUE(lane.TryPush(rndv_get));
  }
  rank(1).RingDaemon();
  shm::LaneConsumer answers(rank(1).view().inbox.lane(shm::DaemonLane(1)));
  std::map<ErrorCode, uint32_t> results;
  uint32_t answered = 0;
  EXPECT_TRUE(Eventually([&] {
    while (const shm::Descriptor* next = answers.Peek()) {
      if (next->kind == static_cast<uint8_t>(shm::DescriptorKind::kRndvGetDone)) {
        shm::TransferResult result;
        std::memcpy(&result, next->payload, sizeof(result));
        ++results[static_cast<ErrorCode>(result.error)];
        ++answered;
      }
      answers.Pop();
    }
    return answered == kRndvGets;
  })) << answered;
  lease.Release(99);
  EXPECT_EQ(results[ErrorCode::kOk], 1U);
  EXPECT_EQ(results[ErrorCode::kInvalidRequest], kRndvGets - 1);
  EXPECT_EQ(got, sent);
}

// The sender is another process, killed while its memory is being read.
TEST_F(ProgressTransferTest, AKilledProcessFailsBothSides) {
  if (in_own_home) {
    GTEST_SKIP() << "private memory is that of this process";
  }
  std::vector<std::byte> data = Pattern(kMiB, 9);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  ASSERT_GT(child, 0);
  amend_session_ = [child](Session& session) {
    if (session.rank == 0) {
      session.pid = child;  // its copy of `data` is at the same address
    }
  };
  Start({1, 1});
  std::vector<std::byte> got(kMiB);
  ExpectEnd(Begin(0, 1, Private(data.data()), Private(got.data()), kMiB));
  EXPECT_EQ(got, data);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ExpectEnd(Begin(0, 1, Private(data.data()), Private(got.data()), kMiB), ErrorCode::kPeerDied);
}

TEST_F(ProgressTransferTest, PrivateMemoryOutOfReachIsRefused) {
  if (InWorkerProcess()) {
    GTEST_SKIP() << "a worker process finds out by itself";
  }
  amend_session_ = [](Session& session) { session.private_memory_reachable = session.rank != 0; };
  Start({1, 1});
  std::vector<std::byte> data(kMiB);
  ExpectEnd(Begin(0, 1, Private(data.data()), InHeap(0), kMiB), ErrorCode::kPermissionDenied);
}

TEST_F(ProgressTransferTest, WorksWithoutCopyWorkers) {
  config::Options options = FastOptions();
  options.copy_workers = 0;
  Start({1, 1}, options);
  Transfer({"", false, false}, kMiB, kMiB);
}

TEST_F(ProgressTransferTest, TwoBlocksOfStagingSuffice) {
  config::Options options = FastOptions();
  options.staging_blocks = 2;
  Start({2, 2}, options);
  // Messages go both ways at once.
  std::vector<std::vector<std::byte>> sent;
  std::vector<std::vector<std::byte>> got(4, std::vector<std::byte>(kMiB));
  std::vector<uint32_t> sends;
  std::vector<uint32_t> receives;
  for (uint32_t i = 0; i < 4; ++i) {
    sent.push_back(Pattern(kMiB, i));
    const uint32_t other = (i + 2) % 4;
    receives.push_back(
        rank(i).Receive(static_cast<int32_t>(other), 1, Private(got[i].data()), kMiB));
  }
  for (uint32_t i = 0; i < 4; ++i) {
    sends.push_back(rank(i).SendFrom((i + 2) % 4, 1, Private(sent[i].data()), kMiB));
  }
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(WaitTogether(i, receives[i]), ErrorCode::kOk);
    EXPECT_EQ(WaitTogether(i, sends[i]), ErrorCode::kOk);
    EXPECT_EQ(got[i], sent[(i + 2) % 4]);
  }
}

// The NIC does not finish the reads: both sides hear of it.
TEST_P(ProgressPathTest, ReadsThatTakeTooLongEndBothSides) {
  Start({1, 1}, FastOptions(1000));
  ExpectEnd(BeginGated(), ErrorCode::kTimeout);
  gate(1).closed = false;
  EXPECT_TRUE(AllIdle());
  // Blocks and link are as before.
  Transfer(GetParam(), kMiB, kMiB);
  EXPECT_TRUE(told_.lost_links.empty());
}

INSTANTIATE_TEST_SUITE_P(All, ProgressPathTest, testing::ValuesIn(kAllMemory),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ferry::daemon

// The progress worker serves a rank that computes: in these tests a rank that does not call
// Progress. Test() alone only looks, and copies messages that have landed.
#include <cstring>

#include "shm/atomic.h"
#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class ProgressWorkerTest : public PlaneTest {
 protected:
  // The receiver only looks.
  ErrorCode Look(uint32_t waiter, uint32_t request) {
    EXPECT_TRUE(Eventually([&] { return rank(waiter).Test(request); }))
        << "rank " << waiter << ", request " << request;
    return static_cast<ErrorCode>(shm::LoadRelaxed(rank(waiter).Slot(request).error));
  }
  // Rank 1 receives the words from 0 on, which rank 0 has sent, in order.
  void ReceiveWords(uint64_t words) {
    for (uint64_t i = 0; i < words; ++i) {
      uint64_t got = ~uint64_t{0};
      ASSERT_EQ(rank(1).Wait(rank(1).Receive(0, 1, Private(&got), sizeof(got))), ErrorCode::kOk);
      ASSERT_EQ(got, i);
    }
  }
  void LookAt(const Passage& passage) {
    EXPECT_EQ(Look(passage.to, passage.receive), ErrorCode::kOk);
    EXPECT_EQ(rank(passage.from).Wait(passage.send), ErrorCode::kOk);
  }
};

class ProgressWorkerPathTest : public ProgressWorkerTest,
                               public testing::WithParamInterface<Memory> {
 protected:
  void Transfer(uint32_t from, uint32_t to) {
    const std::vector<std::byte> sent = Pattern(2 * kMiB + 17, 5);
    std::vector<std::byte> got(sent.size());
    std::memcpy(rank(from).heap(), sent.data(), sent.size());
    LookAt(Begin(from, to, GetParam().Source(0, sent.data()), GetParam().Destination(0, got.data()),
                 got.size()));
    const std::byte* where = GetParam().destination_in_heap ? rank(to).heap() : got.data();
    EXPECT_EQ(std::memcmp(where, sent.data(), sent.size()), 0);
    EXPECT_EQ(rank(to).Statistic(shm::Statistic::kWorkerMatches), 1U);
  }
};

TEST_P(ProgressWorkerPathTest, CopiesInsideTheNode) {
  Start({2});
  Transfer(0, 1);
  EXPECT_EQ(rank(1).Statistic(shm::Statistic::kChunksCopiedByWorker), 17U);
}

TEST_P(ProgressWorkerPathTest, FetchesFromAnotherNode) {
  Start({1, 1});
  Transfer(0, 1);
}

INSTANTIATE_TEST_SUITE_P(All, ProgressWorkerPathTest, testing::ValuesIn(kAllMemory),
                         [](const auto& info) { return info.param.name; });

// The worker uses its own streams, to which the ranks' device memory was imported.
TEST_F(ProgressWorkerTest, CopiesDeviceMemoryInsideTheNode) {
  UseDevices(4000, 5000);
  Start({2});
  const std::vector<std::byte> sent = Pattern(2 * kMiB + 17, 5);
  std::memcpy(rank(0).device(), sent.data(), sent.size());
  std::vector<std::byte> got(sent.size());
  LookAt(Begin(0, 1, InDevice(0), InDevice(64), sent.size()));
  EXPECT_EQ(std::memcmp(rank(1).device() + 64, sent.data(), sent.size()), 0);
  LookAt(Begin(0, 1, InDevice(0), Private(got.data()), sent.size()));
  EXPECT_EQ(got, sent);
  LookAt(Begin(0, 1, Private(sent.data()), InDevice(0), sent.size()));
  EXPECT_EQ(std::memcmp(rank(1).device(), sent.data(), sent.size()), 0);
  EXPECT_EQ(rank(1).Statistic(shm::Statistic::kWorkerMatches), 3U);
  EXPECT_EQ(rank(1).Statistic(shm::Statistic::kChunksCopiedByWorker), 3U);
}

TEST_F(ProgressWorkerTest, DrainsAFullLane) {
  constexpr uint32_t kMessages = 2000;
  Start({2});
  for (uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(rank(0).Wait(rank(0).Send(1, 1, &i, sizeof(i))), ErrorCode::kOk);
  }
  ASSERT_NO_FATAL_FAILURE(ReceiveWords(kMessages));
}

// The rank itself has matched, asked for the worker, and gone away.
TEST_F(ProgressWorkerTest, TakesOverWhatTheRankHadMatched) {
  Start({2});
  const std::vector<std::byte> sent = Pattern(kMiB, 5);
  std::vector<std::byte> got(sent.size());
  shm::Lease lease(&rank(1).view().layout->lease);
  ASSERT_TRUE(lease.TryAcquire(99));  // keeps the worker out until the rank has matched
  const uint32_t send = rank(0).SendFrom(1, 7, Private(sent.data()), sent.size());
  lease.Release(99);
  ASSERT_TRUE(Eventually([&] {
    rank(1).Progress();
    return rank(1).view().match()->unexpected_count == 1;
  }));
  const uint32_t receive = rank(1).Receive(0, 7, Private(got.data()), got.size());
  shm::Wake(&rank(1).view().layout->daemon_wake).AnnounceLane(rank(1).session().local_index);
  rank(1).RingDaemon();
  EXPECT_EQ(Look(1, receive), ErrorCode::kOk);
  EXPECT_EQ(rank(0).Wait(send), ErrorCode::kOk);
  EXPECT_EQ(got, sent);
}

TEST_F(ProgressWorkerTest, ARankThatHoldsItsLeaseHoldsUpNobodyElse) {
  Start({3});
  std::vector<std::byte> got(kMiB);
  std::vector<std::byte> other(kMiB);
  const std::vector<std::byte> sent = Pattern(kMiB, 5);
  const uint32_t stuck = rank(1).Receive(0, 7, Private(got.data()), got.size());
  const uint32_t receive = rank(2).Receive(0, 7, Private(other.data()), other.size());
  shm::Lease lease(&rank(1).view().layout->lease);
  ASSERT_TRUE(lease.TryAcquire(99));
  rank(0).SendFrom(1, 7, Private(sent.data()), sent.size());
  rank(0).SendFrom(2, 7, Private(sent.data()), sent.size());
  EXPECT_EQ(Look(2, receive), ErrorCode::kOk);
  EXPECT_FALSE(rank(1).Test(stuck));
  lease.Release(99);
  EXPECT_EQ(Look(1, stuck), ErrorCode::kOk);
  EXPECT_EQ(got, sent);
}

TEST_F(ProgressWorkerTest, AppliesDeathsForARankThatComputes) {
  Start({1, 1});
  uint64_t word = 0;
  const uint32_t receive = rank(1).Receive(0, 7, Private(&word), sizeof(word));
  plane(1).RankEnded(kJob, 0, ErrorCode::kPeerDied);
  EXPECT_EQ(Look(1, receive), ErrorCode::kPeerDied);
}

// The sender computes too, with sends that wait for credit, until the receiver drains.
TEST_F(ProgressWorkerTest, SendsWhatWaitedForCredit) {
  constexpr uint32_t kMessages = 100;
  Start({1, 1});
  shm::Lease lease(&rank(1).view().layout->lease);
  ASSERT_TRUE(lease.TryAcquire(99));  // the receiver stands still
  std::vector<uint32_t> sends;
  for (uint64_t i = 0; i < kMessages; ++i) {
    sends.push_back(rank(0).Send(1, 1, &i, sizeof(i)));
  }
  ASSERT_NE(sends.back(), 0U);
  lease.Release(99);
  ASSERT_NO_FATAL_FAILURE(ReceiveWords(kMessages));
  for (const uint32_t send : sends) {
    EXPECT_EQ(Look(0, send), ErrorCode::kOk);
  }
}

// Ranks and regions go while the worker copies from them and to them.
TEST_F(ProgressWorkerTest, RemovalsWaitForTheChunkInHand) {
  for (int round = 0; round < 10; ++round) {
    Start({2});
    // A worker process may finish the chunk that it has in hand after the rank is gone.
    static std::vector<std::byte> got(4 * kMiB);
    (void)Begin(0, 1, InHeap(0), Private(got.data()), got.size());
    if (round % 2 == 0) {
      plane(0).RemoveRegion(kJob, 0, kHeapRegion);
    } else {
      RemoveRank(0);
    }
    Stop();
  }
}

}  // namespace
}  // namespace ferry::daemon

// Rings of devices: how the daemon serves requests, right and wrong, that threads of this test
// write as a GPU's would.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/progress/progress_plane.h"
#include "ferry/device/ring.h"
#include "shm/counter.h"
#include "shm/layout/device_ring_layout.h"
#include "shm/mpsc_ring.h"
#include "tests/daemon/device_rings/ring_fixture.h"

namespace ferry::daemon {
namespace {

TEST_F(RingsTest, AnswersNops) {
  Start({1});
  TestRing ring(rank(0), AddRegion(0));
  ASSERT_EQ(ring.error(), ErrorCode::kOk);
  for (uint64_t i = 0; i < 300; ++i) {  // several laps
    ASSERT_EQ(ring.Ask(Request(FERRY_DEVICE_RING_NOP, 0, 0, i)), ErrorCode::kOk);
    ASSERT_EQ(ring.value(), i);
  }
  EXPECT_TRUE(Eventually([&] { return ring.requests() == 300; }));
  EXPECT_EQ(ring.errors(), 0U);
  EXPECT_TRUE(Eventually([&] { return rank(0).Statistic(shm::Statistic::kRingRequests) == 300; }));
  EXPECT_EQ(rank(0).Statistic(shm::Statistic::kRingErrors), 0U);
}

TEST_F(RingsTest, AddsToCountersForManyThreads) {
  StartWithRegion();
  TestRing ring(rank(0), region_);
  constexpr uint32_t kThreads = 16;
  constexpr uint64_t kEach = 500;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const ferry_device_ring mine = ring.Open();
      const ferry_device_place counter{kRegion, 0, kCounters};
      for (uint64_t n = 1; n < kEach; ++n) {
        ferry_device_ring_add(mine, counter, 1, FERRY_DEVICE_RING_SILENT);
      }
      const ferry_device_u64 last = ferry_device_ring_add(mine, counter, 1, i);
      EXPECT_EQ(ferry_device_ring_wait(mine, i, last), 0);
      EXPECT_GE(ferry_device_ring_value(mine, i), kEach);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(shm::Counter(CounterAt(region_, kCounters)).Value(), kThreads * kEach);
}

TEST_F(RingsTest, RefusesWhatItCannotCarryOut) {
  StartWithRegion();
  TestRing ring(rank(0), region_);
  const struct {
    const char* what;
    ferry_device_ring_request request;
    ErrorCode error;
  } cases[] = {
      {"no kind", Request(0, kRegion, kCounters, 1), ErrorCode::kInvalidArgument},
      {"unknown kind", Request(10, kRegion, kCounters, 1), ErrorCode::kInvalidArgument},
      {"wild kind", Request(~0U, kRegion, kCounters, 1), ErrorCode::kInvalidArgument},
      {"flags", {1, 0, 0, 0, 1, 0, 0, {0, 0}}, ErrorCode::kInvalidArgument},
      {"reserved words", {1, 0, 0, 0, 0, 0, 0, {0, 1}}, ErrorCode::kInvalidArgument},
      {"no region", Request(2, 0, kCounters, 1), ErrorCode::kInvalidBuffer},
      {"unknown region", Request(2, 77, kCounters, 1), ErrorCode::kInvalidBuffer},
      {"past the region", Request(2, kRegion, kRegionBytes - 32, 1), ErrorCode::kInvalidBuffer},
      {"far past it", Request(2, kRegion, ~uint64_t{63}, 1), ErrorCode::kInvalidBuffer},
      {"not aligned", Request(2, kRegion, kCounters + 8, 1), ErrorCode::kInvalidBuffer},
      {"adds nothing", Request(2, kRegion, kCounters, 0), ErrorCode::kInvalidArgument},
      {"adds a failure", Request(2, kRegion, kCounters, shm::kCounterFailure),
       ErrorCode::kInvalidArgument},
      {"waits for a failure", Request(3, kRegion, kCounters, shm::kCounterFailure),
       ErrorCode::kInvalidArgument},
      {"waits nowhere", Request(3, kRegion, kRegionBytes, 1), ErrorCode::kInvalidBuffer},
      {"starts no request", Request(4, kRegion, kCounters, 0), ErrorCode::kInvalidRequest},
      {"starts nothing", Request(4, 0, 0, 0), ErrorCode::kInvalidRequest},
      {"starts with a value", Request(4, kRegion, kCounters, 1), ErrorCode::kInvalidArgument},
  };
  uint64_t errors = 0;
  for (const auto& bad : cases) {
    EXPECT_EQ(ring.Ask(bad.request), bad.error) << bad.what;
    EXPECT_EQ(ring.errors(), ++errors) << bad.what;
  }
  EXPECT_EQ(CounterAt(region_, kCounters)->value, 0U);
  EXPECT_EQ(ring.words().first_ticket, 0U);
  EXPECT_EQ(ring.words().first_kind, 0U);
  EXPECT_EQ(ring.words().first_error, static_cast<int32_t>(ErrorCode::kInvalidArgument));
  EXPECT_TRUE(Eventually([&] { return rank(0).Statistic(shm::Statistic::kRingErrors) == errors; }));
  // The rank goes on as if nothing had happened.
  EXPECT_EQ(ring.Ask(Request(2, kRegion, kCounters, 3)), ErrorCode::kOk);
  EXPECT_EQ(ring.value(), 3U);
  std::lock_guard lock(told_.mutex);
  EXPECT_TRUE(told_.violations.empty());
}

TEST_F(RingsTest, CarriesOutNothingWhoseAnswerHasNoPlace) {
  StartWithRegion();
  TestRing ring(rank(0), region_);
  const ferry_device_ring mine = ring.Open();
  const std::pair<uint32_t, uint64_t> places[] = {{77, 0},
                                                  {kRegion, kRegionBytes},
                                                  {kRegion, kRegionBytes - 8},
                                                  {kRegion, kCounters + 4},
                                                  {kRegion, ~uint64_t{7}}};
  for (const auto& [in, offset] : places) {
    ferry_device_ring_post(mine, {2, in, offset, kRegion, 0, kCounters, 1, {0, 0}});
  }
  // A request that asks for no answer is counted, too.
  ferry_device_ring_post(mine, {3, 0, 0, kRegion, 0, kCounters, 1, {0, 0}});
  ferry_device_ring_post(mine, {99, 0, 0, 0, 0, 0, 0, {0, 0}});
  EXPECT_EQ(ring.Ask(Request(1, 0, 0, 5)), ErrorCode::kOk);
  EXPECT_EQ(ring.errors(), std::size(places) + 2);
  EXPECT_EQ(ring.words().first_error, static_cast<int32_t>(ErrorCode::kInvalidBuffer));
  EXPECT_EQ(ring.words().first_kind, 2U);
  EXPECT_EQ(CounterAt(region_, kCounters)->value, 0U);
}

// A ring in the second rank's name, or memory that is the first one's.
TEST_F(RingsTest, ARankReachesNothingOfAnother) {
  Start({2});
  const auto of_first = AddRegion(0, 21);
  const auto of_second = AddRegion(1, 22);
  TestRing ring(rank(1), of_second);
  ASSERT_EQ(ring.error(), ErrorCode::kOk);
  EXPECT_EQ(ring.Ask(Request(2, 21, kCounters, 1)), ErrorCode::kInvalidBuffer);
  ferry_device_ring_post(ring.Open(), {1, 21, 64, 0, 0, 0, 5, {0, 0}});
  EXPECT_TRUE(Eventually([&] { return ring.errors() == 2; }));
  for (uint64_t i = 0; i < kRegionBytes; ++i) {
    ASSERT_EQ(of_first->mapping.base()[i], std::byte{0}) << i;
  }
  TestRing elsewhere(rank(1), of_second, 1, 256 << 10);
  ASSERT_EQ(elsewhere.error(), ErrorCode::kOk);
  elsewhere.Change();
  ASSERT_TRUE(elsewhere.IsSettled());
  elsewhere.SentRts(21, 0, 64);
  EXPECT_EQ(elsewhere.error(), ErrorCode::kInvalidBuffer);
}

TEST_F(RingsTest, RefusesRingsThatCannotBe) {
  StartWithRegion();
  TestRing ring(rank(0), region_);
  ASSERT_EQ(ring.error(), ErrorCode::kOk);
  const struct {
    uint32_t region;
    uint64_t offset;
    uint32_t capacity;
    ErrorCode error;
  } cases[] = {
      {kRegion, 0, 0, ErrorCode::kInvalidArgument},
      {kRegion, 0, 1, ErrorCode::kInvalidArgument},
      {kRegion, 0, 48, ErrorCode::kInvalidArgument},
      {kRegion, 0, shm::kMaxRingSlots * 2, ErrorCode::kInvalidArgument},
      {kRegion, 0, shm::kMaxRingSlots, ErrorCode::kInvalidBuffer},  // 4 MiB
      {kRegion, kRegionBytes, 16, ErrorCode::kInvalidBuffer},
      {kRegion, ~uint64_t{127}, 16, ErrorCode::kInvalidBuffer},
      {kRegion, 64, 16, ErrorCode::kInvalidBuffer},
      {0, 0, 16, ErrorCode::kInvalidBuffer},
      {77, 0, 16, ErrorCode::kInvalidBuffer},
  };
  TestRing other(rank(0), region_, 15, 256 << 10);
  for (const auto& bad : cases) {
    other.Change();
    ASSERT_TRUE(other.IsSettled());
    other.SentRts(bad.region, bad.offset, bad.capacity);
    EXPECT_EQ(other.error(), bad.error) << bad.region << " " << bad.offset << " " << bad.capacity;
  }
  EXPECT_EQ(ring.Ask(Request(1, 0, 0, 1)), ErrorCode::kOk);
}

TEST_F(RingsTest, AnswersWaitsAsTheirCountersCome) {
  StartWithRegion();
  TestRing ring(rank(0), region_);
  ferry_device_u64 numbers[3];
  for (uint32_t i = 0; i < 3; ++i) {
    numbers[i] = ring.Post(Request(3, kRegion, kCounters, 10 * (3 - i)), i);
  }
  EXPECT_EQ(ring.Answer(5, ring.Post(Request(2, kRegion, kCounters, 10), 5)), ErrorCode::kOk);
  EXPECT_EQ(ring.Answer(2, numbers[2]), ErrorCode::kOk);  // the last one first
  EXPECT_EQ(ring.value(2), 10U);
  EXPECT_EQ(ferry_device_ring_test(ring.Open(), 0, numbers[0]), FERRY_DEVICE_RING_PENDING);
  shm::Counter(CounterAt(region_, kCounters)).Add(15);  // added by a CPU
  EXPECT_EQ(ring.Answer(1, numbers[1]), ErrorCode::kOk);
  EXPECT_EQ(ring.value(1), 25U);
  EXPECT_EQ(ferry_device_ring_test(ring.Open(), 0, numbers[0]), FERRY_DEVICE_RING_PENDING);
  shm::Counter(CounterAt(region_, kCounters)).Fail(ErrorCode::kAborted);
  EXPECT_EQ(ring.Answer(0, numbers[0]), ErrorCode::kAborted);
  EXPECT_EQ(ring.Ask(Request(2, kRegion, kCounters, 1)), ErrorCode::kAborted);
  EXPECT_EQ(ring.Ask(Request(3, kRegion, kCounters, 1)), ErrorCode::kOk);  // it had arrived
}

TEST_F(RingsTest, SoManyWaitAndNoMore) {
  StartWithRegion();
  TestRing ring(rank(0), region_);
  std::vector<ferry_device_u64> numbers;
  for (uint32_t i = 0; i < 1025; ++i) {
    numbers.push_back(ring.Post(Request(3, kRegion, kCounters, 1), i));
  }
  EXPECT_EQ(ring.Answer(1024, numbers[1024]), ErrorCode::kLimitExceeded);
  shm::Counter(CounterAt(region_, kCounters)).Add(1);
  for (uint32_t i = 0; i < 1024; ++i) {
    ASSERT_EQ(ring.Answer(i, numbers[i]), ErrorCode::kOk) << i;
  }
}

// A ticket is taken and never published, as a killed rank leaves it, but the rank lives.
TEST_F(RingsTest, AStalledRingHoldsUpNobodyElse) {
  StartWithRegion(2);
  TestRing stalled(rank(0), region_);
  TestRing other(rank(0), region_, 1, 128 << 10);
  TestRing neighbour(rank(1), AddRegion(1));
  (void)ferry_device_fetch_add(stalled.Open().producers, 1);
  const ferry_device_u64 behind = stalled.Post(Request(1, 0, 0, 1), 0);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(other.Ask(Request(1, 0, 0, 1)), ErrorCode::kOk);
    ASSERT_EQ(neighbour.Ask(Request(1, 0, 0, 1)), ErrorCode::kOk);
  }
  const uint32_t request = rank(1).Receive(0, 5, InHeap(0), 8);
  rank(0).Send(1, 5, "1234567", 8);
  EXPECT_EQ(WaitTogether(1, request), ErrorCode::kOk);
  EXPECT_EQ(ferry_device_ring_test(stalled.Open(), 0, behind), FERRY_DEVICE_RING_PENDING);
  stalled.Change();  // it can be closed
  EXPECT_TRUE(stalled.IsSettled());
  EXPECT_EQ(ferry_device_ring_wait(stalled.Open(), 0, behind),
            static_cast<int>(ErrorCode::kCancelled));
  RemoveRank(0);
  EXPECT_EQ(neighbour.Ask(Request(1, 0, 0, 1)), ErrorCode::kOk);
}

TEST_F(RingsTest, WhatWasPostedBeforeTheCloseIsDone) {
  StartWithRegion();
  TestRing ring(rank(0), region_, 0, 0, 1024);
  ASSERT_EQ(ring.error(), ErrorCode::kOk);
  const ferry_device_ring mine = ring.Open();
  for (int i = 0; i < 1000; ++i) {
    ferry_device_ring_add(mine, {kRegion, 0, kCounters}, 1, FERRY_DEVICE_RING_SILENT);
  }
  const ferry_device_u64 never =
      ring.Post(Request(FERRY_DEVICE_RING_COUNTER_WAIT, kRegion, kCounters, 5000), 1);
  ring.Change();
  ASSERT_TRUE(ring.IsSettled());
  EXPECT_EQ(shm::Counter(CounterAt(region_, kCounters)).Value(), 1000U);
  EXPECT_EQ(ring.Answer(1, never), ErrorCode::kCancelled);
  // Then the place serves another ring.
  std::memset(region_->mapping.base(), 0, kCounters);
  TestRing again(rank(0), region_);
  ASSERT_EQ(again.error(), ErrorCode::kOk);
  EXPECT_EQ(again.Ask(Request(1, 0, 0, 8)), ErrorCode::kOk);
  EXPECT_EQ(again.requests(), 1U);
}

TEST_F(RingsTest, ARegionThatGoesEndsItsRings) {
  StartWithRegion();
  const auto other = AddRegion(0, kRegion + 1);
  TestRing ring(rank(0), region_);
  TestRing stays(rank(0), other, 1);
  const ferry_device_u64 waits = ring.Post(Request(3, kRegion, kCounters, 1), 0);
  const ferry_device_u64 too = stays.Post(Request(3, kRegion, kCounters, 1), 0);
  ASSERT_TRUE(Eventually([&] { return ring.requests() == 1 && stays.requests() == 1; }));
  plane(0).RemoveRegion(kJob, 0, kRegion);
  EXPECT_EQ(ferry_device_ring_wait(ring.Open(), 0, waits),
            static_cast<int>(ErrorCode::kInvalidBuffer));
  EXPECT_EQ(stays.Answer(0, too), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(stays.Ask(Request(1, 0, 0, 1)), ErrorCode::kOk);
}

// A rank that scribbles over its own ring harms no other rank.
TEST_F(RingsTest, AScribblingRankHarmsItselfOnly) {
  StartWithRegion(2);
  TestRing ring(rank(0), region_);
  TestRing neighbour(rank(1), AddRegion(1));
  ASSERT_EQ(ring.error(), ErrorCode::kOk);
  const ferry_device_ring mine = ring.Open();
  uint64_t seed = 1;
  for (int round = 0; round < 200; ++round) {
    for (uint64_t at = 0; at < shm::MpscRing::SizeBytes(64); at += 8) {
      seed = seed * 6364136223846793005 + 1442695040888963407;
      reinterpret_cast<uint64_t*>(region_->mapping.base())[at / 8] = seed >> (round % 64);
    }
    // Slots with the very number that the daemon looks for, and anything in them.
    auto* const slots = reinterpret_cast<shm::MpscSlot*>(ring.layout() + 1);
    for (uint64_t ticket = 0; ticket < 64; ++ticket) {
      shm::StoreRelease(slots[ticket].number, static_cast<uint64_t>(round) * 64 + ticket + 1);
    }
    ASSERT_EQ(neighbour.Ask(Request(1, 0, 0, seed)), ErrorCode::kOk);
  }
  (void)mine;
  RemoveRank(0);
  EXPECT_EQ(neighbour.Ask(Request(1, 0, 0, 1)), ErrorCode::kOk);
}

// Nothing rings for a GPU: the daemon finds requests by itself, after an idle time, too, and sleeps
// meanwhile.
TEST_F(RingsTest, AnIdleRingIsLookedAtAndCostsLittle) {
  Start({1});
  TestRing ring(rank(0), AddRegion(0));
  ASSERT_EQ(ring.Ask(Request(1, 0, 0, 1)), ErrorCode::kOk);
  const uint64_t sleeps = Turns(0).sleeps;
  ASSERT_TRUE(Eventually([&] { return Turns(0).sleeps > sleeps + 50; }));
  const uint64_t turns = Turns(0).turns;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(Eventually(
      [&] { return std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(300); }));
  const uint64_t looks = Turns(0).turns - turns;
  EXPECT_GT(looks, 3U);
  EXPECT_LT(looks, 3'000U);  // a daemon that does not sleep turns a million times
  EXPECT_EQ(ring.Ask(Request(1, 0, 0, 2)), ErrorCode::kOk);
}

// ---- Matched requests ---------------------------------------------------------------------------

class RingStartsTest : public RingsTest {
 protected:
  static constexpr uint64_t kEnd = 640 << 10;     // of the pair, in each region
  static constexpr uint64_t kWindow = 768 << 10;  // its messages
  static constexpr uint64_t kBytes = 600;

  // The two ends of a pair between rank 0, which sends, and rank 1.
  void StartPair(uint64_t bytes = kBytes) {
    Start({1, 1});
    for (uint32_t i = 0; i < 2; ++i) {
      regions_[i] = AddRegion(i, kRegion, std::max<uint64_t>(kRegionBytes, kWindow + bytes));
      PairPlan plan;
      plan.name = {kJob, i, 1};
      plan.peer = 1 - i;
      plan.is_send = i == 0;
      plan.mode = shm::SendMode::kSynchronous;
      plan.size_bytes = bytes;
      plan.peer_number = 1;
      plan.end = {regions_[i], kEnd};
      plan.window = {regions_[i], kWindow};
      const Status status = plane(i).AddPair(plan);
      ASSERT_TRUE(status.ok()) << status.ToString();
      rings_[i] = std::make_unique<TestRing>(rank(i), regions_[i]);
    }
  }
  shm::PairLayout& End(uint32_t of_rank) {
    return *reinterpret_cast<shm::PairLayout*>(regions_[of_rank]->mapping.base() + kEnd);
  }
  // Does what ferry_ring_prepare_start does.
  void Arm(uint32_t of_rank, uint64_t start) {
    shm::StoreRelease(End(of_rank).armed, start);
    shm::FetchAdd(rank(of_rank).view().layout->pairs_armed, uint64_t{1}, std::memory_order_seq_cst);
    rank(of_rank).RingDaemon();
  }

  // Does what a stream does.
  void StartByDoorbell(uint32_t of_rank, uint64_t start) {
    Arm(of_rank, start);
    shm::StoreRelease(End(of_rank).start.value, start);
  }

  std::shared_ptr<Region> regions_[2];
  std::unique_ptr<TestRing> rings_[2];
};

// The message comes in one piece, of which no turn sees anything before it is complete.
TEST_F(RingStartsTest, DaemonsStayAwakeForALongMessage) {
  using std::chrono::milliseconds;
  constexpr uint64_t kLong = 24 << 20;
  const auto turns_in = [this](milliseconds time) {
    const uint64_t before = Turns(1).turns;
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < time) {
      std::this_thread::yield();
    }
    return Turns(1).turns - before;
  };
  StartPair(kLong);
  uint64_t most = 0;
  // On a busy machine the daemon has no core for some milliseconds now and then.
  for (uint64_t round = 1; round <= 50 && most <= 200; ++round) {
    StartByDoorbell(1, round);
    (void)turns_in(
        milliseconds(2));  // for the start itself, and for work that waits for no transfer
    most = std::max(most, turns_in(milliseconds(6)));
    StartByDoorbell(0, round);
    ASSERT_TRUE(Eventually([&] { return shm::LoadAcquire(End(1).done.value) == round; }));
    ASSERT_TRUE(Eventually([&] { return shm::LoadAcquire(End(0).done.value) == round; }));
  }
  EXPECT_GT(most, 200U);
}

TEST_F(RingStartsTest, StartsMatchedRequestsAndAnswersWhenTheirMessagesAreThere) {
  StartPair();
  for (uint32_t round = 1; round <= 20; ++round) {
    const std::vector<std::byte> sent = Pattern(kBytes, round);
    std::memcpy(regions_[0]->mapping.base() + kWindow, sent.data(), kBytes);
    Arm(0, round);
    Arm(1, round);
    const ferry_device_u64 send = rings_[0]->Post(Request(4, kRegion, kEnd, 0), 0);
    if (round == 1) {  // nothing moves until the receive is started
      EXPECT_EQ(rings_[0]->Answer(1, rings_[0]->Post(Request(1, 0, 0, 1), 1)), ErrorCode::kOk);
      EXPECT_EQ(ferry_device_ring_test(rings_[0]->Open(), 0, send), FERRY_DEVICE_RING_PENDING);
    }
    ASSERT_EQ(rings_[1]->Ask(Request(4, kRegion, kEnd, 0)), ErrorCode::kOk);
    EXPECT_EQ(rings_[1]->value(), round);
    EXPECT_EQ(std::memcmp(regions_[1]->mapping.base() + kWindow, sent.data(), kBytes), 0);
    ASSERT_EQ(rings_[0]->Answer(0, send), ErrorCode::kOk);
  }
  EXPECT_EQ(rings_[0]->errors() + rings_[1]->errors(), 0U);
}

TEST_F(RingStartsTest, StartsOnlyWhatItsRankHasPrepared) {
  StartPair();
  EXPECT_EQ(rings_[0]->Ask(Request(4, kRegion, kEnd, 0)), ErrorCode::kInvalidRequest);
  Arm(0, 1);
  Arm(1, 1);
  const ferry_device_u64 send = rings_[0]->Post(Request(4, kRegion, kEnd, 0), 0);
  const ferry_device_u64 again = rings_[0]->Post(Request(4, kRegion, kEnd, 0), 1);
  EXPECT_EQ(rings_[0]->Answer(1, again), ErrorCode::kInvalidRequest);
  const ferry_device_u64 beside = rings_[0]->Post(Request(4, kRegion, kEnd + 64, 0), 2);
  EXPECT_EQ(rings_[0]->Answer(2, beside), ErrorCode::kInvalidRequest);
  EXPECT_EQ(rings_[1]->Ask(Request(4, kRegion, kEnd, 0)), ErrorCode::kOk);
  EXPECT_EQ(rings_[0]->Answer(0, send), ErrorCode::kOk);
}

TEST_F(RingStartsTest, APairThatEndsAnswersItsStarts) {
  StartPair();
  Arm(0, 1);
  const ferry_device_u64 send = rings_[0]->Post(Request(4, kRegion, kEnd, 0), 0);
  ASSERT_TRUE(Eventually([&] { return rings_[0]->requests() == 1; }));
  plane(0).EndPair({kJob, 0, 1}, 0, ErrorCode::kPeerDied);
  EXPECT_EQ(rings_[0]->Answer(0, send), ErrorCode::kPeerDied);
  Arm(0, 2);
  EXPECT_EQ(rings_[0]->Ask(Request(4, kRegion, kEnd, 0)), ErrorCode::kPeerDied);
}

}  // namespace
}  // namespace ferry::daemon

// Rings of devices: operations in the memory of other ranks, of the own node and of another one.
#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/daemon/device_rings/ring_operations_fixture.h"

namespace ferry::daemon {
namespace {

TEST_F(RingOperationsTest, PutsAndGetsOfAllSizesReachEveryRank) {
  StartRanks();
  for (const uint32_t peer : {0U, kNear, kFar}) {
    for (const uint64_t size_bytes :
         {uint64_t{1}, uint64_t{16}, uint64_t{17}, uint64_t{8192}, uint64_t{8193},
          uint64_t{64 << 10}, uint64_t{70'001}, uint64_t{2 << 20}}) {
      SCOPED_TRACE(std::to_string(size_bytes) + " bytes, rank " + std::to_string(peer));
      const std::vector<std::byte> data = Pattern(size_bytes, 3 + peer);
      std::memcpy(own(), data.data(), size_bytes);
      std::memset(rank(peer).heap() + 1000, 0, size_bytes + 1);
      ASSERT_EQ(Put(peer, 1000, size_bytes), ErrorCode::kOk);
      std::memset(own(), 0, size_bytes);  // the source may be changed
      ASSERT_EQ(Quiet(), ErrorCode::kOk);
      ASSERT_EQ(std::memcmp(rank(peer).heap() + 1000, data.data(), size_bytes), 0);
      ASSERT_EQ(rank(peer).heap()[1000 + size_bytes], std::byte{});
      own()[size_bytes] = std::byte{0x77};
      ASSERT_EQ(Get(peer, 1000, size_bytes), ErrorCode::kOk);
      ASSERT_EQ(std::memcmp(own(), data.data(), size_bytes), 0);
      ASSERT_EQ(own()[size_bytes], std::byte{0x77});
    }
  }
  EXPECT_EQ(ring_->errors(), 0U);
  EXPECT_EQ(rank(0).Statistic(shm::Statistic::kOneSidedOperations), 3U * 8 * 2);
}

TEST_F(RingOperationsTest, ValuesTravelInTheRequestAndTheAnswer) {
  StartRanks();
  const std::vector<std::byte> data = Pattern(16, 7);
  uint64_t words[2];
  std::memcpy(words, data.data(), sizeof(words));
  for (const uint32_t peer : {0U, kNear, kFar}) {
    for (uint32_t size_bytes = 1; size_bytes <= 16; ++size_bytes) {
      std::memset(rank(peer).heap(), 0, 32);
      ferry_device_ring_put_value(view_, There(peer, 3), words[0], words[1], size_bytes, 0,
                                  kSilent);
      ASSERT_EQ(Quiet(), ErrorCode::kOk);
      EXPECT_EQ(std::memcmp(rank(peer).heap() + 3, data.data(), size_bytes), 0);
      EXPECT_EQ(rank(peer).heap()[3 + size_bytes], std::byte{});
      const uint32_t got = std::min(size_bytes, 8U);
      ASSERT_EQ(ring_->Answer(5, ferry_device_ring_get_value(view_, There(peer, 3), got, 5)),
                ErrorCode::kOk);
      const uint64_t value = ring_->value(5);
      EXPECT_EQ(std::memcmp(&value, data.data(), got), 0);
      EXPECT_EQ(got == 8 ? 0 : value >> 8 * got, 0U);
    }
  }
}

TEST_F(RingOperationsTest, EveryAtomicOperationOfBothWidths) {
  const struct {
    uint32_t operation;
    uint64_t operand, compare, after;
  } cases[] = {{FERRY_DEVICE_RING_FETCH, 1, 0, 12},
               {FERRY_DEVICE_RING_SET, 7, 0, 7},
               {FERRY_DEVICE_RING_SWAP, 8, 0, 8},
               {FERRY_DEVICE_RING_COMPARE_SWAP, 9, 12, 9},
               {FERRY_DEVICE_RING_COMPARE_SWAP, 9, 1, 12},
               {FERRY_DEVICE_RING_ADD, 5, 0, 17},
               {FERRY_DEVICE_RING_AND, 5, 0, 4},
               {FERRY_DEVICE_RING_OR, 5, 0, 13},
               {FERRY_DEVICE_RING_XOR, 5, 0, 9}};
  StartRanks();
  for (const uint32_t peer : {kNear, kFar}) {
    for (const uint32_t width : {4U, 8U}) {
      const uint64_t others = width == 4 ? 0xabcdef00'00000000 : 0;
      for (const auto& one : cases) {
        for (const uint32_t completion : {3U, kSilent}) {
          Word(peer, 128) = 12 | others;
          const ferry_device_u64 number =
              ferry_device_ring_atomic(view_, There(peer, 128), one.operation, width, one.operand,
                                       one.compare, 0, completion);
          if (completion != kSilent) {
            ASSERT_EQ(ring_->Answer(completion, number), ErrorCode::kOk);
            EXPECT_EQ(ring_->value(completion), 12U);
          }
          ASSERT_EQ(Quiet(), ErrorCode::kOk);
          EXPECT_EQ(Word(peer, 128), one.after | others) << one.operation << " of " << width;
        }
      }
    }
  }
}

// Threads of a device, the rank's lane and a CPU on one word; the lane's numbers are its own.
TEST_F(RingOperationsTest, ManyThreadsAndTheLaneDoNotMixTheirNumbers) {
  StartRanks();
  constexpr uint64_t kThreads = 8, kTimes = 500;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const ferry_device_ring mine = ring_->Open();
      const uint32_t peer = i % 2 == 0 ? kFar : kNear;
      for (uint64_t n = 1; n < kTimes; ++n) {
        ferry_device_ring_atomic(mine, There(peer, 0), FERRY_DEVICE_RING_ADD, 8, 1, 0, 0, kSilent);
      }
      const auto place = static_cast<uint32_t>(i);
      const ferry_device_u64 last =
          ferry_device_ring_atomic(mine, There(peer, 0), FERRY_DEVICE_RING_ADD, 8, 1, 0, 0, place);
      EXPECT_EQ(ferry_device_ring_wait(mine, place, last), 0);
      EXPECT_GE(ferry_device_ring_value(mine, place), kTimes - 1);
      EXPECT_EQ(ferry_device_ring_quiet(mine), 0);
    });
  }
  for (uint64_t n = 0; n < kTimes; ++n) {
    AddByLane(0);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const shm::OneSidedWords& told = rank(0).view().by_rank.one_sided[kFar];
  EXPECT_TRUE(Eventually([&] { return shm::LoadAcquire(told.done) == kTimes; }));
  EXPECT_EQ(Word(kFar, 0), (kThreads / 2 + 1) * kTimes);
  EXPECT_EQ(Word(kNear, 0), kThreads / 2 * kTimes);
  EXPECT_EQ(shm::LoadAcquire(rank(0).view().layout->failures[0].count), 0U);
}

TEST_F(RingOperationsTest, ShortOperationsWithARankKeepTheirOrder) {
  StartRanks();
  constexpr uint64_t kWords = 3000;
  for (const uint32_t peer : {kNear, kFar}) {
    uint64_t seen = 0;
    for (uint64_t i = 1; i <= kWords; ++i) {
      PutSilently(peer, 8 * i, i);
      PutSilently(peer, 0, i);
      const uint64_t now = shm::LoadAcquire(Word(peer, 0));  // whatever it says is there
      ASSERT_GE(now, seen);
      ASSERT_TRUE(now == 0 || Word(peer, 8 * now) == now);
      seen = now;
    }
    ASSERT_EQ(Quiet(), ErrorCode::kOk);
    EXPECT_EQ(Word(peer, 0), kWords);
  }
}

// A slow NIC holds the bytes back.
TEST_F(RingOperationsTest, WhatIsInOrderComesAfterLongPuts) {
  StartRanks();
  for (const bool by_fence : {false, true}) {
    constexpr uint64_t kBytes = 1 << 20;
    const std::vector<std::byte> data = Pattern(kBytes, 9);
    std::memcpy(own(), data.data(), kBytes);
    std::memset(rank(kFar).heap(), 0, kBytes + 64);
    gate(1).closed = true;
    ferry_device_ring_put(view_, There(kFar, 64), Here(), kBytes, 0, kSilent);
    PutSilently(kFar, 8, 1);  // overtakes it
    if (by_fence) {
      ferry_device_ring_fence(view_);
    }
    PutSilently(kFar, 0, 1, by_fence ? 0 : kInOrder);
    PutSilently(kFar, 16, 1);  // what follows for the rank waits behind
    PutSilently(kNear, 16, 1);
    ASSERT_EQ(ring_->Ask(Request(FERRY_DEVICE_RING_NOP, 0, 0, 4)), ErrorCode::kOk);
    ASSERT_TRUE(
        Eventually([&] { return gate(1).held != 0 && shm::LoadAcquire(Word(kFar, 8)) == 1; }));
    EXPECT_EQ(Word(kNear, 16), 1U);
    EXPECT_EQ(shm::LoadAcquire(Word(kFar, 0)), 0U);
    EXPECT_EQ(shm::LoadAcquire(Word(kFar, 16)), 0U);
    gate(1).closed = false;
    ASSERT_TRUE(Eventually([&] { return shm::LoadAcquire(Word(kFar, 0)) == 1; }));
    EXPECT_EQ(std::memcmp(rank(kFar).heap() + 64, data.data(), kBytes), 0);
    ASSERT_EQ(Quiet(), ErrorCode::kOk);
    EXPECT_EQ(Word(kFar, 16), 1U);
    Word(kNear, 16) = 0;
  }
}

// The peer has nothing under way when it comes.
TEST_F(RingOperationsTest, AFenceDoesNotBindWhatIsBegunLater) {
  StartRanks();
  gate(1).closed = true;
  ferry_device_ring_fence(view_);
  ferry_device_ring_put(view_, There(kFar, 64), Here(), 1 << 20, 0, kSilent);
  PutSilently(kFar, 8, 1);
  PutSilently(kFar, 16, 1);
  ASSERT_TRUE(
      Eventually([&] { return gate(1).held != 0 && shm::LoadAcquire(Word(kFar, 16)) == 1; }));
  EXPECT_EQ(Word(kFar, 8), 1U);
  ferry_device_ring_fence(view_);
  PutSilently(kFar, 24, 1);
  ASSERT_EQ(ring_->Ask(Request(FERRY_DEVICE_RING_NOP, 0, 0, 4)), ErrorCode::kOk);
  AddByLane(32);  // leaves after all that was not held
  ASSERT_TRUE(Eventually([&] { return shm::LoadAcquire(Word(kFar, 32)) == 1; }));
  EXPECT_EQ(shm::LoadAcquire(Word(kFar, 24)), 0U);
  gate(1).closed = false;
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  EXPECT_EQ(Word(kFar, 24), 1U);
}

TEST_F(RingOperationsTest, LongCopiesInsideTheNodeAreInOrderToo) {
  StartRanks();
  constexpr uint64_t kBytes = 3 << 20;
  const std::vector<std::byte> data = Pattern(kBytes, 4);
  std::memcpy(own(), data.data(), kBytes);
  for (int round = 1; round <= 5; ++round) {
    std::memset(rank(kNear).heap() + 64, 0, kBytes);
    ferry_device_ring_put(view_, There(kNear, 64), Here(), kBytes, 0, kSilent);
    PutSilently(kNear, 0, static_cast<uint64_t>(round), kInOrder);
    ASSERT_TRUE(Eventually(
        [&] { return shm::LoadAcquire(Word(kNear, 0)) == static_cast<uint64_t>(round); }));
    ASSERT_EQ(std::memcmp(rank(kNear).heap() + 64, data.data(), kBytes), 0);
  }
}

TEST_F(RingOperationsTest, DeviceMemoryThatOnlyStreamsReach) {
  UseDevices(100'000, 100'000);
  ASSERT_NO_FATAL_FAILURE(Start({2, 1}));
  MakeRing();
  const std::vector<std::byte> data = Pattern(100'000, 6);
  const ferry_device_far_place there = {kFar, kDeviceRegion | shm::kSegmentByStream, 256};
  for (const uint64_t size_bytes : {uint64_t{100}, uint64_t{100'000}}) {
    std::memcpy(own(), data.data(), size_bytes);
    ferry_device_ring_put(view_, there, Here(), size_bytes, 0, kSilent);
    ASSERT_EQ(Quiet(), ErrorCode::kOk);
    EXPECT_EQ(std::memcmp(rank(kFar).device() + 256, data.data(), size_bytes), 0);
    std::memset(own(), 0, size_bytes);
    ASSERT_EQ(ring_->Answer(0, ferry_device_ring_get(view_, Here(), there, size_bytes, 0)),
              ErrorCode::kOk);
    EXPECT_EQ(std::memcmp(own(), data.data(), size_bytes), 0);
  }
  // And of the rank's own.
  const ferry_device_place own_device = {kDeviceRegion, 0, 128};
  for (const uint64_t size_bytes : {uint64_t{100}, uint64_t{100'000}}) {
    std::memcpy(rank(0).device() + 128, data.data() + 1, size_bytes - 1);
    ferry_device_ring_put(view_, There(kFar, 512), own_device, size_bytes - 1, 0, kSilent);
    ASSERT_EQ(Quiet(), ErrorCode::kOk);
    EXPECT_EQ(std::memcmp(rank(kFar).heap() + 512, data.data() + 1, size_bytes - 1), 0);
    std::memset(rank(0).device() + 128, 0, size_bytes);
    ASSERT_EQ(ring_->Answer(
                  0, ferry_device_ring_get(view_, own_device, There(kFar, 512), size_bytes - 1, 0)),
              ErrorCode::kOk);
    EXPECT_EQ(std::memcmp(rank(0).device() + 128, data.data() + 1, size_bytes - 1), 0);
  }
  // No word there can be changed, and nothing is fetched from a request.
  EXPECT_EQ(ring_->Answer(0, ferry_device_ring_put_value(view_, there, 1, 0, 8, 0, 0)),
            ErrorCode::kUnsupported);
  ferry_device_far_place near = there;
  near.rank = kNear;
  EXPECT_EQ(ring_->Answer(0, ferry_device_ring_put(view_, near, Here(), 8, 0, 0)),
            ErrorCode::kUnsupported);
}

// ---- Signals ------------------------------------------------------------------------------------

TEST_F(RingOperationsTest, ASignalComesWithItsPutAndThenTheAnswer) {
  StartRanks();
  constexpr uint64_t kWord = 8, kThere = 64;
  for (const uint32_t peer : {0U, kNear, kFar}) {
    uint64_t wanted = Word(peer, kWord) = 5;
    for (const uint64_t size_bytes :
         {uint64_t{1}, uint64_t{16}, uint64_t{8192}, uint64_t{8193}, uint64_t{300'001}}) {
      for (const bool adds : {true, false}) {
        SCOPED_TRACE(std::to_string(size_bytes) + " bytes, rank " + std::to_string(peer));
        const std::vector<std::byte> data = Pattern(size_bytes, size_bytes + peer);
        std::memcpy(own(), data.data(), size_bytes);
        std::memset(rank(peer).heap() + kThere, 0, size_bytes);
        ASSERT_EQ(ring_->Answer(3, PutSignal(There(peer, kThere), size_bytes, There(peer, kWord),
                                             adds, 1000, 3)),
                  ErrorCode::kOk);
        wanted = adds ? wanted + 1000 : 1000;
        EXPECT_EQ(Word(peer, kWord), wanted);
        EXPECT_EQ(std::memcmp(rank(peer).heap() + kThere, data.data(), size_bytes), 0);
      }
    }
  }
  EXPECT_EQ(ring_->errors(), 0U);
  EXPECT_EQ(rank(0).Statistic(shm::Statistic::kOneSidedOperations), 3U * 5 * 2);
}

// A slow NIC holds the bytes of the first one back: the second one does not wait for that.
TEST_F(RingOperationsTest, SignalledPutsDoNotWaitForEachOther) {
  StartRanks();
  gate(1).closed = true;
  const ferry_device_u64 first =
      PutSignal(There(kFar, 64), 1 << 20, There(kFar, 0), /*adds=*/true, 1, 1);
  ASSERT_EQ(ring_->Answer(2, PutSignal(There(kFar, 64), 100, There(kFar, 8), true, 1, 2)),
            ErrorCode::kOk);
  EXPECT_EQ(Word(kFar, 8), 1U);
  EXPECT_EQ(shm::LoadAcquire(Word(kFar, 0)), 0U);
  gate(1).closed = false;
  EXPECT_EQ(ring_->Answer(1, first), ErrorCode::kOk);
  EXPECT_EQ(Word(kFar, 0), 1U);
}

// Neither bytes nor signal then, and what is asked next is carried out.
TEST_F(RingOperationsTest, ASignalThatIsWrongIsTheFailureOfItsPut) {
  StartRanks();
  for (const uint32_t peer : {kNear, kFar}) {
    for (const uint64_t size_bytes : {uint64_t{100}, uint64_t{100'000}}) {
      std::memset(own(), 1, size_bytes);
      std::memset(rank(peer).heap() + 64, 0, size_bytes);
      EXPECT_EQ(ring_->Answer(
                    1, PutSignal(There(peer, 64), size_bytes, There(peer, kHeapBytes), true, 1, 1)),
                ErrorCode::kInvalidBuffer);
      EXPECT_EQ(rank(peer).heap()[64], std::byte{});
      EXPECT_EQ(rank(peer).heap()[63 + size_bytes], std::byte{});
    }
    EXPECT_EQ(ring_->Answer(1, PutSignal(There(peer, 64), 8, There(0, 0), true, 1, 1)),
              ErrorCode::kInvalidArgument);
    EXPECT_EQ(ring_->Answer(1, PutSignal(There(peer, 64), 0, There(peer, 0), true, 1, 1)),
              ErrorCode::kInvalidArgument);
    EXPECT_EQ(ring_->Answer(1, PutSignal(There(peer, 64), 8, There(peer, 0), true, 1, 1)),
              ErrorCode::kOk);
    EXPECT_EQ(Word(peer, 0), 1U);
  }
}

// ---- Mistakes -----------------------------------------------------------------------------------

TEST_F(RingOperationsTest, RefusesWhatItCannotCarryOut) {
  StartRanks();
  const auto request = [](uint32_t kind, uint32_t region, uint32_t details, uint64_t operand,
                          uint64_t there, uint32_t peer, uint64_t compare) {
    return ferry_device_ring_request{
        kind, 0, 0, region, details, operand, there, {peer | uint64_t{kHeapRegion} << 32, compare}};
  };
  const auto details = [](uint32_t operation, uint32_t width, uint32_t flags = 0) {
    return operation | width << 8 | flags << 16;
  };
  constexpr ErrorCode kArgument = ErrorCode::kInvalidArgument;
  constexpr ErrorCode kBuffer = ErrorCode::kInvalidBuffer;
  const struct {
    const char* what;
    ferry_device_ring_request request;
    ErrorCode error;
  } cases[] = {
      {"put to no rank", request(5, kRegion, 0, kOwn, 0, 3, 8), kArgument},
      {"put to a wild rank", request(5, kRegion, 0, kOwn, 0, ~0U, 8), kArgument},
      {"put with an operation", request(5, kRegion, details(7, 0), kOwn, 0, 1, 8), kArgument},
      {"put with a width", request(5, kRegion, details(0, 8), kOwn, 0, 1, 8), kArgument},
      {"put with unknown flags", request(5, kRegion, details(0, 0, 4), kOwn, 0, 1, 8), kArgument},
      {"put with a signal that is not there", request(5, kRegion, details(0, 0, 2), kOwn, 0, 1, 8),
       kArgument},
      {"value with a signal", request(7, 0, details(0, 8, 2), 1, 0, 1, 0), kArgument},
      {"signal of an unknown kind", request(10, 0, details(3, 0), 1, 0, 1, 0), kArgument},
      {"signal of no kind", request(10, 0, details(0, 0), 1, 0, 1, 0), kArgument},
      {"signal with a region", request(10, kRegion, details(1, 0), 1, 0, 1, 0), kArgument},
      {"signal of no rank", request(10, 0, details(1, 0), 1, 0, 3, 0), kArgument},
      {"put from nowhere", request(5, 0, 0, kOwn, 0, 1, 8), kArgument},
      {"put from an unknown region", request(5, 77, 0, kOwn, 0, 1, 8), kBuffer},
      {"put from past a region", request(5, kRegion, 0, kOwnBytes - 4, 0, 1, 8), kBuffer},
      {"put from far past it", request(5, kRegion, 0, ~uint64_t{3}, 0, 1, 8), kBuffer},
      {"put of too much", request(5, kRegion, 0, kOwn, 0, 1, ~uint64_t{0}), kBuffer},
      {"put past the end", request(5, kRegion, 0, kOwn, kHeapBytes - 4, 1, 8), kBuffer},
      {"put far past the end", request(5, kRegion, 0, kOwn, ~uint64_t{3}, 1, 8), kBuffer},
      {"long put past the end", request(5, kRegion, 0, kOwn, kHeapBytes - 4, 1, 100'000), kBuffer},
      {"put past the end of a far one", request(5, kRegion, 0, kOwn, kHeapBytes - 4, 2, 100'000),
       kBuffer},
      {"get to an unknown region", request(6, 77, 0, kOwn, 0, 1, 8), kBuffer},
      {"get to past a region", request(6, kRegion, 0, kOwnBytes - 4, 0, 2, 8), kBuffer},
      {"get past the end", request(6, kRegion, 0, kOwn, kHeapBytes - 4, 1, 8), kBuffer},
      {"get past the end of a far one", request(6, kRegion, 0, kOwn, kHeapBytes - 4, 2, 8),
       kBuffer},
      {"long get past the end of a far one",
       request(6, kRegion, 0, kOwn, kHeapBytes - 4, 2, 100'000), kBuffer},
      {"value of 9 bytes got", request(6, 0, 0, 0, 0, 1, 9), kArgument},
      {"value got with an offset", request(6, 0, 0, 8, 0, 1, 8), kArgument},
      {"value of no bytes", request(7, 0, details(0, 0), 1, 0, 1, 0), kArgument},
      {"value of 17 bytes", request(7, 0, details(0, 17), 1, 0, 1, 0), kArgument},
      {"value with a region", request(7, kRegion, details(0, 8), 1, 0, 1, 0), kArgument},
      {"value past the end", request(7, 0, details(0, 8), 1, kHeapBytes - 4, 1, 0), kBuffer},
      {"no atomic operation", request(8, 0, details(2, 8), 1, 0, 1, 0), kArgument},
      {"unknown atomic operation", request(8, 0, details(11, 8), 1, 0, 1, 0), kArgument},
      {"atomic operation of 2 bytes", request(8, 0, details(7, 2), 1, 0, 1, 0), kArgument},
      {"atomic operation with a region", request(8, kRegion, details(7, 8), 1, 0, 1, 0), kArgument},
      {"word that is not aligned", request(8, 0, details(7, 8), 1, 4, 1, 0), kArgument},
      {"far word that is not aligned", request(8, 0, details(7, 8), 1, 4, 2, 0), kArgument},
      {"word past the end", request(8, 0, details(7, 8), 1, kHeapBytes, 2, 0), kBuffer},
      {"fence with a rank", {9, 0, 0, 0, 0, 0, 0, {1, 0}}, kArgument},
      {"kind past the last", request(10, kRegion, 0, kOwn, 0, 1, 8), kArgument},
  };
  std::memset(own(), 1, 200'000);
  uint64_t errors = 0;
  for (const auto& bad : cases) {
    EXPECT_EQ(ring_->Ask(bad.request), bad.error) << bad.what;
    EXPECT_EQ(ring_->errors(), ++errors) << bad.what;
  }
  for (const uint32_t peer : {kNear, kFar}) {
    for (uint64_t i = 0; i < kHeapBytes; i += 8) {
      ASSERT_EQ(Word(peer, i), 0U) << "rank " << peer << " at " << i;
    }
  }
  EXPECT_EQ(Quiet(), ErrorCode::kOk);  // answers have told all of it
  EXPECT_TRUE(Eventually([&] { return rank(0).Statistic(shm::Statistic::kRingErrors) == errors; }));
  // And all of them go on.
  EXPECT_EQ(Add(kNear, 0, 2), ErrorCode::kOk);
  EXPECT_EQ(Add(kFar, 0, 2), ErrorCode::kOk);
  EXPECT_TRUE(told_.Get(&Told::violations).empty());
}

TEST_F(RingOperationsTest, QuietTellsTheFirstFailureThatNoAnswerHasTold) {
  StartRanks();
  EXPECT_EQ(Add(kFar, 4, 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Quiet(), ErrorCode::kOk);
  PutSilently(kFar, kHeapBytes, 1);
  PutSilently(kFar, 0, 5);
  EXPECT_EQ(Quiet(), ErrorCode::kInvalidBuffer);
  ferry_device_ring_atomic(view_, There(kFar, 4), FERRY_DEVICE_RING_ADD, 8, 1, 0, 0, kSilent);
  EXPECT_EQ(Quiet(), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(Word(kFar, 0), 5U);
  // An operation that is to come after all earlier ones does not come without them.
  PutSilently(kFar, 8, 1, kInOrder);
  PutSilently(kNear, 8, 1, kInOrder);
  EXPECT_EQ(Quiet(), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(Word(kFar, 8), 0U);
  EXPECT_EQ(Word(kNear, 8), 1U);
  EXPECT_EQ(ring_->errors(), 4U);
  EXPECT_EQ(Add(kFar, 8, 1), ErrorCode::kOk);
  ferry_device_ring_fence(view_);
  EXPECT_EQ(Add(kFar, 8, 1), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(Add(kNear, 8, 1), ErrorCode::kOk);
}

TEST_F(RingOperationsTest, QuietTellsWhatBecomesOfAPutAfterItsAnswer) {
  StartRanks();
  // It was answered when its source was free, and fails there.
  EXPECT_EQ(Put(kFar, kHeapBytes - 4, 8), ErrorCode::kOk);
  EXPECT_EQ(Quiet(), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(ring_->errors(), 1U);
}

// Whatever a ring asks for, the others go on.
TEST_F(RingOperationsTest, RandomRequestsHarmNobodyButTheHeapsOfTheJob) {
  StartRanks();
  TestRing neighbour(rank(kNear), AddRegion(kNear));
  uint64_t seed = 7;
  const auto next = [&seed](uint64_t below) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (seed >> 33) % below;
  };
  constexpr uint64_t kPlaces[] = {0, 4, kOwn, kHeapBytes - 8, kOwnBytes - 100, ~uint64_t{7}};
  constexpr uint64_t kSizes[] = {0, 1, 8, 16, 17, 5000, 9000, 100'000, ~uint64_t{0}};
  for (int i = 0; i < 5000; ++i) {
    const ferry_device_ring_request request = {
        static_cast<uint32_t>(5 + next(6)),
        0,
        0,
        next(3) == 0 ? 0 : kRegion,
        static_cast<uint32_t>(next(12) | next(20) << 8 | next(4) << 16),
        // Never the ring itself: the rank may spoil that, and then waits in vain.
        std::max(kPlaces[next(6)], next(2) == 0 ? kOwn : uint64_t{0}) | (next(4) == 0 ? kOwn : 0),
        kPlaces[next(6)],
        {next(4) | (next(8) == 0 ? uint64_t{1} << 63 : 0) | uint64_t{kHeapRegion} << 32,
         kSizes[next(9)]}};
    const bool spoils_ring = request.kind == FERRY_DEVICE_RING_GET && request.offset < kOwn;
    ferry_device_ring_post(view_,
                           spoils_ring ? Request(FERRY_DEVICE_RING_FENCE, 0, 0, 0) : request);
  }
  (void)Quiet();
  EXPECT_EQ(ring_->Ask(Request(FERRY_DEVICE_RING_NOP, 0, 0, 4)), ErrorCode::kOk);
  EXPECT_EQ(neighbour.Ask(Request(FERRY_DEVICE_RING_NOP, 0, 0, 4)), ErrorCode::kOk);
  EXPECT_TRUE(told_.Get(&Told::violations).empty());
  EXPECT_TRUE(told_.Get(&Told::failed_jobs).empty());
  ring_->Change();
  EXPECT_TRUE(ring_->IsSettled());
  ExpectNothingLeft();
}

}  // namespace
}  // namespace ferry::daemon

// The books of client/memory and client/p2p: ranges, pieces of the heap, regions, offloaded
// buffers, bounce buffers, requests, and why they failed.
#include <gtest/gtest.h>

#include <atomic>
#include <bitset>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "client/memory/bounce_buffer_pool.h"
#include "client/memory/failure_words.h"
#include "client/memory/offset_allocator.h"
#include "client/memory/region_table.h"
#include "client/p2p/byte_ranges.h"
#include "client/p2p/offload_table.h"
#include "client/p2p/request_pool.h"
#include "engine/transfer.h"
#include "shm/atomic.h"

namespace ferry::client {
namespace {

using shm::RequestState;

TEST(ByteRangesTest, HoldsNothingAtFirst) {
  const ByteRanges ranges;
  EXPECT_EQ(ranges.FirstMissing(0, 10), 0U);
  EXPECT_EQ(ranges.FirstMissing(7, 7), 7U);
}

TEST(ByteRangesTest, RangesThatTouchAreOne) {
  ByteRanges ranges;
  ranges.Add(0, 10);
  ranges.Add(20, 30);
  EXPECT_EQ(ranges.FirstMissing(5, 25), 10U);
  ranges.Add(10, 20);
  EXPECT_EQ(ranges.FirstMissing(0, 30), 30U);
  EXPECT_EQ(ranges.FirstMissing(0, 31), 30U);
}

TEST(ByteRangesTest, AHoleInTheMiddleLeavesBothSides) {
  ByteRanges ranges;
  ranges.Add(0, 100);
  ranges.Remove(40, 60);
  EXPECT_EQ(ranges.FirstMissing(0, 100), 40U);
  EXPECT_EQ(ranges.FirstMissing(40, 41), 40U);
  EXPECT_EQ(ranges.FirstMissing(60, 100), 100U);
}

TEST(ByteRangesTest, EmptyRangesChangeNothing) {
  ByteRanges ranges;
  ranges.Add(5, 5);
  EXPECT_EQ(ranges.FirstMissing(5, 6), 5U);
  ranges.Add(0, 10);
  ranges.Remove(5, 5);
  EXPECT_EQ(ranges.FirstMissing(0, 10), 10U);
}

// Against a set of single bytes, with the same random calls.
TEST(ByteRangesTest, IsASetOfBytes) {
  constexpr uint64_t kBytes = 64;
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    ByteRanges ranges;
    std::bitset<kBytes> bytes;
    for (int step = 0; step < 40; ++step) {
      uint64_t begin = random() % (kBytes + 1);
      uint64_t end = random() % (kBytes + 1);
      if (begin > end) {
        std::swap(begin, end);
      }
      const bool add = random() % 2 == 0;
      add ? ranges.Add(begin, end) : ranges.Remove(begin, end);
      for (uint64_t i = begin; i < end; ++i) {
        bytes[i] = add;
      }
      begin = random() % kBytes;
      uint64_t missing = begin;
      while (missing < kBytes && bytes[missing]) {
        ++missing;
      }
      ASSERT_EQ(ranges.FirstMissing(begin, kBytes), missing) << round << " " << step;
    }
  }
}

TEST(OffsetAllocatorTest, HandsOutAlignedPiecesThatDoNotOverlap) {
  OffsetAllocator allocator(1 << 16);
  std::map<uint64_t, uint64_t> live;
  std::mt19937 random(7);
  for (int i = 0; i < 5000; ++i) {
    if (live.size() < 20 && random() % 3 != 0) {
      const uint64_t size = random() % 4000;
      const uint64_t offset = allocator.Allocate(size);
      if (offset == OffsetAllocator::kNone) {
        continue;
      }
      EXPECT_EQ(offset % 128, 0U);
      const auto next = live.lower_bound(offset);
      EXPECT_TRUE(next == live.end() || offset + size <= next->first);
      EXPECT_TRUE(next == live.begin() ||
                  std::prev(next)->first + std::prev(next)->second <= offset);
      EXPECT_LE(offset + size, uint64_t{1} << 16);
      live[offset] = size;
    } else if (!live.empty()) {
      const auto victim = std::next(live.begin(), static_cast<long>(random() % live.size()));
      EXPECT_GE(allocator.Free(victim->first), victim->second);
      live.erase(victim);
    }
  }
  for (const auto& [offset, size] : live) {
    EXPECT_NE(allocator.Free(offset), 0U);
  }
  EXPECT_EQ(allocator.free_bytes(), uint64_t{1} << 16);
  EXPECT_EQ(allocator.Allocate(1 << 16), 0U) << "the pieces did not grow together again";
}

TEST(OffsetAllocatorTest, RefusesWhatDoesNotFit) {
  OffsetAllocator allocator(1024);
  EXPECT_EQ(allocator.Allocate(1025), OffsetAllocator::kNone);
  EXPECT_EQ(allocator.Allocate(~uint64_t{0}), OffsetAllocator::kNone);
  EXPECT_NE(allocator.Allocate(1024), OffsetAllocator::kNone);
  EXPECT_EQ(allocator.Allocate(0), OffsetAllocator::kNone);
}

TEST(OffsetAllocatorTest, AlignsAndKnowsTheLargestFreePiece) {
  OffsetAllocator allocator(1 << 16);
  EXPECT_EQ(allocator.Allocate(100), 0U);
  EXPECT_EQ(allocator.Allocate(100, 4096), 4096U);
  EXPECT_EQ(allocator.Allocate(100), 128U) << "what was left out for alignment is free";
  EXPECT_EQ(allocator.Allocate(1 << 15, 1 << 15), uint64_t{1} << 15);
  EXPECT_EQ(allocator.Allocate(1, 1 << 15), OffsetAllocator::kNone);
  EXPECT_EQ(allocator.LargestFreeBytes(), (uint64_t{1} << 15) - 4096 - 128);
  EXPECT_EQ(allocator.Free(0), 128U);
  EXPECT_EQ(allocator.Free(128), 128U);
  EXPECT_EQ(allocator.Free(4096), 128U);
  EXPECT_EQ(allocator.LargestFreeBytes(), uint64_t{1} << 15) << "pieces merge again";
}

TEST(OffsetAllocatorTest, KnowsWhatIsLive) {
  OffsetAllocator allocator(1024);
  const uint64_t offset = allocator.Allocate(100);
  EXPECT_EQ(allocator.SizeOf(offset), 128U);
  EXPECT_EQ(allocator.SizeOf(offset + 64), 0U);
  EXPECT_EQ(allocator.Free(offset + 64), 0U);
  EXPECT_EQ(allocator.Free(offset), 128U);
  EXPECT_EQ(allocator.Free(offset), 0U);
}

// Some memory of the rank.
class MemoryTest : public testing::Test {
 protected:
  std::byte* At(size_t offset) { return memory_.data() + offset; }

 private:
  std::vector<std::byte> memory_ = std::vector<std::byte>(10'000);
};

class RegionTableTest : public MemoryTest {
 protected:
  RegionTable table_;
};

TEST_F(RegionTableTest, NamesRegionAndOffset) {
  table_.Add({At(4000), 1000, 2});
  table_.Add({At(1000), 1000, 1});
  EXPECT_EQ(table_.Find(At(1000), 1).region, 1U);
  EXPECT_EQ(table_.Find(At(1999), 1).region, 1U);
  EXPECT_EQ(table_.Find(At(4500), 500).region, 2U);
  EXPECT_EQ(table_.Find(At(4500), 500).address, 500U);
}

TEST_F(RegionTableTest, TakesTheRestForPrivateMemory) {
  table_.Add({At(1000), 1000, 1});
  for (const size_t offset : {0, 999, 2000, 9000}) {
    const shm::Location where = table_.Find(At(offset), 1);
    EXPECT_EQ(where.region, 0U);
    EXPECT_EQ(where.address, reinterpret_cast<uint64_t>(At(offset)));
  }
  EXPECT_EQ(table_.Find(At(1500), 501).region, 0U) << "its end lies outside";
  EXPECT_EQ(table_.Find(nullptr, 0).region, 0U);
}

TEST_F(RegionTableTest, LentMemoryIsForRanksOfTheNodeOnly) {
  table_.Add({.base = At(1000), .size_bytes = 1000, .id = 1, .lent = true});
  EXPECT_EQ(table_.Find(At(1500), 100).region, 0U);
  EXPECT_EQ(table_.Find(At(1500), 100).address, reinterpret_cast<uint64_t>(At(1500)));
  EXPECT_EQ(table_.FindForNode(At(1500), 100).region, 1U);
  EXPECT_EQ(table_.FindForNode(At(1500), 100).address, 500U);
  EXPECT_EQ(table_.FindForNode(At(1950), 100).region, 0U) << "its end lies outside";
}

TEST_F(RegionTableTest, WhatIsLentAgainCountsAndTheOldOneStays) {
  table_.Add({.base = At(1000), .size_bytes = 1000, .id = 3, .lent = true});
  table_.Add({.base = At(1000), .size_bytes = 4000, .id = 7, .lent = true});
  EXPECT_EQ(table_.FindForNode(At(1500), 100).region, 7U);
  EXPECT_EQ(table_.FindForNode(At(4500), 100).region, 7U);
  EXPECT_EQ(table_.ById(3).size_bytes, 1000U);
}

TEST_F(RegionTableTest, ForgetsRemovedRegions) {
  table_.Add({At(1000), 1000, 1});
  EXPECT_EQ(table_.ById(1).base, At(1000));
  table_.Remove(1);
  EXPECT_FALSE(table_.ById(1));
  EXPECT_EQ(table_.Find(At(1000), 1).region, 0U);
}

TEST_F(RegionTableTest, KnowsWhatOthersCannotMap) {
  table_.Add({.base = At(1000),
              .size_bytes = 1000,
              .id = 4,
              .device = 1,
              .by_stream = true,
              .staged = false,
              .adopted = true,
              .hidden = true});
  EXPECT_EQ(table_.Find(At(1500), 100).region, 0U);
  EXPECT_EQ(table_.FindForNode(At(1500), 100).address, reinterpret_cast<uint64_t>(At(1500)));
  const OwnRegion around = table_.Around(At(1999));
  EXPECT_EQ(around.id, 4U);
  EXPECT_EQ(around.device, 1);
  EXPECT_TRUE(around.by_stream && around.adopted && around.hidden);
  EXPECT_FALSE(around.staged || around.lent);
}

TEST_F(RegionTableTest, ReadersMayLookWhileItChanges) {
  table_.Add({At(1000), 1000, 1});
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop.load()) {
      EXPECT_EQ(table_.Find(At(1500), 10).region, 1U);
    }
  });
  for (uint32_t id = 2; id < 500; ++id) {
    table_.Add({At(4000), 1000, id});
    table_.Remove(id);
  }
  stop.store(true);
  reader.join();
}

class OffloadTableTest : public MemoryTest {
 protected:
  std::byte* BounceBufferAt(size_t offset) { return bounce_buffers_.data() + offset; }

  std::vector<std::byte> bounce_buffers_ = std::vector<std::byte>(10'000);
  OffloadTable table_;
};

TEST_F(OffloadTableTest, FindsTheBufferAroundARange) {
  table_.Add(At(1000), 1000, BounceBufferAt(0));
  table_.Add(At(2000), 500, BounceBufferAt(1000));
  EXPECT_EQ(table_.Around(At(1000), 1000)->bounce_buffer, BounceBufferAt(0));
  EXPECT_EQ(table_.Around(At(1999), 1)->bounce_buffer, BounceBufferAt(0));
  EXPECT_EQ(table_.Around(At(2000), 500)->bounce_buffer, BounceBufferAt(1000));
  EXPECT_EQ(table_.Around(At(999), 10), nullptr);
  EXPECT_EQ(table_.Around(At(1500), 501), nullptr) << "it lies in two";
  EXPECT_EQ(table_.Around(At(2500), 1), nullptr);
  EXPECT_EQ(table_.Around(At(2499), ~uint64_t{0}), nullptr);
}

TEST_F(OffloadTableTest, FindsABufferByItsBounceBuffer) {
  table_.Add(At(0), 100, BounceBufferAt(500));
  table_.Add(At(200), 100, BounceBufferAt(100));
  EXPECT_EQ(table_.ByBounceBuffer(BounceBufferAt(500))->begin, At(0));
  EXPECT_EQ(table_.ByBounceBuffer(BounceBufferAt(599))->begin, At(0));
  EXPECT_EQ(table_.ByBounceBuffer(BounceBufferAt(100))->begin, At(200));
  EXPECT_EQ(table_.ByBounceBuffer(BounceBufferAt(99)), nullptr);
  EXPECT_EQ(table_.ByBounceBuffer(BounceBufferAt(200)), nullptr);
  EXPECT_EQ(table_.ByBounceBuffer(BounceBufferAt(600)), nullptr);
}

TEST_F(OffloadTableTest, KnowsWhatOverlaps) {
  table_.Add(At(1000), 1000, BounceBufferAt(0));
  EXPECT_TRUE(table_.Overlaps(At(1000), 1000));
  EXPECT_TRUE(table_.Overlaps(At(1500), 1));
  EXPECT_TRUE(table_.Overlaps(At(0), 1001));
  EXPECT_TRUE(table_.Overlaps(At(0), 5000));
  EXPECT_TRUE(table_.Overlaps(At(1999), 100));
  EXPECT_FALSE(table_.Overlaps(At(0), 1000));
  EXPECT_FALSE(table_.Overlaps(At(2000), 100));
  EXPECT_FALSE(table_.Overlaps(At(1500), 0));
}

TEST_F(OffloadTableTest, HandlesAreNeverUsedAgain) {
  const OffloadHandle first = table_.Add(At(0), 100, BounceBufferAt(0));
  EXPECT_NE(first, 0U);
  EXPECT_EQ(table_.Find(first)->begin, At(0));
  table_.Remove(first);
  EXPECT_EQ(table_.size(), 0U);
  const OffloadHandle second = table_.Add(At(0), 100, BounceBufferAt(0));
  EXPECT_NE(second, first);
  EXPECT_EQ(table_.Find(first), nullptr);
  EXPECT_EQ(table_.Find(0), nullptr);
  EXPECT_EQ(table_.Find(second + 1), nullptr);
  table_.Remove(first);
  EXPECT_EQ(table_.size(), 1U);
}

TEST_F(OffloadTableTest, ForgetsWhatWasRemoved) {
  const OffloadHandle handle = table_.Add(At(1000), 1000, BounceBufferAt(0));
  table_.Remove(handle);
  EXPECT_EQ(table_.Around(At(1000), 1), nullptr);
  EXPECT_EQ(table_.ByBounceBuffer(BounceBufferAt(0)), nullptr);
  EXPECT_FALSE(table_.Overlaps(At(0), 10'000));
}

class BounceBufferPoolTest : public testing::Test {
 protected:
  static constexpr uint64_t kPage = 4096;

  void* Block(int number) { return &memory_[number]; }
  void AddIdle(int number, uint64_t size_bytes) {
    pool_.Add(Block(number), size_bytes);
    ASSERT_TRUE(pool_.Give(Block(number)));
  }

  char memory_[8] = {};
  BounceBufferPool pool_;
};

TEST_F(BounceBufferPoolTest, HasNothingAtFirst) {
  EXPECT_EQ(pool_.Take(1), nullptr);
  EXPECT_EQ(pool_.Evict(0), nullptr);
  EXPECT_FALSE(pool_.Give(Block(0))) << "a block of somebody else";
}

TEST_F(BounceBufferPoolTest, ABlockInUseIsNeitherTakenNorEvicted) {
  pool_.Add(Block(0), 100 * kPage);
  EXPECT_EQ(pool_.idle_bytes(), 0U);
  EXPECT_EQ(pool_.Take(100 * kPage), nullptr);
  EXPECT_EQ(pool_.Evict(0), nullptr);
  EXPECT_TRUE(pool_.Give(Block(0)));
  EXPECT_EQ(pool_.idle_bytes(), 100 * kPage);
  EXPECT_EQ(pool_.Take(100 * kPage), Block(0));
  EXPECT_EQ(pool_.Take(100 * kPage), nullptr);
  EXPECT_EQ(pool_.Evict(0), nullptr);
}

TEST_F(BounceBufferPoolTest, TakesTheShortestThatSuffices) {
  AddIdle(0, 400 * kPage);
  AddIdle(1, 100 * kPage);
  AddIdle(2, 200 * kPage);
  EXPECT_EQ(pool_.Take(150 * kPage), Block(2));
  EXPECT_EQ(pool_.Take(100 * kPage), Block(1));
  EXPECT_EQ(pool_.idle_bytes(), 400 * kPage);
}

TEST_F(BounceBufferPoolTest, AMuchLongerOneIsLeftToLongerMessages) {
  AddIdle(0, 401 * kPage);
  EXPECT_EQ(pool_.Take(199 * kPage), nullptr);
  EXPECT_EQ(pool_.Take(402 * kPage), nullptr);
  EXPECT_EQ(pool_.Take(201 * kPage), Block(0));
}

// No block is shorter: each is registered by pages.
TEST_F(BounceBufferPoolTest, APageServesWhateverIsShorter) {
  AddIdle(0, kPage);
  EXPECT_EQ(pool_.Take(16), Block(0));
  EXPECT_EQ(pool_.Take(16), nullptr);
  AddIdle(1, 2 * kPage);
  EXPECT_EQ(pool_.Take(16), Block(1));
  AddIdle(2, 3 * kPage);
  EXPECT_EQ(pool_.Take(16), nullptr);
}

TEST_F(BounceBufferPoolTest, EvictsThoseThatWereIdleForLongest) {
  AddIdle(0, 100 * kPage);
  AddIdle(1, 150 * kPage);
  AddIdle(2, 200 * kPage);
  ASSERT_EQ(pool_.Take(100 * kPage), Block(0));
  ASSERT_TRUE(pool_.Give(Block(0)));  // now the youngest
  EXPECT_EQ(pool_.Evict(450 * kPage), nullptr);
  EXPECT_EQ(pool_.Evict(300 * kPage), Block(1));
  EXPECT_EQ(pool_.Evict(300 * kPage), nullptr) << "300 are left";
  EXPECT_EQ(pool_.Evict(0), Block(2));
  EXPECT_EQ(pool_.Evict(0), Block(0));
  EXPECT_EQ(pool_.idle_bytes(), 0U);
  EXPECT_FALSE(pool_.Give(Block(1))) << "it is the pool's no more";
}

constexpr uint32_t kRequests = 8;  // slot 0 included

class RequestPoolTest : public testing::Test {
 protected:
  RequestPoolTest() {
    engine::SegmentPlan plan;
    plan.job_size = 2;
    plan.local_size = 2;
    plan.request_limit = kRequests;
    plan.unexpected_limit = 4;
    session_.reset(static_cast<std::byte*>(aligned_alloc(4096, plan.session_bytes())));
    inbox_.reset(static_cast<std::byte*>(aligned_alloc(4096, plan.inbox_bytes())));
    memset(session_.get(), 0, plan.session_bytes());
    memset(inbox_.get(), 0, plan.inbox_bytes());
    engine::InitializeSegments(plan, 1, session_.get(), inbox_.get());
    view_ = *engine::ViewSession(session_.get(), plan.session_bytes(), inbox_.get(),
                                 plan.inbox_bytes());
    pool_ = std::make_unique<RequestPool>(view_, false);
  }

  // A request in use, as the client fills it in.
  uint32_t Take() {
    const uint32_t request = pool_->Take();
    if (request != 0) {
      pool_->Slot(request).kind = static_cast<uint32_t>(shm::RequestKind::kSend);
      pool_->Slot(request).peer = 1;
      SetState(request, RequestState::kInactive);
    }
    return request;
  }
  void SetState(uint32_t request, RequestState state) {
    shm::StoreRelease(pool_->Slot(request).state, static_cast<uint32_t>(state));
  }
  // As if the request's message had been announced and copied.
  void Transfer(uint32_t request, ErrorCode error) {
    shm::RequestLayout& slot = pool_->Slot(request);
    slot.transfer_rank = 0;
    slot.transfer_index = request;
    engine::AnnounceTransfer(pool_->Transfer(request), slot.generation, {{}, 1, 4096, 0, 1});
    pool_->Transfer(request).error = static_cast<int32_t>(error);
    pool_->Transfer(request).state = static_cast<uint32_t>(shm::TransferState::kDone);
  }

  struct Freer {
    void operator()(std::byte* memory) const { free(memory); }
  };
  std::unique_ptr<std::byte, Freer> session_;
  std::unique_ptr<std::byte, Freer> inbox_;
  engine::SessionView view_;
  std::unique_ptr<RequestPool> pool_;
};

TEST_F(RequestPoolTest, HandsOutEachSlotOnce) {
  std::set<uint32_t> taken;
  for (uint32_t i = 1; i < kRequests; ++i) {
    taken.insert(Take());
  }
  EXPECT_EQ(taken.size(), kRequests - 1);
  EXPECT_EQ(taken.count(0), 0U);
  EXPECT_EQ(Take(), 0U);
  pool_->GiveBack(3);
  EXPECT_EQ(Take(), 3U);
}

TEST_F(RequestPoolTest, HandlesOfEarlierLivesNameNothing) {
  const uint32_t request = Take();
  const RequestHandle handle = pool_->HandleOf(request);
  EXPECT_EQ(pool_->Resolve(handle), request);
  pool_->GiveBack(request);
  EXPECT_EQ(pool_->Resolve(handle), 0U);
  ASSERT_EQ(Take(), request);
  EXPECT_EQ(pool_->Resolve(handle), 0U);
  EXPECT_EQ(pool_->Resolve(0), 0U);
  EXPECT_EQ(pool_->Resolve(kCompletedSend), 0U);
  EXPECT_EQ(pool_->Resolve(~RequestHandle{0}), 0U);
}

TEST_F(RequestPoolTest, PersistentRequestsKeepTheirHandleOverStarts) {
  const uint32_t request = Take();
  const RequestHandle handle = pool_->HandleOf(request);
  const uint32_t generation = pool_->Slot(request).generation;
  Transfer(request, ErrorCode::kOk);
  EXPECT_TRUE(pool_->Renew(request));
  EXPECT_EQ(pool_->Resolve(handle), request);
  EXPECT_NE(pool_->Slot(request).generation, generation);
}

TEST_F(RequestPoolTest, KeepsAFailedTransferUntilTheReceiverHasSeenIt) {
  const uint32_t request = Take();
  Transfer(request, ErrorCode::kInvalidBuffer);
  EXPECT_FALSE(pool_->Renew(request));
  pool_->GiveBack(request);
  const uint32_t other = Take();
  EXPECT_NE(other, request);
  engine::Release(pool_->Transfer(request), pool_->Slot(request).generation);
  EXPECT_EQ(Take(), request);
}

TEST_F(RequestPoolTest, ADeadReceiverSeesNothingMore) {
  const uint32_t request = Take();
  Transfer(request, ErrorCode::kPeerDied);
  view_.by_rank.StoreDead(1, ErrorCode::kPeerDied);
  pool_->GiveBack(request);
  EXPECT_EQ(Take(), request);
}

TEST_F(RequestPoolTest, TellsWhichMemoryIsInUse) {
  std::vector<char> memory(100);
  const uint32_t request = Take();
  pool_->Slot(request).user_address = reinterpret_cast<uint64_t>(memory.data() + 40);
  pool_->Slot(request).size_bytes = 20;
  EXPECT_FALSE(pool_->Uses(memory.data(), 100)) << "not started";
  SetState(request, RequestState::kPosted);
  EXPECT_TRUE(pool_->Uses(memory.data(), 100));
  EXPECT_TRUE(pool_->Uses(memory.data() + 59, 1));
  EXPECT_FALSE(pool_->Uses(memory.data() + 60, 40));
  EXPECT_FALSE(pool_->Uses(memory.data(), 40));
  SetState(request, RequestState::kComplete);
  EXPECT_FALSE(pool_->Uses(memory.data(), 100));
}

TEST_F(RequestPoolTest, APersistentRequestHoldsItsMemoryBetweenItsStarts) {
  std::vector<char> memory(100);
  const uint32_t request = Take();
  pool_->Slot(request).user_address = reinterpret_cast<uint64_t>(memory.data() + 40);
  pool_->Slot(request).size_bytes = 20;
  EXPECT_FALSE(pool_->Holds(memory.data(), 100));
  SetState(request, RequestState::kQueued);
  EXPECT_TRUE(pool_->Holds(memory.data(), 100));
  SetState(request, RequestState::kComplete);
  EXPECT_FALSE(pool_->Holds(memory.data(), 100));
  pool_->Slot(request).flags |= shm::kRequestPersistent;
  for (const RequestState state :
       {RequestState::kInactive, RequestState::kQueued, RequestState::kComplete}) {
    SetState(request, state);
    EXPECT_TRUE(pool_->Holds(memory.data() + 59, 1));
    EXPECT_FALSE(pool_->Holds(memory.data() + 60, 40));
  }
  SetState(request, RequestState::kFree);
  EXPECT_FALSE(pool_->Holds(memory.data(), 100));
}

constexpr ErrorCode kSystem = ErrorCode::kSystem;
constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;

class FailureWordsTest : public testing::Test {
 protected:
  ~FailureWordsTest() override { (void)FailureWords::Take(kSystem); }

  FailureWords words_;
};

TEST_F(FailureWordsTest, AreOfTheRequestThatFailed) {
  words_.Note(1, 5, {kSystem, "the driver says"});
  words_.Tell(2, 5, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "");
  words_.Tell(1, 5, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "the driver says");
}

TEST_F(FailureWordsTest, AreOfOneLifeOfTheRequest) {
  words_.Note(1, 5, {kSystem, "the driver says"});
  words_.Tell(1, 6, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "");
  words_.Tell(1, 5, kSystem);  // they went with the other life
  EXPECT_EQ(FailureWords::Take(kSystem), "");
}

TEST_F(FailureWordsTest, AreOfTheErrorThatTheRequestEndedWith) {
  words_.Note(1, 5, {kUnsupported, "out of reach"});
  words_.Tell(1, 5, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "");
}

TEST_F(FailureWordsTest, AreSaidOnce) {
  words_.Note(1, 5, {kSystem, "the driver says"});
  words_.Tell(1, 5, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "the driver says");
  EXPECT_EQ(FailureWords::Take(kSystem), "");
  words_.Tell(1, 5, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "");
}

// A call's own error after a request's, about which the program has not asked, or before it.
TEST_F(FailureWordsTest, AreOfNeitherOfTwoErrors) {
  words_.Note(1, 5, {kSystem, "the driver says"});
  words_.Tell(1, 5, kSystem);
  EXPECT_EQ(FailureWords::Tell(kSystem), kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "");

  words_.Note(1, 6, {kSystem, "the driver says"});
  EXPECT_EQ(FailureWords::Tell(kSystem), kSystem);
  words_.Tell(1, 6, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "");

  EXPECT_EQ(FailureWords::Tell(kSystem, "the only one"), kSystem);
  EXPECT_EQ(FailureWords::Tell(ErrorCode::kOk), ErrorCode::kOk);  // is none
  EXPECT_EQ(FailureWords::Take(kSystem), "the only one");
}

TEST_F(FailureWordsTest, AskingForAnotherErrorForgetsThem) {
  EXPECT_EQ(FailureWords::Tell(kSystem, "the driver says"), kSystem);
  EXPECT_EQ(FailureWords::Take(kUnsupported), "");
  EXPECT_EQ(FailureWords::Take(kSystem), "");
}

TEST_F(FailureWordsTest, AreOfTheThreadThatCollects) {
  std::thread([this] { words_.Note(1, 5, {kSystem, "a helper's copy"}); }).join();
  std::thread([] { EXPECT_EQ(FailureWords::Tell(kSystem, "another thread's"), kSystem); }).join();
  words_.Tell(1, 5, kSystem);
  EXPECT_EQ(FailureWords::Take(kSystem), "a helper's copy");
}

}  // namespace
}  // namespace ferry::client

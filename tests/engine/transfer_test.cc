// The chunks of a matched message are claimed by any process that is there.
#include "engine/transfer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "shm/atomic.h"
#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

using shm::TransferLayout;
using shm::TransferState;

constexpr uint64_t kChunk = 4096;

// Adds 1 for each copy to a byte of the destination; may refuse or fail.
class CountingMemory : public MemoryAccess {
 public:
  Reach Resolve(uint32_t rank, const shm::Location& where, uint64_t) override {
    ++asked;
    if (rank == refused_rank) {
      return {};
    }
    if (rank == unreachable_rank) {
      return {.never = true};
    }
    if (rank == missing_rank) {
      return {.error = missing_error};
    }
    return {reinterpret_cast<std::byte*>(where.address), 0, where.address};
  }
  ErrorCode Copy(const Reach& destination, const Reach& source, uint64_t size_bytes) override {
    copies.fetch_add(1);
    if (destination.address == failing_address) {
      return ErrorCode::kInvalidBuffer;
    }
    for (uint64_t i = 0; i < size_bytes; ++i) {
      destination.mapped[i] = std::byte(static_cast<uint8_t>(destination.mapped[i]) +
                                        static_cast<uint8_t>(source.mapped[i]));
    }
    return ErrorCode::kOk;
  }

  std::atomic<int> asked{0};
  uint32_t refused_rank = ~uint32_t{0};
  uint32_t unreachable_rank = ~uint32_t{0};
  uint32_t missing_rank = ~uint32_t{0};
  ErrorCode missing_error = ErrorCode::kInvalidBuffer;
  uint64_t failing_address = 0;
  std::atomic<uint32_t> copies{0};
};

// Copies nothing.
class UnreadMemory : public MemoryAccess {
 public:
  Reach Resolve(uint32_t, const shm::Location& where, uint64_t) override {
    return {nullptr, 1, where.address};
  }
  ErrorCode Copy(const Reach&, const Reach&, uint64_t) override { return ErrorCode::kOk; }
};

class TransferTest : public testing::Test {
 protected:
  void Match(uint64_t size_bytes, uint32_t generation) {
    source_.assign(size_bytes, std::byte{1});
    destination_.assign(size_bytes + 1, std::byte{0});
    const auto place = [](const std::vector<std::byte>& bytes) {
      return shm::Location{0, 0, reinterpret_cast<uint64_t>(bytes.data())};
    };
    AnnounceTransfer(slot_, generation, {place(source_), size_bytes, kChunk, 0, 1});
    EXPECT_TRUE(MatchTransfer(slot_, generation, place(destination_), size_bytes));
  }
  void ExpectEachByteOnce() {
    EXPECT_EQ(std::count(destination_.begin(), destination_.end() - 1, std::byte{1}),
              static_cast<int64_t>(destination_.size() - 1));
    EXPECT_EQ(destination_.back(), std::byte{0}) << "wrote past the end";
  }

  TransferLayout slot_{};
  std::vector<std::byte> source_;
  std::vector<std::byte> destination_;
  CountingMemory memory_;
  UnreadMemory unread_;
};

// A stream at either end copies the message at once.
TEST_F(TransferTest, StreamsCopyWithoutChunks) {
  for (const bool at_source : {true, false}) {
    source_.assign(4 * kChunk, std::byte{1});
    destination_.assign(4 * kChunk + 1, std::byte{0});
    const uint32_t flags = shm::kLocationByStream;
    const shm::Location from{0, at_source ? flags : 0, reinterpret_cast<uint64_t>(source_.data())};
    const shm::Location to{0, at_source ? 0 : flags,
                           reinterpret_cast<uint64_t>(destination_.data())};
    const uint32_t generation = at_source ? 3 : 4;
    AnnounceTransfer(slot_, generation, {from, source_.size(), kChunk, 0, 1});
    ASSERT_TRUE(MatchTransfer(slot_, generation, to, source_.size()));
    EXPECT_EQ(CopyChunk(slot_, generation, memory_), ChunkResult::kFinished);
    ExpectEachByteOnce();
  }
}

TEST_F(TransferTest, CopiesChunkByChunk) {
  Match(2 * kChunk + 1, 3);
  EXPECT_EQ(CopyChunk(slot_, 3, memory_), ChunkResult::kCopied);
  EXPECT_EQ(CopyChunk(slot_, 3, memory_), ChunkResult::kCopied);
  EXPECT_FALSE(Look(slot_, 3).done);
  EXPECT_EQ(CopyChunk(slot_, 3, memory_), ChunkResult::kFinished);
  EXPECT_EQ(CopyChunk(slot_, 3, memory_), ChunkResult::kNothing);
  EXPECT_TRUE(Look(slot_, 3).done);
  EXPECT_EQ(Look(slot_, 3).error, ErrorCode::kOk);
  ExpectEachByteOnce();
}

// The receiver copies from the first chunk on and the sender from the last, until they meet.
TEST_F(TransferTest, BothEndsMeetInTheMiddle) {
  Match(3 * kChunk + 1, 3);
  OwnEnd receiver{false, 1, 0, slot_.destination, source_.size()};
  OwnEnd sender{true, 0, 1, slot_.source, source_.size()};
  const auto copied = [this](uint64_t chunk) { return destination_[chunk * kChunk]; };
  EXPECT_EQ(CopyChunk(slot_, 3, memory_, &sender), ChunkResult::kCopied);
  EXPECT_EQ(copied(3), std::byte{1});
  EXPECT_EQ(CopyChunk(slot_, 3, memory_, &receiver), ChunkResult::kCopied);
  EXPECT_EQ(copied(0), std::byte{1});
  EXPECT_EQ(copied(1), std::byte{0});
  EXPECT_EQ(CopyChunk(slot_, 3, memory_, &sender), ChunkResult::kCopied);
  EXPECT_EQ(copied(2), std::byte{1});
  EXPECT_EQ(CopyChunk(slot_, 3, memory_, &receiver), ChunkResult::kFinished);
  EXPECT_EQ(CopyChunk(slot_, 3, memory_, &sender), ChunkResult::kNothing);
  ExpectEachByteOnce();
}

// Chunks grow where there would be more of them than can be counted.
TEST_F(TransferTest, LongMessagesHaveNoMoreThan65535Chunks) {
  constexpr uint64_t kMost = 65535;
  const uint64_t size_bytes = kMost * kChunk + 1;
  const shm::Location source{0, 0, 1 << 20};
  AnnounceTransfer(slot_, 3, {source, size_bytes, kChunk, 0, 1});
  ASSERT_TRUE(MatchTransfer(slot_, 3, {0, 0, 1 << 20}, size_bytes));
  const OwnEnd sender{true, 0, 1, source, size_bytes};
  uint64_t chunks = 0;
  uint64_t bytes = 0;
  ClaimedChunk claimed;
  while (ClaimChunk(slot_, 3, unread_, chunks % 2 == 0 ? &sender : nullptr, &claimed) ==
         ChunkResult::kCopied) {
    ++chunks;
    bytes += claimed.size_bytes;
    EndChunk(slot_, 3, claimed.chunks, ErrorCode::kOk);
  }
  EXPECT_LE(chunks, kMost);
  EXPECT_EQ(bytes, size_bytes);
  EXPECT_TRUE(Look(slot_, 3).done);
}

TEST_F(TransferTest, FinishesWithoutBytes) {
  Match(0, 1);
  EXPECT_EQ(CopyChunk(slot_, 1, memory_), ChunkResult::kFinished);
  EXPECT_TRUE(Look(slot_, 1).done);
  EXPECT_EQ(memory_.copies.load(), 0U);
}

TEST_F(TransferTest, ClaimsOnlyWhatIsMatched) {
  Match(kChunk, 1);
  for (const TransferState state : {TransferState::kIdle, TransferState::kAnnounced,
                                    TransferState::kDone, TransferState::kReleased}) {
    slot_.state = static_cast<uint32_t>(state);
    EXPECT_EQ(CopyChunk(slot_, 1, memory_), ChunkResult::kNothing);
  }
}

TEST_F(TransferTest, MatchesOnlyTheGenerationOnRts) {
  EXPECT_FALSE(MatchTransfer(slot_, 0, {}, 1));
  AnnounceTransfer(slot_, 4, {{}, 1, kChunk, 0, 1});
  EXPECT_FALSE(MatchTransfer(slot_, 3, {}, 1));
  EXPECT_TRUE(MatchTransfer(slot_, 4, {}, 1));
  EXPECT_FALSE(MatchTransfer(slot_, 4, {}, 1)) << "only once";
}

TEST_F(TransferTest, AnRtsIsTakenOrWithdrawn) {
  AnnounceTransfer(slot_, 4, {{}, 1, kChunk, 0, 1});
  EXPECT_FALSE(WithdrawRts(slot_, 3));
  EXPECT_TRUE(WithdrawRts(slot_, 4));
  EXPECT_FALSE(WithdrawRts(slot_, 4)) << "only once";
  EXPECT_FALSE(TakeRts(slot_, 4));
  EXPECT_FALSE(MatchTransfer(slot_, 4, {}, 1));
  EXPECT_FALSE(Look(slot_, 4).done);
  EXPECT_TRUE(IsReusable(slot_));
  AnnounceTransfer(slot_, 5, {{}, 1, kChunk, 0, 1});
  EXPECT_FALSE(TakeRts(slot_, 4)) << "that one is gone";
  EXPECT_TRUE(TakeRts(slot_, 5));
  EXPECT_TRUE(TakeRts(slot_, 5)) << "as the successor of a dead receiver's thread does";
  EXPECT_FALSE(WithdrawRts(slot_, 5));
  EXPECT_FALSE(IsReusable(slot_));
  EXPECT_TRUE(MatchTransfer(slot_, 5, {}, 1));
  EXPECT_FALSE(WithdrawRts(slot_, 5));
}

// The receiver looks at an old RTS while the sender withdraws it and makes another.
TEST_F(TransferTest, OneOfTakingAndWithdrawingHasItsWay) {
  constexpr uint32_t kRtsCount = 20'000;
  std::vector<std::atomic<int>> taken(kRtsCount + 1);
  std::atomic<uint32_t> announced{0};
  std::thread receiver([&] {
    for (uint32_t seen = 0; seen < kRtsCount;) {
      seen = announced.load(std::memory_order_acquire);
      if (seen != 0 && TakeRts(slot_, seen)) {
        taken[seen].store(1, std::memory_order_release);
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (uint32_t generation = 1; generation <= kRtsCount; ++generation) {
    AnnounceTransfer(slot_, generation, {{}, 1, kChunk, 0, 1});
    announced.store(generation, std::memory_order_release);
    if (WithdrawRts(slot_, generation)) {
      EXPECT_EQ(taken[generation].load(), 0);
    } else {
      while (taken[generation].load(std::memory_order_acquire) == 0) {
        std::this_thread::yield();
      }
    }
  }
  receiver.join();
}

// The sender goes on without its source: what is read is the copy that it left.
TEST_F(TransferTest, AnRtsMovesUnlessItIsTaken) {
  Match(kChunk, 3);  // sizes the buffers
  const shm::Location source = slot_.source;
  const shm::Location destination = slot_.destination;
  std::vector<std::byte> copy(kChunk, std::byte{1});
  const shm::Location moved{0, 0, reinterpret_cast<uint64_t>(copy.data())};
  std::fill(source_.begin(), source_.end(), std::byte{7});
  AnnounceTransfer(slot_, 4, {source, kChunk, kChunk, 0, 1});
  EXPECT_TRUE(IsAnnounced(slot_, 4));
  EXPECT_FALSE(MoveAnnounced(slot_, 3, moved));
  EXPECT_TRUE(MoveAnnounced(slot_, 4, moved));
  EXPECT_FALSE(IsAnnounced(slot_, 4));
  EXPECT_FALSE(MoveAnnounced(slot_, 4, moved)) << "only once";
  EXPECT_FALSE(WithdrawRts(slot_, 4)) << "its send is over";
  EXPECT_TRUE(TakeRts(slot_, 4));
  EXPECT_TRUE(TakeRts(slot_, 4)) << "as the successor of a dead receiver's thread does";
  EXPECT_TRUE(MatchTransfer(slot_, 4, destination, kChunk));
  EXPECT_EQ(CopyChunk(slot_, 4, memory_), ChunkResult::kFinished);
  ExpectEachByteOnce();

  AnnounceTransfer(slot_, 5, {source, kChunk, kChunk, 0, 1});
  EXPECT_TRUE(TakeRts(slot_, 5));
  EXPECT_FALSE(MoveAnnounced(slot_, 5, moved));
  EXPECT_TRUE(MatchTransfer(slot_, 5, destination, kChunk));
  EXPECT_FALSE(MoveAnnounced(slot_, 5, moved)) << "nobody has claimed a chunk, but it is matched";
  EXPECT_FALSE(WithdrawRts(slot_, 5));
  EXPECT_EQ(CopyChunk(slot_, 5, memory_), ChunkResult::kFinished);
}

// The sender looks at its RTS, and then moves or withdraws it while the receiver matches it.
TEST_F(TransferTest, AMatchedRtsNeitherMovesNorIsWithdrawn) {
  constexpr uint32_t kRtsCount = 20'000;
  std::atomic<uint32_t> announced{0};
  std::vector<std::atomic<int>> ended(kRtsCount + 1);  // 1: matched, 2: withdrawn
  std::thread receiver([&] {
    for (uint32_t next = 1; next <= kRtsCount; ++next) {
      while (announced.load(std::memory_order_acquire) < next) {
        std::this_thread::yield();
      }
      const bool matched = TakeRts(slot_, next) && MatchTransfer(slot_, next, {0, 0, next}, 1);
      ended[next].store(matched ? 1 : 2, std::memory_order_release);
    }
  });
  for (uint32_t generation = 1; generation <= kRtsCount; ++generation) {
    AnnounceTransfer(slot_, generation, {{0, 0, 1}, 1, kChunk, 0, 1});
    announced.store(generation, std::memory_order_release);
    const bool moves = generation % 2 == 0;
    const bool changed =
        moves ? MoveAnnounced(slot_, generation, {0, 0, 2}) : WithdrawRts(slot_, generation);
    while (ended[generation].load(std::memory_order_acquire) == 0) {
      std::this_thread::yield();
    }
    ASSERT_EQ(ended[generation].load(), changed && !moves ? 2 : 1);
    if (ended[generation].load() == 1) {
      ASSERT_EQ(slot_.source.address, changed ? 2U : 1U);
      ASSERT_EQ(CopyChunk(slot_, generation, unread_), ChunkResult::kFinished)
          << "its claims were closed";
    }
  }
  receiver.join();
}

TEST_F(TransferTest, MatchesNoMoreThanIsAnnounced) {
  AnnounceTransfer(slot_, 4, {{}, 100, kChunk, 0, 1});
  EXPECT_FALSE(MatchTransfer(slot_, 4, {}, 101));
  EXPECT_TRUE(MatchTransfer(slot_, 4, {}, 100));
}

TEST_F(TransferTest, WhatTheDaemonMovesIsNotForClaimants) {
  Match(kChunk, 1);
  CopyChunk(slot_, 1, memory_);
  Release(slot_, 1);
  DescribeTransfer(slot_, 2, {slot_.source, 10 * kChunk, kChunk, 0, 1}, slot_.destination);
  EXPECT_EQ(CopyChunk(slot_, 1, memory_), ChunkResult::kNothing);
  EXPECT_EQ(CopyChunk(slot_, 2, memory_), ChunkResult::kNothing);
  EXPECT_EQ(memory_.copies.load(), 1U);
}

TEST_F(TransferTest, StaleClaimantGetsNothing) {
  Match(kChunk, 2);
  EXPECT_EQ(CopyChunk(slot_, 1, memory_), ChunkResult::kNothing);
  EXPECT_TRUE(Look(slot_, 1).done) << "or the slot would not have been used anew";
  EXPECT_FALSE(Look(slot_, 2).done);
  Release(slot_, 1);
  EXPECT_FALSE(IsReusable(slot_));
  EXPECT_EQ(CopyChunk(slot_, 2, memory_), ChunkResult::kFinished);
  EXPECT_TRUE(Look(slot_, 2).done);
}

TEST_F(TransferTest, ClaimantThatWasStoppedWhileTheSlotWasReusedGetsNothing) {
  // The receiver has seen kMatched of its own generation, then stops in Resolve while the slot gets
  // another, longer message.
  class Stopped : public CountingMemory {
   public:
    Reach Resolve(uint32_t rank, const shm::Location& where, uint64_t size_bytes) override {
      if (rank == 0) {
        reuse();
      }
      return CountingMemory::Resolve(rank, where, size_bytes);
    }
    std::function<void()> reuse;
  };
  Match(kChunk, 1);
  Stopped stopped;
  stopped.reuse = [this] { Match(10 * kChunk, 2); };
  EXPECT_EQ(CopyChunk(slot_, 1, stopped), ChunkResult::kNothing);
  EXPECT_EQ(stopped.copies.load(), 0U);
  EXPECT_EQ(slot_.done_chunks, 0U);
}

TEST_F(TransferTest, LeavesWhatItCannotReachToOthers) {
  Match(kChunk, 1);
  CountingMemory other;
  for (const uint32_t rank : {0U, 1U}) {
    other.refused_rank = rank;
    EXPECT_EQ(CopyChunk(slot_, 1, other), ChunkResult::kNothing);
  }
  EXPECT_EQ(CopyChunk(slot_, 1, memory_), ChunkResult::kFinished);
}

TEST_F(TransferTest, FailsOnceNeitherEndReachesTheOther) {
  CountingMemory of_source;
  CountingMemory of_destination;
  of_source.unreachable_rank = 1;
  of_destination.unreachable_rank = 0;
  for (uint32_t generation = 1; generation <= 4; ++generation) {
    Match(3 * kChunk, generation);
    const OwnEnd source{true, 0, 1, slot_.source, slot_.size_bytes};
    const OwnEnd destination{false, 1, 0, slot_.destination, slot_.size_bytes};
    const bool source_first = generation % 2 == 1;
    CountingMemory& first = source_first ? of_source : of_destination;
    const OwnEnd& first_end = source_first ? source : destination;
    EXPECT_EQ(CopyChunk(slot_, generation, first, &first_end), ChunkResult::kLeft);
    const int asked = first.asked.load();
    EXPECT_EQ(CopyChunk(slot_, generation, first, &first_end), ChunkResult::kNothing);
    EXPECT_EQ(first.asked.load(), asked) << "it was asked again, which may be costly";
    EXPECT_FALSE(Look(slot_, generation).done) << "the other end may be able to";
    EXPECT_EQ(CopyChunk(slot_, generation, source_first ? of_destination : of_source,
                        source_first ? &destination : &source),
              ChunkResult::kFinished);
    EXPECT_EQ(Look(slot_, generation).error, ErrorCode::kUnsupported);
    Release(slot_, generation);
  }
  EXPECT_EQ(of_source.copies.load() + of_destination.copies.load(), 0U);
}

TEST_F(TransferTest, OneEndThatReachesTheOtherIsEnough) {
  CountingMemory of_source;
  of_source.unreachable_rank = 1;
  Match(kChunk, 1);
  const OwnEnd source{true, 0, 1, slot_.source, slot_.size_bytes};
  const OwnEnd destination{false, 1, 0, slot_.destination, slot_.size_bytes};
  EXPECT_EQ(CopyChunk(slot_, 1, of_source, &source), ChunkResult::kLeft);
  EXPECT_EQ(CopyChunk(slot_, 1, memory_, &destination), ChunkResult::kFinished);
  EXPECT_EQ(Look(slot_, 1).error, ErrorCode::kOk);
  ExpectEachByteOnce();
}

// Once, and only if the receiver has asked for it.
TEST_F(TransferTest, AReceiverThatDoesNotReachTheSourceReadsItsCopy) {
  std::vector<std::byte> copy(kChunk, std::byte{1});
  const shm::Location where{0, 0, reinterpret_cast<uint64_t>(copy.data())};
  for (uint32_t generation = 1; generation <= 2; ++generation) {
    Match(kChunk, generation);
    source_.assign(kChunk, std::byte{7});
    const OwnEnd destination{false, 1, 0, slot_.destination, slot_.size_bytes};
    EXPECT_FALSE(RelocateSource(slot_, generation, where)) << "nobody has asked for it";
    CountingMemory of_destination;
    of_destination.unreachable_rank = 0;
    EXPECT_EQ(CopyChunk(slot_, generation, of_destination, &destination), ChunkResult::kLeft);
    EXPECT_FALSE(RelocateSource(slot_, generation + 1, where));
    EXPECT_TRUE(RelocateSource(slot_, generation, where));
    EXPECT_FALSE(IsLeftToSource(slot_, generation));
    EXPECT_FALSE(RelocateSource(slot_, generation, where)) << "somebody may be reading it";
    EXPECT_EQ(CopyChunk(slot_, generation, memory_, &destination), ChunkResult::kFinished);
    EXPECT_EQ(Look(slot_, generation).error, ErrorCode::kOk);
    ExpectEachByteOnce();
  }
}

TEST_F(TransferTest, ACopyThatIsNotReachedEitherFails) {
  CountingMemory of_destination;
  of_destination.unreachable_rank = 0;
  CountingMemory of_source;
  of_source.unreachable_rank = 1;
  Match(kChunk, 1);
  const OwnEnd destination{false, 1, 0, slot_.destination, slot_.size_bytes};
  EXPECT_EQ(CopyChunk(slot_, 1, of_destination, &destination), ChunkResult::kLeft);
  const shm::Location copy = slot_.source;
  EXPECT_TRUE(RelocateSource(slot_, 1, copy));
  EXPECT_EQ(CopyChunk(slot_, 1, of_destination, &destination), ChunkResult::kLeft);
  const OwnEnd source{true, 0, 1, copy, slot_.size_bytes};
  EXPECT_EQ(CopyChunk(slot_, 1, of_source, &source), ChunkResult::kFinished);
  EXPECT_EQ(Look(slot_, 1).error, ErrorCode::kUnsupported);
}

TEST_F(TransferTest, WhoCouldReachNobodyInAnEarlierLifeFailsNothing) {
  CountingMemory of_destination;
  of_destination.unreachable_rank = 0;
  Match(kChunk, 1);
  const OwnEnd destination{false, 1, 0, slot_.destination, slot_.size_bytes};
  EXPECT_EQ(CopyChunk(slot_, 1, of_destination, &destination), ChunkResult::kLeft);
  const OwnEnd source{true, 0, 1, slot_.source, slot_.size_bytes};
  EXPECT_EQ(CopyChunk(slot_, 1, memory_, &source), ChunkResult::kFinished);
  Match(kChunk, 2);
  CountingMemory of_source;
  of_source.unreachable_rank = 1;
  const OwnEnd again{true, 0, 1, slot_.source, slot_.size_bytes};
  EXPECT_EQ(CopyChunk(slot_, 2, of_source, &again), ChunkResult::kLeft);
  EXPECT_FALSE(Look(slot_, 2).done);
}

TEST_F(TransferTest, ReportsTheErrorOfOneChunk) {
  Match(3 * kChunk, 1);
  memory_.failing_address = slot_.destination.address + kChunk;
  EXPECT_EQ(CopyChunk(slot_, 1, memory_), ChunkResult::kCopied);
  EXPECT_EQ(CopyChunk(slot_, 1, memory_), ChunkResult::kFinished) << "nobody needs the third";
  EXPECT_EQ(memory_.copies.load(), 2U);
  EXPECT_TRUE(Look(slot_, 1).done);
  EXPECT_EQ(Look(slot_, 1).error, ErrorCode::kInvalidBuffer);
}

TEST_F(TransferTest, FailsAtOnceWhereThereIsNoSuchMemory) {
  Match(1, 1);
  slot_.size_bytes = ~uint64_t{0};
  memory_.missing_rank = 0;
  EXPECT_EQ(CopyChunk(slot_, 1, memory_), ChunkResult::kFinished);
  EXPECT_EQ(memory_.copies.load(), 0U);
  EXPECT_EQ(Look(slot_, 1).error, ErrorCode::kInvalidBuffer);
}

TEST_F(TransferTest, FailsByTheReasonWhyNobodyReachesIt) {
  for (const uint32_t rank : {0U, 1U}) {
    Match(3 * kChunk, rank + 1);
    memory_.missing_rank = rank;
    memory_.missing_error = ErrorCode::kNotFound;
    EXPECT_EQ(CopyChunk(slot_, rank + 1, memory_), ChunkResult::kFinished);
    EXPECT_EQ(memory_.copies.load(), 0U);
    EXPECT_EQ(Look(slot_, rank + 1).error, ErrorCode::kNotFound);
    Release(slot_, rank + 1);
  }
}

// Every rank of the node can write to the slot; the caller's own knowledge counts first.
TEST_F(TransferTest, CopiesToTheCallersOwnEndWhateverTheSlotSays) {
  Match(kChunk, 1);
  const OwnEnd own{false, 1, 0, slot_.destination, kChunk};
  slot_.destination = {0, 0, 8};
  slot_.destination_rank = 77;
  EXPECT_EQ(CopyChunk(slot_, 1, memory_, &own), ChunkResult::kFinished);
  EXPECT_EQ(Look(slot_, 1).error, ErrorCode::kOk);
  ExpectEachByteOnce();
}

TEST_F(TransferTest, FailsWhenItIsLongerThanTheCallersOwnEnd) {
  Match(2 * kChunk, 1);
  const OwnEnd own{false, 1, 0, slot_.destination, kChunk};
  EXPECT_EQ(CopyChunk(slot_, 1, memory_, &own), ChunkResult::kFinished);
  EXPECT_EQ(Look(slot_, 1).error, ErrorCode::kInvalidBuffer);
  EXPECT_EQ(memory_.copies.load(), 0U);
}

TEST_F(TransferTest, FailsWhenItsOtherEndIsNotTheCallersPeer) {
  Match(kChunk, 1);
  const OwnEnd own{true, 0, 1, slot_.source, kChunk};
  slot_.destination_rank = 2;
  EXPECT_EQ(CopyChunk(slot_, 1, memory_, &own), ChunkResult::kFinished);
  EXPECT_EQ(Look(slot_, 1).error, ErrorCode::kInvalidBuffer);
}

// A worker's notes on a request that the rank reuses meanwhile may belong to two messages.
TEST_F(TransferTest, AnUncertainOwnEndCopiesOnlyWhatTheSlotSaysToo) {
  Match(kChunk, 1);
  const OwnEnd right{false, 1, 0, slot_.destination, kChunk, false};
  std::vector<OwnEnd> wrong(5, right);
  wrong[0].where.address += 64;
  wrong[1].where.region = 1;
  wrong[2].rank = 2;
  wrong[3].peer = 2;
  wrong[4].size_bytes = kChunk - 1;
  for (const OwnEnd& own : wrong) {
    EXPECT_EQ(CopyChunk(slot_, 1, memory_, &own), ChunkResult::kNothing);
  }
  EXPECT_EQ(memory_.copies.load(), 0U);
  EXPECT_EQ(CopyChunk(slot_, 1, memory_, &right), ChunkResult::kFinished);
  ExpectEachByteOnce();
}

TEST_F(TransferTest, ReusableOnceDone) {
  EXPECT_TRUE(IsReusable(slot_));
  Match(1, 1);
  EXPECT_FALSE(IsReusable(slot_));
  CopyChunk(slot_, 1, memory_);
  EXPECT_TRUE(IsReusable(slot_)) << "a receiver that computes holds nobody up";
  EXPECT_TRUE(Look(slot_, 1).done);
  Match(1, 2);
  EXPECT_TRUE(Look(slot_, 1).done) << "the receiver may look later";
  EXPECT_EQ(Look(slot_, 1).error, ErrorCode::kOk);
}

TEST_F(TransferTest, AfterAnErrorReusableOnlyOnceTheReceiverHasSeenIt) {
  Match(1, 1);
  memory_.failing_address = slot_.destination.address;
  CopyChunk(slot_, 1, memory_);
  EXPECT_FALSE(IsReusable(slot_));
  EXPECT_EQ(Look(slot_, 1).error, ErrorCode::kInvalidBuffer);
  Release(slot_, 1);
  EXPECT_TRUE(IsReusable(slot_));
}

TEST_F(TransferTest, TinyChunksOfACorruptPeerAreEnlarged) {
  Match(3 * kChunk, 1);
  slot_.chunk_bytes = 0;
  EXPECT_EQ(CopyChunk(slot_, 1, memory_), ChunkResult::kCopied);
  slot_.chunk_bytes = 1;
  EXPECT_EQ(CopyChunk(slot_, 1, memory_), ChunkResult::kCopied);
  EXPECT_EQ(CopyChunk(slot_, 1, memory_), ChunkResult::kFinished);
  ExpectEachByteOnce();
}

class TransferThreadsTest : public TransferTest, public testing::WithParamInterface<uint32_t> {};

INSTANTIATE_TEST_SUITE_P(Threads, TransferThreadsTest, testing::Values(2, 3, 4));

TEST_P(TransferThreadsTest, CopyEachByteOnce) {
  for (uint32_t round = 1; round <= 20; ++round) {
    Match(100 * kChunk + round, round);
    std::atomic<uint32_t> finished{0};
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < GetParam(); ++i) {
      threads.emplace_back([&] {
        ChunkResult result = ChunkResult::kCopied;
        while (result == ChunkResult::kCopied) {
          result = CopyChunk(slot_, round, memory_);
        }
        finished += result == ChunkResult::kFinished ? 1 : 0;
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(finished.load(), 1U);
    EXPECT_TRUE(Look(slot_, round).done);
    ExpectEachByteOnce();
  }
}

TEST(TransferReuseTest, HelpersOfEarlierGenerationsDisturbNothing) {
  // A helper copies the generation that it last heard of, always a little late, while the slot is
  // used for message after message.
  constexpr uint32_t kMessages = 300;
  TestNode node(NodeOptions{.request_limit = 4});
  std::atomic<uint32_t> generation{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> helpers;
  for (uint32_t i = 0; i < 2; ++i) {
    helpers.emplace_back([&] {
      FlatMemory memory;
      while (!over.load()) {
        CopyChunk(*node.view(0).inbox.transfer(1), generation.load(), memory);
        std::this_thread::yield();  // to the ranks, where cores are few
      }
    });
  }
  for (uint32_t i = 0; i < kMessages; ++i) {
    // Kept alive by the receiver until the helpers are through: both look at `done`.
    const std::string data = Pattern(10'000 + 40'000 * (i % 3), i);
    const uint32_t send = node[0].IsendByRequest(1, 7, data);
    ASSERT_EQ(send, 1U);
    generation.store(node[0].slot(send).generation);
    ASSERT_EQ(node[1].Receive(0, 7, data.size()).data, data);
    ASSERT_EQ(node[0].Wait(send).error, ErrorCode::kOk);
  }
  over.store(true);
  for (std::thread& helper : helpers) {
    helper.join();
  }
}

}  // namespace
}  // namespace ferry::engine

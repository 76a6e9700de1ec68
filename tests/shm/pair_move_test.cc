// The ends of a pair as threads: messages that are moved in parts by both, and pairs that end while
// they are.
#include "shm/pair_move.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "shm/counter.h"

namespace ferry::shm {
namespace {

constexpr uint64_t kParts = 5;
constexpr uint64_t kBytes = (kParts - 1) * kMoveChunkBytes + 1000;

class PairMoveTest : public testing::Test {
 protected:
  static std::unique_ptr<PairLayout> NewEnd() {
    auto end = std::make_unique<PairLayout>();
    end->gate = uint64_t{7} << kGateLifeShift;
    return end;
  }

  PairEnds Sender() const { return {send_.get(), receive_.get(), LifeOf(*receive_)}; }
  PairEnds Receiver() const { return {receive_.get(), send_.get(), LifeOf(*send_)}; }
  uint64_t Done(const PairLayout& end) const { return LoadAcquire(end.done.value); }
  bool IsInside(const PairLayout& end) const { return (LoadAcquire(end.gate) & kGateInside) != 0; }

  const std::unique_ptr<PairLayout> send_ = NewEnd();
  const std::unique_ptr<PairLayout> receive_ = NewEnd();
};

constexpr auto kAlways = [] { return true; };
constexpr auto kNothing = [](uint64_t, uint64_t) {};

TEST_F(PairMoveTest, WhoStartsSecondMoves) {
  EXPECT_FALSE(BeginMove(Sender(), true, true));
  EXPECT_FALSE(IsInside(*send_));
  EXPECT_TRUE(BeginMove(Receiver(), false, true));
  EXPECT_TRUE(IsInside(*receive_));
  CompleteMove(Receiver());
  EXPECT_FALSE(IsInside(*receive_));
  EXPECT_EQ(Done(*send_), 1u);
  EXPECT_EQ(Done(*receive_), 1u);
  EXPECT_FALSE(BeginMove(Receiver(), false, true));
  EXPECT_TRUE(BeginMove(Sender(), true, true));
}

TEST_F(PairMoveTest, AReadySendMovesInAnyCase) {
  EXPECT_TRUE(BeginMove(Sender(), true, false));
  EXPECT_EQ(LoadRelaxed(send_->meet.value), 0u);
}

TEST_F(PairMoveTest, TheMoverCopiesAllThatNobodyElseDoes) {
  std::vector<char> from(kBytes, 'x');
  std::vector<char> to(kBytes);
  ASSERT_TRUE(BeginMove(Sender(), true, false));
  MoveInChunks(Sender(), 1, kBytes, [&](uint64_t offset, uint64_t size_bytes) {
    std::memcpy(&to[offset], &from[offset], size_bytes);
  });
  EXPECT_EQ(to, from);
  EXPECT_EQ(Done(*send_), 1u);
  EXPECT_EQ(Done(*receive_), 1u);
  EXPECT_FALSE(HelpMove(Receiver(), 1, kBytes, kNothing, kAlways));  // nothing is left
  EXPECT_FALSE(IsInside(*send_) || IsInside(*receive_));
}

TEST_F(PairMoveTest, NobodyHelpsWithAnotherRound) {
  ChunkClaims claims(*receive_, 2, kBytes);
  claims.Offer();
  EXPECT_FALSE(HelpMove(Receiver(), 1, kBytes, kNothing, kAlways));
  EXPECT_FALSE(HelpMove(Receiver(), 3, kBytes, kNothing, kAlways));
  EXPECT_TRUE(HelpMove(Receiver(), 2, kBytes, kNothing, kAlways));
}

TEST_F(PairMoveTest, WhoHasTheLastPartCompletesTheMessage) {
  ASSERT_TRUE(BeginMove(Sender(), true, false));
  // The helper takes the last part while the mover is in the first, and ends it after it.
  std::atomic<int> taken{0};
  std::atomic<bool> mover_has_left{false};
  std::thread helper([&] {
    while (!ChunkClaims(*receive_, 1, kBytes).AnyLeft()) {
      std::this_thread::yield();
    }
    EXPECT_TRUE(HelpMove(
        Receiver(), 1, kBytes,
        [&](uint64_t, uint64_t) {
          ++taken;
          while (!mover_has_left) {
            std::this_thread::yield();
          }
        },
        kAlways));
  });
  MoveInChunks(Sender(), 1, kBytes, [&](uint64_t, uint64_t) {
    while (taken == 0) {
      std::this_thread::yield();
    }
  });
  EXPECT_FALSE(IsInside(*send_));
  EXPECT_EQ(Done(*send_), 0u);
  mover_has_left = true;
  helper.join();
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(Done(*send_), 1u);
  EXPECT_EQ(Done(*receive_), 1u);
  EXPECT_FALSE(IsInside(*receive_));
}

// A helper that has to go leaves the rest to the mover.
TEST_F(PairMoveTest, AHelperMayLeave) {
  ASSERT_TRUE(BeginMove(Sender(), true, false));
  int helped = 0;
  uint64_t moved = 0;
  MoveInChunks(Sender(), 1, kBytes, [&](uint64_t, uint64_t size_bytes) {
    moved += size_bytes;
    HelpMove(
        Receiver(), 1, kBytes,
        [&](uint64_t, uint64_t more) {
          moved += more;
          ++helped;
        },
        [&] { return helped == 0; });
  });
  EXPECT_EQ(helped, 1);
  EXPECT_EQ(moved, kBytes);
  EXPECT_EQ(Done(*receive_), 1u);
}

// Does what both ends' streams do, for many rounds of all lengths.
TEST_F(PairMoveTest, BothEndsMoveManyMessages) {
  constexpr uint64_t kRounds = 400;
  constexpr uint64_t kLongest = 4 * kMoveChunkBytes;
  std::vector<unsigned char> from(kLongest);
  std::vector<unsigned char> to(kLongest);
  const auto size_of = [](uint64_t round) { return round * 7919 % kLongest + 1; };
  const auto run = [&](const PairEnds& ends, bool is_send) {
    std::minstd_rand random(is_send ? 1 : 2);
    const Counter done(&ends.own->done);
    for (uint64_t round = 1; round <= kRounds; ++round) {
      const uint64_t size = size_of(round);
      const auto copy = [&](uint64_t offset, uint64_t size_bytes) {
        std::memcpy(&to[offset], &from[offset], size_bytes);
      };
      if (is_send) {
        std::memset(from.data(), static_cast<int>(round), size);
      }
      if (random() % 3 == 0) {
        std::this_thread::yield();
      }
      if (BeginMove(ends, is_send, true)) {
        if (IsMovedInChunks(size)) {
          MoveInChunks(ends, round, size, copy);
        } else {
          copy(0, size);
          CompleteMove(ends);
        }
      }
      while (!done.Reached(round)) {
        if (!HelpMove(ends, round, size, copy, kAlways)) {
          std::this_thread::yield();
        }
      }
      if (!is_send) {
        ASSERT_EQ(to[0], static_cast<unsigned char>(round));
        ASSERT_EQ(to[size - 1], static_cast<unsigned char>(round));
        ASSERT_EQ(std::memcmp(to.data(), to.data() + 1, size - 1), 0) << round;
        std::memset(to.data(), 0, size);
      }
    }
  };
  std::thread sender([&] { run(Sender(), true); });
  run(Receiver(), false);
  sender.join();
  EXPECT_EQ(Done(*send_), kRounds);
}

TEST_F(PairMoveTest, AClosedPairMovesNothing) {
  EXPECT_FALSE(BeginMove(Receiver(), false, true));
  ClosePair(Receiver());
  EXPECT_FALSE(BeginMove(Sender(), true, true));
  EXPECT_EQ(LoadRelaxed(send_->meet.value), 1u);  // not even that was touched
  EXPECT_FALSE(BeginMove(Sender(), true, false));
  ChunkClaims(*receive_, 1, kBytes).Offer();
  EXPECT_FALSE(HelpMove(Receiver(), 1, kBytes, kNothing, kAlways));
  EXPECT_FALSE(IsInside(*send_) || IsInside(*receive_));
}

// An end that closes a pair knows afterwards that the other end does not write to its memory.
TEST_F(PairMoveTest, ClosingWaitsForThePartThatIsCopied) {
  for (const bool helper_is_late : {false, true}) {
    *send_ = *NewEnd();
    *receive_ = *NewEnd();
    ASSERT_TRUE(BeginMove(Sender(), true, false));
    std::atomic<int> copying{0};
    std::atomic<bool> may_end{false};
    std::atomic<int> copied{0};
    const auto copy = [&](uint64_t, uint64_t) {
      ++copying;
      while (!may_end) {
        std::this_thread::yield();
      }
      ++copied;
    };
    const PairEnds late = helper_is_late ? Receiver() : Sender();
    std::thread mover([&] {
      if (helper_is_late) {
        ChunkClaims(*receive_, 1, kBytes).Offer();
        EXPECT_TRUE(HelpMove(Receiver(), 1, kBytes, copy, kAlways));
      } else {
        MoveInChunks(Sender(), 1, kBytes, copy);
      }
    });
    if (helper_is_late) {
      AbandonMove(Sender());
    }
    while (copying == 0) {
      std::this_thread::yield();
    }
    std::atomic<bool> closed{false};
    std::thread closer([&] {
      ClosePair(helper_is_late ? Sender() : Receiver());
      closed = true;
    });
    while ((LoadAcquire(late.own->gate) & kGateClosed) == 0) {
      std::this_thread::yield();
    }
    EXPECT_FALSE(closed);
    may_end = true;
    closer.join();
    EXPECT_EQ(copied, 1);  // the other parts are left
    mover.join();
    EXPECT_EQ(copied, 1);
    EXPECT_EQ(Done(*receive_), 0u);
  }
}

TEST_F(PairMoveTest, ClosingDoesNotWaitForTheDead) {
  ASSERT_TRUE(BeginMove(Sender(), true, false));  // and dies
  Counter(&receive_->done).Fail(ErrorCode::kPeerDied);
  ClosePair(Receiver());
  EXPECT_TRUE(IsInside(*send_));
}

// The block of the other end serves another pair by now.
TEST_F(PairMoveTest, ClosingLeavesOtherLivesAlone) {
  const PairEnds stale = Receiver();
  const uint64_t next_life = (uint64_t{LifeOf(*send_)} + 1) << kGateLifeShift;
  StoreRelease(send_->gate, next_life + 1);  // one operation is inside
  ClosePair(stale);
  EXPECT_EQ(LoadAcquire(send_->gate), next_life + 1);
}

}  // namespace
}  // namespace ferry::shm

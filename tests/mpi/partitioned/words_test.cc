// The race for ready partitions: a sender and a receiver, as threads over one pair of blocks,
// compete for the partitions of many rounds. Each partition is moved once in each round, after it
// was readied and the round was cleared. For ThreadSanitizer, too.
#include "mpi/partitioned/words.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "shm/atomic.h"

namespace ferry::mpi {
namespace {

class Pair {
 public:
  explicit Pair(const Units& units)
      : units_(units),
        sender_block_(Make(SenderBlockBytes(units.count()))),
        receiver_block_(Make(ReceiverBlockBytes(units.count()))),
        sender_(sender_block_.get(), units),
        arrived_(static_cast<uint64_t*>(
                     static_cast<void*>(receiver_block_.get() + sizeof(ReceiverBlock))),
                 units),
        sent_(parts()),
        got_(parts()) {}

  const Units& units() const { return units_; }
  uint32_t parts() const { return units_.partitions * units_.pieces; }
  const SenderWords& sender() const { return sender_; }
  const ArrivalWords& arrived() const { return arrived_; }

  // The sender's side of a round; `threads` ready the partitions.
  void Send(uint64_t round, uint32_t threads) {
    std::vector<std::thread> readying;
    for (uint32_t i = 1; i < threads; ++i) {
      readying.emplace_back([=, this] { ReadyShare(round, i, threads); });
    }
    ReadyShare(round, 0, threads);
    for (std::thread& thread : readying) {
      thread.join();
    }
    for (uint32_t done = 0; done < units_.count();) {
      MoveAll(round, true, Share(units_, true));
      done = arrived_.FirstMissing(done, round);
      std::this_thread::yield();
    }
  }
  // The receiver's; it takes what is ready, full units or not, as `takes` says.
  void Receive(uint64_t round, bool takes) {
    (void)shm::Exchange(sender_.block().cleared, round, std::memory_order_seq_cst);
    for (uint32_t done = 0; done < units_.count();) {
      if (takes) {
        MoveAll(round, false, Share(units_, false));
      }
      done = arrived_.FirstMissing(done, round);
      std::this_thread::yield();
    }
    for (uint32_t p = 0; p < parts(); ++p) {
      ASSERT_EQ(got_[p], round * 1000 + p);
    }
  }
  uint64_t moved() const { return moved_; }

 private:
  struct Free {
    void operator()(std::byte* block) const { std::free(block); }
  };
  using Bytes = std::unique_ptr<std::byte, Free>;
  static Bytes Make(uint64_t size_bytes) {
    const uint64_t rounded = (size_bytes + 63) / 64 * 64;
    Bytes block(static_cast<std::byte*>(std::aligned_alloc(64, rounded)));
    std::memset(block.get(), 0, rounded);
    return block;
  }

  void ReadyShare(uint64_t round, uint32_t first, uint32_t step) {
    for (uint32_t p = first; p < units_.partitions; p += step) {
      for (uint32_t piece = p * units_.pieces; piece < (p + 1) * units_.pieces; ++piece) {
        sent_[piece] = round * 1000 + piece;
      }
      const uint32_t unit = units_.UnitOf(p);
      const SenderWords::Marked marked = sender_.Mark(unit, units_.BitsOf(p), round);
      ASSERT_EQ(marked.again, 0u);
      if (marked.is_full && sender_.IsCleared(round)) {
        Move(unit, sender_.Take(unit, round, true));
      }
    }
  }
  void MoveAll(uint64_t round, bool only_full, const Share& share) {
    if (sender_.IsCleared(round)) {
      for (uint32_t unit = 0; unit < units_.count(); ++unit) {
        Move(unit, sender_.Take(unit, round, only_full, share));
      }
    }
  }
  void Move(uint32_t unit, uint64_t bits) {
    while (bits != 0) {
      const Units::Run run = Units::TakeRun(&bits);
      for (uint32_t i = 0; i < run.count; ++i) {
        const uint32_t p = unit * units_.per_unit * units_.pieces + run.first + i;
        got_[p] = sent_[p];
        ++moved_;
      }
      arrived_.Add(unit, run.bits());
    }
  }

  const Units units_;
  const Bytes sender_block_;
  const Bytes receiver_block_;
  const SenderWords sender_;
  const ArrivalWords arrived_;
  std::vector<uint64_t> sent_;
  std::vector<uint64_t> got_;
  std::atomic<uint64_t> moved_{0};
};

void Race(const Units& units, uint64_t rounds, uint32_t threads, bool receiver_takes) {
  Pair pair(units);
  std::thread receiver([&] {
    for (uint64_t round = 1; round <= rounds; ++round) {
      pair.Receive(round, receiver_takes);
    }
  });
  for (uint64_t round = 1; round <= rounds; ++round) {
    pair.Send(round, threads);
  }
  receiver.join();
  EXPECT_EQ(pair.moved(), rounds * pair.parts());
}

TEST(WordsTest, ASenderAloneMovesEachPartitionOnce) {
  Race({.partitions = 10, .per_unit = 4, .partition_bytes = 8}, 2000, 1, false);
}

TEST(WordsTest, BothSidesTakeEachPartitionOnce) {
  Race({.partitions = 10, .per_unit = 4, .partition_bytes = 8}, 3000, 1, true);
}

TEST(WordsTest, TheLargestUnitsAreMovedOnce) {
  Race({.partitions = 66, .per_unit = kPartitionsPerUnit, .partition_bytes = 8}, 1000, 1, true);
}

TEST(WordsTest, ManyUnitsLieCloseTogether) {
  Race({.partitions = 70, .per_unit = 1, .partition_bytes = 8}, 1000, 1, true);
}

TEST(WordsTest, BothSidesMovePiecesOfAPartition) {
  Race({.partitions = 1, .partition_bytes = 4 << 20, .pieces = kPartitionsPerUnit}, 1000, 1, true);
  Race({.partitions = 5, .partition_bytes = 500'000, .pieces = 7}, 1000, 1, true);
}

TEST(WordsTest, SeveralThreadsReady) {
  Race({.partitions = 48, .per_unit = 8, .partition_bytes = 8}, 500, 3, true);
}

TEST(WordsTest, NamesWhatIsReadiedAgainAndKeepsTheWord) {
  Pair pair({.partitions = 4, .per_unit = 4, .partition_bytes = 8});
  EXPECT_FALSE(pair.sender().Mark(0, 0b0011, 1).is_full);
  const SenderWords::Marked marked = pair.sender().Mark(0, 0b0110, 1);
  EXPECT_EQ(marked.again, 0b0010u);
  EXPECT_FALSE(marked.is_full);
  EXPECT_EQ(pair.sender().ReadyBits(0, 1), 0b0111u);
  EXPECT_EQ(pair.sender().Mark(0, 0b0111, 1).again, 0b0111u);
  EXPECT_TRUE(pair.sender().Mark(0, 0b1000, 1).is_full);
}

TEST(WordsTest, TakesOnlyFullUnitsIfAsked) {
  Pair pair({.partitions = 4, .per_unit = 4, .partition_bytes = 8});
  (void)pair.sender().Mark(0, 0b0101, 1);
  EXPECT_EQ(pair.sender().Take(0, 1, true), 0u);
  EXPECT_EQ(pair.sender().Take(0, 1, false), 0b0101u);
  (void)pair.sender().Mark(0, 0b1010, 1);
  EXPECT_EQ(pair.sender().Take(0, 1, true), 0b1010u);
  EXPECT_EQ(pair.sender().Take(0, 1, false), 0u);
}

// Of 1 MiB each side copies up to 256 KiB at once, and helps the other one by half of what is left.
TEST(ShareTest, EachSideBeginsAtItsEnd) {
  Pair pair({.partitions = 1, .partition_bytes = 1 << 20, .pieces = 16});
  const Share receiver(pair.units(), false);
  const Share sender(pair.units(), true);
  (void)pair.sender().Mark(0, pair.units().BitsOf(0), 1);
  EXPECT_EQ(pair.sender().Take(0, 1, true, receiver), 0x000fu);
  EXPECT_EQ(pair.sender().Take(0, 1, true, sender), 0xf000u);
  EXPECT_EQ(pair.sender().Take(0, 1, true, receiver), 0x00f0u);
  EXPECT_EQ(pair.sender().Take(0, 1, true, receiver), 0x0300u);
  EXPECT_EQ(pair.sender().Take(0, 1, true, sender), 0x0c00u);
  EXPECT_EQ(pair.sender().Take(0, 1, true, sender), 0u);
}

TEST(ShareTest, HalfIsLeftOfWhatIsFoundAlone) {
  const Units units{.partitions = 4, .partition_bytes = 256 << 10, .pieces = 4};
  EXPECT_EQ(Share(units, false).In(0, 0xf, false), 0xfu);
  EXPECT_EQ(Share(units, false).In(0, 0xf, true), 0x3u);
  EXPECT_EQ(Share(units, true).In(3, 0xf, false), 0xfu);
  EXPECT_EQ(Share(units, true).In(3, 0xf, true), 0xcu);
  EXPECT_EQ(Share(units, true).In(3, 0x1, true), 0x1u);
  EXPECT_EQ(Share(units, true).In(1, 0xf, false), 0xcu);  // of the receiver's half
  EXPECT_TRUE(Share(units, true).IsOwn(2));
  EXPECT_FALSE(Share(units, true).IsOwn(1));
}

TEST(ShareTest, LittleIsNotShared) {
  const Units units{.partitions = 64, .per_unit = 8, .partition_bytes = 8 << 10};
  EXPECT_EQ(Share(units, false).In(7, 0xff, true), 0xffu);
  EXPECT_EQ(Share().In(0, 0xff, true), 0xffu);  // where no side copies by itself
  EXPECT_TRUE(Share().IsOwn(7));
}

TEST(WordsTest, FindsOutWhatTheOtherSideIsAbout) {
  Pair pair({.partitions = 3, .partition_bytes = 256 << 10, .pieces = 4});
  const Share receiver(pair.units(), false);
  const Share sender(pair.units(), true);
  for (uint32_t unit = 0; unit < 3; ++unit) {
    (void)pair.sender().Mark(unit, pair.units().BitsOf(unit), 1);
  }
  EXPECT_FALSE(pair.sender().IsNextTaken(0, 1, receiver));
  EXPECT_FALSE(pair.sender().IsNextTaken(2, 1, sender));
  EXPECT_TRUE(pair.sender().IsNextTaken(0, 1, sender));
  EXPECT_TRUE(pair.sender().IsNextTaken(2, 1, receiver));
  EXPECT_NE(pair.sender().Take(1, 1, true, receiver), 0u);
  EXPECT_TRUE(pair.sender().IsNextTaken(0, 1, receiver));
  EXPECT_TRUE(pair.sender().IsNextTaken(2, 1, sender));
}

// A thread that is alone marks with fewer locked instructions, and comes to the same.
TEST(WordsTest, AThreadAloneMarksLikeOthers) {
  Pair pair({.partitions = 4, .per_unit = 4, .partition_bytes = 8});
  std::atomic<uint32_t> acting{0};
  for (uint64_t round = 1; round < 4; ++round) {
    EXPECT_FALSE(pair.sender().MarkAlone(0, 0b0011, round, &acting).is_full);
    const SenderWords::Marked marked = pair.sender().MarkAlone(0, 0b0110, round, &acting);
    EXPECT_EQ(marked.again, 0b0010u);
    EXPECT_FALSE(marked.is_full);
    EXPECT_EQ(pair.sender().ReadyBits(0, round), 0b0111u);
    EXPECT_EQ(acting, 0u);
    EXPECT_TRUE(pair.sender().MarkAlone(0, 0b1000, round, &acting).is_full);
    EXPECT_EQ(acting.exchange(0), 1u);
    EXPECT_EQ(pair.sender().MarkAlone(0, 0b1111, round, &acting).again, 0b1111u);
    EXPECT_EQ(acting, 0u);
    EXPECT_TRUE(pair.sender().IsReady(0, round));
  }
}

// A thread that was held up after it had made the unit full.
TEST(WordsTest, WhoComesLateTakesNothingOfLaterRounds) {
  for (const uint32_t partitions : {1u, 4u, kPartitionsPerUnit}) {
    Pair pair({.partitions = partitions, .per_unit = partitions, .partition_bytes = 8});
    const uint64_t full = pair.units().FullOf(0);
    for (uint64_t round = 1; round < 4; ++round) {
      EXPECT_TRUE(pair.sender().Mark(0, full, round).is_full);
      for (uint64_t late = 1; late < round; ++late) {  // the unit of this round may be taken
        EXPECT_EQ(pair.sender().Take(0, late, true), 0u);
        EXPECT_EQ(pair.sender().Take(0, late, false), 0u);
      }
      EXPECT_EQ(pair.sender().Take(0, round, true), full);
      EXPECT_EQ(pair.sender().Take(0, round, true), 0u);
    }
  }
}

TEST(WordsTest, CountsWhoMakesAUnitFullAndNobodyElse) {
  Pair pair({.partitions = 4, .per_unit = 4, .partition_bytes = 8});
  std::atomic<uint32_t> acting{0};
  EXPECT_FALSE(pair.sender().Mark(0, 0b0111, 1, &acting).is_full);
  EXPECT_FALSE(pair.sender().Mark(0, 0b0001, 1, &acting).is_full);  // again
  EXPECT_EQ(acting, 0u);
  EXPECT_TRUE(pair.sender().Mark(0, 0b1000, 1, &acting).is_full);
  EXPECT_EQ(acting, 1u);
  EXPECT_FALSE(pair.sender().Mark(0, 0b1000, 1, &acting).is_full);
  EXPECT_EQ(acting, 1u);
}

// Each of them is marked by one of the threads, and told to be again to the others.
TEST(WordsTest, ThreadsThatReadyTheSameDisturbNothing) {
  constexpr uint64_t kRounds = 2000;
  Pair pair({.partitions = 8, .per_unit = 8, .partition_bytes = 8});
  std::atomic<uint32_t> acting{0};
  std::atomic<uint64_t> full{0};
  std::atomic<uint64_t> again{0};
  std::barrier round_over(2);
  const auto ready_all = [&] {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      for (uint32_t p = 0; p < 8; ++p) {
        const SenderWords::Marked marked = pair.sender().Mark(0, 1u << p, round, &acting);
        full += marked.is_full ? 1 : 0;
        again += marked.again != 0 ? 1 : 0;
      }
      round_over.arrive_and_wait();
    }
  };
  std::thread other(ready_all);
  ready_all();
  other.join();
  EXPECT_EQ(full, kRounds);
  EXPECT_EQ(again, 8 * kRounds);
  EXPECT_EQ(acting, kRounds);  // of those that made it full, who have not taken themselves off
  EXPECT_EQ(pair.sender().ReadyBits(0, kRounds), 0xffu);
}

TEST(WordsTest, SaysWhetherAllThatIsNeededIsThere) {
  Pair pair({.partitions = 10, .per_unit = 4, .partition_bytes = 8});
  pair.arrived().Add(0, 0b1000);
  pair.arrived().Add(1, 0b0001);
  EXPECT_TRUE(pair.arrived().Have({3, 4}, 1));
  EXPECT_FALSE(pair.arrived().Have({3, 5}, 1));
  EXPECT_FALSE(pair.arrived().Have({2, 4}, 1));
}

}  // namespace
}  // namespace ferry::mpi

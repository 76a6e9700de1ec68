// Who takes what is ready: a sender and a receiver, as threads over one pair of blocks, race for
// the partitions of many rounds. Each partition is moved once in each round, after it was readied
// and the round was cleared. For ThreadSanitizer, too.
#include "client/mpi/partitioned/words.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

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
        sent_(units.partitions),
        got_(units.partitions) {}

  const Units& units() const { return units_; }
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
      MoveAll(round, true);
      done = arrived_.FirstMissing(done, round);
      std::this_thread::yield();
    }
  }
  // The receiver's; it takes what is ready, full units or not, as `takes` says.
  void Receive(uint64_t round, bool takes) {
    std::atomic_ref<uint64_t>(sender_.block().cleared).store(round, std::memory_order_seq_cst);
    for (uint32_t done = 0; done < units_.count();) {
      if (takes) {
        MoveAll(round, false);
      }
      done = arrived_.FirstMissing(done, round);
      std::this_thread::yield();
    }
    for (uint32_t p = 0; p < units_.partitions; ++p) {
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
      sent_[p] = round * 1000 + p;
      const uint32_t unit = units_.UnitOf(p);
      const SenderWords::Marked marked = sender_.Mark(unit, units_.BitOf(p), round);
      ASSERT_EQ(marked.again, 0u);
      if (marked.is_full && sender_.IsCleared(round)) {
        Move(unit, sender_.Take(unit, round, true));
      }
    }
  }
  void MoveAll(uint64_t round, bool only_full) {
    if (sender_.IsCleared(round)) {
      for (uint32_t unit = 0; unit < units_.count(); ++unit) {
        Move(unit, sender_.Take(unit, round, only_full));
      }
    }
  }
  void Move(uint32_t unit, uint64_t bits) {
    while (bits != 0) {
      const Units::Run run = Units::TakeRun(&bits);
      for (uint32_t i = 0; i < run.count; ++i) {
        const uint32_t p = unit * units_.per_unit + run.first + i;
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
  EXPECT_EQ(pair.moved(), rounds * units.partitions);
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

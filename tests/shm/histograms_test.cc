// Messages and waits are counted in the entry that their size or length belongs to, and what a rank
// writes of them at will makes no reader mistake one function for another.
#include "shm/histograms.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "shm/call_board.h"

namespace ferry::shm {
namespace {

constexpr CallName kRecv = CallName::kMpiRecv;

TEST(HistogramsTest, ASizeIsInTheEntryOfItsPowerOfTwo) {
  EXPECT_EQ(SizeEntry(0), kEmptyMessages);
  EXPECT_EQ(SizeEntry(1), 0U);
  EXPECT_EQ(SizeEntry(2), 0U);
  EXPECT_EQ(SizeEntry(3), 1U);
  for (uint32_t i = 1; i < 62; ++i) {
    EXPECT_EQ(SizeEntry((uint64_t{1} << i) + 1), i);
    EXPECT_EQ(SizeEntry(uint64_t{1} << (i + 1)), i);
  }
}

TEST(HistogramsTest, AWaitIsInTheEntryOfItsLength) {
  EXPECT_EQ(WaitEntry(0), 0U);
  EXPECT_EQ(WaitEntry(2000), 0U);
  EXPECT_EQ(WaitEntry(2001), 1U);
  EXPECT_EQ(WaitEntry(4000), 1U);
  EXPECT_EQ(WaitEntry(4001), 2U);
  EXPECT_EQ(WaitEntry(1'000'000'000), 19U);
  EXPECT_EQ(WaitEntry(UINT64_MAX), kWaitCounts - 1);
}

class LayoutTest : public testing::Test {
 protected:
  Histograms Read() const {
    Histograms read;
    read.Add(*layout_);
    return read;
  }
  const std::unique_ptr<HistogramLayout> layout_ = std::make_unique<HistogramLayout>();
};

TEST_F(LayoutTest, EachFunctionHasItsLine) {
  CountSize(*layout_, 8);
  CountSize(*layout_, 0);
  CountWait(*layout_, kRecv, 1000);
  CountWait(*layout_, CallName::kMpiBarrier, 5000);
  CountWait(*layout_, kRecv, 3000);
  const Histograms read = Read();
  EXPECT_EQ(read.sizes[2], 1U);
  EXPECT_EQ(read.sizes[kEmptyMessages], 1U);
  ASSERT_EQ(read.waits.size(), 2U);
  EXPECT_EQ(read.waits.at(kRecv).waited_ns, 4000U);
  EXPECT_EQ(read.waits.at(kRecv).counts[0], 1U);
  EXPECT_EQ(read.waits.at(kRecv).counts[1], 1U);
  EXPECT_EQ(read.waits.at(kRecv).Count(), 2U);
  EXPECT_EQ(read.WaitedNs(), 9000U);
}

TEST_F(LayoutTest, FunctionsWithoutALineAreCountedTogether) {
  for (uint16_t name = 1; name <= 20; ++name) {
    CountWait(*layout_, static_cast<CallName>(name), 1000);
    CountWait(*layout_, static_cast<CallName>(name), 1000);
  }
  const Histograms read = Read();
  EXPECT_EQ(read.waits.size(), size_t{kWaitLines});
  EXPECT_EQ(read.waits.at(CallName::kMpiSend).Count(), 2U);
  EXPECT_EQ(read.waits.at(CallName::kNone).Count(), 2 * (20U - (kWaitLines - 1)));
  EXPECT_EQ(read.WaitedNs(), 40'000U);
}

// No two functions may take one line; a count may be lost, a line not.
TEST_F(LayoutTest, ThreadsTakeLinesAtTheSameTime) {
  std::vector<std::thread> threads;
  for (uint16_t name = 1; name < kWaitLines; ++name) {
    threads.emplace_back([this, name] {
      for (int i = 0; i < 1000; ++i) {
        CountWait(*layout_, static_cast<CallName>(name), 1000);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const Histograms read = Read();
  ASSERT_EQ(read.waits.size(), size_t{kWaitLines - 1});
  for (const auto& [name, waits] : read.waits) {
    EXPECT_NE(name, CallName::kNone);
    EXPECT_EQ(waits.Count(), 1000U);
    EXPECT_EQ(waits.waited_ns, 1'000'000U);
  }
}

TEST_F(LayoutTest, NumbersOfNoFunctionAreLeftOut) {
  for (const uint64_t number : {uint64_t{255}, uint64_t{256}, uint64_t{1} << 16 | 1, UINT64_MAX}) {
    layout_->waits[0].name = number;
    layout_->waits[0].counts[3] = 7;
    EXPECT_TRUE(Read().waits.empty()) << number;
  }
  layout_->waits[0].name = static_cast<uint64_t>(kRecv);
  layout_->waits[1].name = static_cast<uint64_t>(kRecv);  // twice
  layout_->waits[1].counts[3] = 7;
  EXPECT_EQ(Read().waits.at(kRecv).Count(), 14U);
}

TEST(HistogramsTest, SumsAddUp) {
  Histograms one;
  one.AddWait(kRecv, 1000);
  Histograms sum;
  sum.Add(one);
  sum.Add(one);
  EXPECT_EQ(sum.waits.at(kRecv).Count(), 2U);
  EXPECT_EQ(sum.WaitedNs(), 2000U);
}

// ---- In a session -------------------------------------------------------------------------------

TEST(HistogramsTest, ABoardInASessionCountsItsWaits) {
  const auto session = std::make_unique<SessionLayout>();
  CallBoard board(&session->calls);
  board.AddWait(kRecv, 1000);  // before anybody has said that there is room for it
  OfferHistograms(*session);
  board.AddWait(kRecv, 2000);
  Histograms read;
  read.Add(HistogramsOf(*session));
  ASSERT_EQ(read.waits.size(), 1U);
  EXPECT_EQ(read.waits.at(kRecv).waited_ns, 2000U);
  EXPECT_EQ(session->calls.totals[static_cast<uint16_t>(kRecv)].waited_ns, 3000U);
}

// A board of its own, as tests have it, has nothing behind it.
TEST(HistogramsTest, ABoardAloneTouchesNothingElse) {
  struct {
    CallBoardLayout board;
    HistogramLayout behind;
  } memory{};
  CallBoard board(&memory.board);
  board.AddWait(kRecv, 1000);
  const HistogramLayout zeros{};
  EXPECT_EQ(std::memcmp(&memory.behind, &zeros, sizeof(zeros)), 0);
}

}  // namespace
}  // namespace ferry::shm

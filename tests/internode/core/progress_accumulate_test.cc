// Accumulates between nodes: what a rank's daemon passes on, what the other one makes of the
// numbers there, and what comes back.
#include <algorithm>
#include <complex>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "shm/accumulate.h"
#include "shm/atomic.h"
#include "shm/layout/one_sided_layout.h"
#include "tests/internode/core/progress_one_sided_fixture.h"

namespace ferry::daemon {
namespace {

using reduction::NumberKind;
using reduction::OpKind;
using shm::OneSidedOperation;

class ProgressAccumulateTest : public ProgressOneSidedTest {
 protected:
  static constexpr uint16_t kAnswer = 5;

  static Wish WishFor(uint32_t to, OpKind operation, NumberKind kind, uint64_t offset,
                      uint64_t count) {
    const shm::Accumulation what = *shm::Accumulation::Of(operation, kind);
    Wish wish = About(to, OneSidedOperation::kAccumulate, offset, count * what.element_bytes());
    wish.command.tag = static_cast<int32_t>(what.packed());
    return wish;
  }
  // The operands where the rank's library puts them.
  template <typename T>
  static std::vector<std::byte> GiveOperands(const std::vector<T>& operands, Wish* wish) {
    std::vector<std::byte> bytes(operands.size() * sizeof(T));
    std::memcpy(bytes.data(), operands.data(), bytes.size());
    if (bytes.size() <= shm::kInlinePutBytes) {
      std::memcpy(&wish->words.operand, bytes.data(), std::min<size_t>(bytes.size(), 8));
      if (bytes.size() > 8) {
        std::memcpy(&wish->words.compare, bytes.data() + 8, bytes.size() - 8);
      }
      bytes.clear();
    }
    return bytes;
  }
  // Rank 0's, on memory of rank 1, whose number it is. Waits until it is over.
  template <typename T>
  void Accumulate(OpKind operation, NumberKind kind, uint64_t offset,
                  const std::vector<T>& operands, uint64_t number) {
    Wish wish = WishFor(1, operation, kind, offset, operands.size());
    const std::vector<std::byte> bytes = GiveOperands(operands, &wish);
    Say(0, wish, bytes.empty() ? nullptr : &bytes);
    ASSERT_TRUE(Comes(0, 1, number));
  }
  // Accumulates with an answer. Returns the old values.
  template <typename T>
  std::vector<T> Fetch(OpKind operation, NumberKind kind, uint64_t offset,
                       const std::vector<T>& operands, uint64_t count) {
    Wish wish = WishFor(1, operation, kind, offset, count);
    const std::vector<std::byte> bytes = GiveOperands(operands, &wish);
    shm::AnswerLayout& answer = rank(0).view().layout->answers[kAnswer];
    wish.words.answer = kAnswer;
    wish.words.serial = static_cast<uint16_t>(shm::LoadAcquire(answer.serial) + 1);
    Say(0, wish, bytes.empty() ? nullptr : &bytes);
    EXPECT_TRUE(Eventually([&] { return shm::LoadAcquire(answer.serial) == wish.words.serial; }));
    EXPECT_EQ(static_cast<ErrorCode>(answer.error), ErrorCode::kOk);
    std::vector<T> found(count);
    std::memcpy(found.data(), rank(0).view().layout->answer_cells[kAnswer], count * sizeof(T));
    return found;
  }
  template <typename T>
  std::vector<T> At(uint64_t offset, uint64_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), rank(1).heap() + offset, count * sizeof(T));
    return values;
  }
};

TEST_F(ProgressAccumulateTest, RowsOfAllLengthsAreSummedAndFound) {
  Start({1, 1});
  uint64_t number = 0;
  for (const uint64_t count : {1, 2, 3, 1024}) {
    const uint64_t offset = 4096;
    std::vector<double> operands(count);
    std::vector<double> twice(count);
    for (uint64_t i = 0; i < count; ++i) {
      operands[i] = static_cast<double>(i) + 0.5;
      twice[i] = 2 * operands[i];
    }
    ASSERT_NO_FATAL_FAILURE(
        Accumulate(OpKind::kReplace, NumberKind::kFloat64, offset, operands, ++number));
    ASSERT_NO_FATAL_FAILURE(
        Accumulate(OpKind::kSum, NumberKind::kFloat64, offset, operands, ++number));
    EXPECT_EQ(At<double>(offset, count), twice);
    EXPECT_EQ(Fetch(OpKind::kMin, NumberKind::kFloat64, offset, operands, count), twice);
    EXPECT_EQ(Fetch<double>(OpKind::kNoOp, NumberKind::kFloat64, offset, {}, count), operands);
    ASSERT_TRUE(Comes(0, 1, number += 2));
    EXPECT_EQ(At<double>(offset + count * sizeof(double), 1)[0], 0.0);
    std::memset(rank(1).heap() + offset, 0, count * sizeof(double));
  }
  EXPECT_TRUE(Failures(0).empty());
}

// Elements that no CPU changes at once, the daemon changes.
TEST_F(ProgressAccumulateTest, LongElementsAndThoseThatLieAnywhere) {
  Start({1, 1});
  using Long = std::complex<long double>;
  const std::vector<Long> operands(200, Long(1, 2));
  ASSERT_NO_FATAL_FAILURE(
      Accumulate(OpKind::kSum, NumberKind::kComplexLongDouble, 1008, operands, 1));
  EXPECT_EQ(Fetch(OpKind::kSum, NumberKind::kComplexLongDouble, 1008, operands, 200), operands);
  EXPECT_EQ(At<Long>(1008, 200), std::vector<Long>(200, Long(2, 4)));
  const std::vector<double> halves(3, 0.5);
  ASSERT_NO_FATAL_FAILURE(Accumulate(OpKind::kSum, NumberKind::kFloat64, 8195, halves, 3));
  EXPECT_EQ(At<double>(8195, 3), halves);
}

TEST_F(ProgressAccumulateTest, TheyKeepTheirOrderAmongAtomicOperations) {
  Start({1, 1});
  constexpr uint64_t kRounds = 2000;
  Wish twice = WishFor(1, OpKind::kProd, NumberKind::kUint64, 64, 1);
  twice.words.operand = 2;
  Wish clear = WishFor(1, OpKind::kBand, NumberKind::kUint64, 64, 1);
  clear.words.operand = 0xffff;
  uint64_t expected = 0;
  for (uint64_t i = 0; i < kRounds; ++i) {
    Say(0, AtomicOn(1, OneSidedOperation::kAdd, 64, i));
    Say(0, twice);
    Say(0, clear);
    expected = (expected + i) * 2 & 0xffff;
  }
  ASSERT_TRUE(Comes(0, 1, 3 * kRounds));
  EXPECT_EQ(Word(1, 64), expected);
}

TEST_F(ProgressAccumulateTest, AChangeWakesARankThatRests) {
  Start({1, 1});
  shm::WakeLayout& wake = *rank(1).view().inbox.wake();
  ASSERT_NO_FATAL_FAILURE(
      Accumulate(OpKind::kSum, NumberKind::kInt32, 0, std::vector<int32_t>{1}, 1));
  EXPECT_EQ(shm::LoadAcquire(wake.changes), 1U);
}

TEST_F(ProgressAccumulateTest, WhatIsOutsideItsRegionFailsByNameAndChangesNothing) {
  Start({1, 1});
  Wish wish = WishFor(1, OpKind::kReplace, NumberKind::kInt64, 0, 2);
  wish.words.operand = wish.words.compare = 7;
  const auto fails = [&](uint64_t number, ErrorCode error, auto&& spoil) {
    Wish wrong = wish;
    spoil(wrong);
    Say(0, wrong);
    ExpectFailure(0, 1, number, number, error);
  };
  const uint64_t heap_bytes = kHeapBytes;
  fails(1, ErrorCode::kInvalidBuffer, [&](Wish& one) { one.words.offset = heap_bytes - 8; });
  fails(2, ErrorCode::kInvalidBuffer, [&](Wish& one) { one.words.offset = UINT64_MAX - 7; });
  fails(3, ErrorCode::kInvalidBuffer, [](Wish& one) { one.command.context = 77; });
  fails(4, ErrorCode::kInvalidBuffer, [](Wish& one) { one.command.context = 0; });
  wish.words.offset = heap_bytes - 8;
  EXPECT_EQ(Ask(0, wish, kAnswer), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(At<int64_t>(heap_bytes - 8, 1)[0], 0);
  EXPECT_EQ(At<int64_t>(0, 1)[0], 0);
}

TEST_F(ProgressAccumulateTest, ACommandThatNoRankWritesEndsIt) {
  const auto wrong = [&](auto&& spoil, const std::string& words) {
    Start({1, 1});
    Wish wish = WishFor(1, OpKind::kSum, NumberKind::kInt32, 0, 2);
    spoil(wish);
    ExpectViolation(0, wish, words);
    Stop();
    told_.violations.clear();
  };
  const std::string text = "a one-sided operation 13 of ";
  wrong([](Wish& wish) { wish.command.tag = -1; }, text);
  wrong([](Wish& wish) { wish.command.tag |= 0xf; }, text);
  wrong([](Wish& wish) { wish.command.tag = 0x7f1300; }, text);
  wrong([](Wish& wish) { wish.command.size_bytes = 6; }, text + "6 bytes");
  wrong([](Wish& wish) { wish.command.size_bytes = 0; }, text + "0 bytes");
  wrong([](Wish& wish) { wish.command.size_bytes = 20; }, text + "20 bytes");  // and no cell
  wrong([](Wish& wish) { wish.command.size_bytes = shm::kCellBytes + 4; }, text + "8196 bytes");
  wrong([](Wish& wish) { wish.words.signal = 1; }, "signal 1");
  wrong([](Wish& wish) { wish.words.answer = shm::kAnswers; }, "answer 64");
  wrong(
      [](Wish& wish) {  // longer than one turn may take
        wish = WishFor(1, OpKind::kNoOp, NumberKind::kInt8, 0, shm::kMostAccumulated + 1);
      },
      text + "1025 bytes");
  wrong(
      [](Wish& wish) {  // a cell, and nothing to be in it
        wish = WishFor(1, OpKind::kNoOp, NumberKind::kInt8, 0, 100);
        wish.command.flags = shm::kFlagCell;
      },
      text + "100 bytes");
  wrong(
      [](Wish& wish) {
        wish = WishFor(1, OpKind::kSum, NumberKind::kInt8, 0, 100);
        wish.command.flags = shm::kFlagCell;
        wish.command.cell = shm::kLaneCells;
      },
      text + "100 bytes");
}

// A rank asks its daemon for those on memory of its own node that no CPU can do.
TEST_F(ProgressAccumulateTest, InsideANodeTheyAreCarriedOutAtOnce) {
  Start({2, 1});
  using Long = std::complex<long double>;
  const std::vector<Long> operands(100, Long(3, 1));
  ASSERT_NO_FATAL_FAILURE(
      Accumulate(OpKind::kSum, NumberKind::kComplexLongDouble, 32, operands, 1));
  EXPECT_EQ(Fetch(OpKind::kSum, NumberKind::kComplexLongDouble, 32, operands, 100), operands);
  ASSERT_TRUE(Comes(0, 1, 2));
  EXPECT_EQ(At<Long>(32, 100), std::vector<Long>(100, Long(6, 2)));
  EXPECT_TRUE(Failures(0).empty());
  Wish beyond = WishFor(1, OpKind::kSum, NumberKind::kInt64, kHeapBytes - 4, 1);
  Say(0, beyond);
  ExpectFailure(0, 1, 3, 3, ErrorCode::kInvalidBuffer);
  beyond.command.destination = 0;  // its own memory
  Say(0, beyond);
  ExpectFailure(0, 0, 1, 1, ErrorCode::kInvalidBuffer);
  ExpectViolation(0, InlinePut(1, 0, 1), "which is on no other node");
}

TEST_F(ProgressAccumulateTest, ThoseUnderWayEndWithTheLink) {
  GiveFaults(1, "send.one_sided_done:1:stall");
  Start({1, 1});
  Wish wish = WishFor(1, OpKind::kSum, NumberKind::kInt64, 0, 1);
  wish.words.operand = 1;
  wish.words.answer = kAnswer;
  shm::AnswerLayout& answer = rank(0).view().layout->answers[kAnswer];
  wish.words.serial = static_cast<uint16_t>(shm::LoadAcquire(answer.serial) + 1);
  Say(0, wish);
  ASSERT_TRUE(Eventually([&] { return shm::LoadAcquire(Word(1, 0)) == 1; }));
  Cut();
  ASSERT_TRUE(Eventually([&] { return shm::LoadAcquire(answer.serial) == wish.words.serial; }));
  EXPECT_EQ(static_cast<ErrorCode>(answer.error), ErrorCode::kLinkDown);
}

}  // namespace
}  // namespace ferry::daemon

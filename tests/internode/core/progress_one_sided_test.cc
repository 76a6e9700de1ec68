// One-sided operations between nodes: what a rank's daemon passes on, what the other one carries
// out, and what comes back.
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "shm/atomic.h"
#include "shm/layout/one_sided_layout.h"
#include "tests/internode/core/progress_one_sided_fixture.h"

namespace ferry::daemon {
namespace {

using shm::OneSidedOperation;
using shm::SignalUpdate;

TEST_F(ProgressOneSidedTest, PutsOfAllSizesArriveAndAreCounted) {
  Start({1, 1});
  uint64_t number = 0;
  for (const uint64_t size_bytes : {uint64_t{1}, uint64_t{16}, uint64_t{17}, uint64_t{8192}}) {
    const std::vector<std::byte> data = Pattern(size_bytes, 3);
    Wish put = About(1, OneSidedOperation::kPut, 1000, size_bytes);
    if (size_bytes <= shm::kInlinePutBytes) {
      std::memcpy(&put.words.operand, data.data(), size_bytes);
      Say(0, put);
    } else {
      Say(0, put, &data);
    }
    ASSERT_TRUE(Comes(0, 1, ++number));
    EXPECT_EQ(std::memcmp(rank(1).heap() + 1000, data.data(), size_bytes), 0);
    EXPECT_EQ(rank(1).heap()[1000 + size_bytes], std::byte{});
    std::memset(rank(1).heap() + 1000, 0, size_bytes);
  }
  EXPECT_EQ(Done(0, 1), number);
  EXPECT_TRUE(Failures(0).empty());
}

TEST_F(ProgressOneSidedTest, GetsBringTheBytesIntoTheirCell) {
  Start({1, 1});
  const std::vector<std::byte> there = Pattern(8192, 5);
  std::memcpy(rank(1).heap() + 64, there.data(), there.size());
  for (const uint64_t size_bytes : {uint64_t{1}, uint64_t{100}, uint64_t{8192}}) {
    EXPECT_EQ(Ask(0, About(1, OneSidedOperation::kGet, 64, size_bytes), 9), ErrorCode::kOk);
    EXPECT_EQ(std::memcmp(rank(0).view().layout->answer_cells[9], there.data(), size_bytes), 0);
  }
  EXPECT_EQ(Done(0, 1), 3U);
}

TEST_F(ProgressOneSidedTest, EveryAtomicOperationOfEveryWidth) {
  struct Case {
    OneSidedOperation operation;
    uint64_t operand, compare, after;
  };
  constexpr uint64_t kBefore = 0b1100;
  constexpr Case kCases[] = {{OneSidedOperation::kFetch, 1, 0, kBefore},
                             {OneSidedOperation::kSet, 7, 0, 7},
                             {OneSidedOperation::kSwap, 8, 0, 8},
                             {OneSidedOperation::kCompareSwap, 9, kBefore, 9},
                             {OneSidedOperation::kCompareSwap, 9, 1, kBefore},
                             {OneSidedOperation::kAdd, 5, 0, kBefore + 5},
                             {OneSidedOperation::kAnd, 0b0101, 0, 0b0100},
                             {OneSidedOperation::kOr, 0b0101, 0, 0b1101},
                             {OneSidedOperation::kXor, 0b0101, 0, 0b1001}};
  Start({1, 1});
  uint64_t number = 0;
  for (const uint64_t width : {1, 2, 4, 8}) {
    for (const Case& one : kCases) {
      const uint64_t offset = 128 + 8 * (8 - width);  // so that a few bytes are not eight's lowest
      const uint64_t others = width == 8 ? 0 : uint64_t{0xabcdef00'12345678} << 8 * width;
      for (const bool is_asked : {true, false}) {
        Word(1, offset) = kBefore | others;
        Wish wish = AtomicOn(1, one.operation, offset, one.operand, one.compare);
        wish.words.width = static_cast<uint8_t>(width);
        uint64_t found = kBefore;
        if (is_asked) {
          EXPECT_EQ(Ask(0, wish, 63, &found), ErrorCode::kOk);
        } else {
          Say(0, wish);
        }
        ASSERT_TRUE(Comes(0, 1, ++number));
        EXPECT_EQ(found, kBefore);
        EXPECT_EQ(Word(1, offset), one.after | others)
            << "operation " << static_cast<int>(one.operation) << " of " << width;
      }
    }
  }
}

TEST_F(ProgressOneSidedTest, ASignalComesAfterItsData) {
  Start({1, 1});
  constexpr uint64_t kRounds = 300;
  const std::vector<std::byte> zeros(8192);
  for (uint64_t round = 1; round <= kRounds; ++round) {
    const std::vector<std::byte> data(8192, std::byte(round));
    Wish put = About(1, OneSidedOperation::kPut, 4096, data.size());
    put.words.signal =
        static_cast<uint8_t>(round % 2 == 0 ? SignalUpdate::kSet : SignalUpdate::kAdd);
    put.words.operand = round % 2 == 0 ? round : 1;
    put.words.compare = 8;
    put.command.tag = kHeapRegion;
    Say(0, put, &data);
    // Pairs with OneSidedMemory::CarryOut.
    ASSERT_TRUE(Eventually([&] { return shm::LoadAcquire(Word(1, 8)) == round; }));
    ASSERT_EQ(std::memcmp(rank(1).heap() + 4096, data.data(), data.size()), 0);
  }
  EXPECT_TRUE(Comes(0, 1, kRounds));
}

// A thread that sleeps for messages is left alone.
TEST_F(ProgressOneSidedTest, AChangeWakesARankThatRests) {
  Start({1, 1});
  shm::WakeLayout& wake = *rank(1).view().inbox.wake();
  shm::FetchAdd(wake.sleepers, 1, std::memory_order_seq_cst);
  const uint32_t sequence = shm::LoadAcquire(wake.sequence);
  Say(0, InlinePut(1, 0, 1));
  ASSERT_TRUE(Eventually([&] { return shm::LoadAcquire(wake.changes) == 1; }));
  ASSERT_TRUE(Comes(0, 1, 1));
  EXPECT_EQ(shm::LoadAcquire(wake.sequence), sequence);
  shm::FetchAdd(wake.resting, 1, std::memory_order_seq_cst);
  Say(0, InlinePut(1, 0, 2));
  EXPECT_TRUE(Eventually([&] { return shm::LoadAcquire(wake.sequence) != sequence; }));
  EXPECT_EQ(shm::LoadAcquire(wake.changes), 2U);
  ASSERT_TRUE(Comes(0, 1, 2));
}

TEST_F(ProgressOneSidedTest, OperationsOfOneRankKeepTheirOrder) {
  Start({1, 1});
  constexpr uint64_t kWords = 20'000;
  uint64_t seen = 0;
  for (uint64_t i = 1; i <= kWords; ++i) {
    Say(0, InlinePut(1, 8 * i, i));
    Say(0, InlinePut(1, 0, i));
    // Whatever the counter says is there.
    const uint64_t now = shm::LoadAcquire(Word(1, 0));
    ASSERT_GE(now, seen);
    ASSERT_TRUE(now == 0 || Word(1, 8 * now) == now);
    seen = now;
  }
  ASSERT_TRUE(Comes(0, 1, 2 * kWords));
  EXPECT_EQ(Word(1, 0), kWords);
  ExpectNothingLeft();
}

TEST_F(ProgressOneSidedTest, AtomicOperationsOfAllNodesAddUp) {
  Start({2, 2});
  constexpr uint64_t kTimes = 2000;
  for (uint64_t i = 0; i < kTimes; ++i) {
    for (const uint32_t from : {2U, 3U}) {
      Say(from, AtomicOn(0, OneSidedOperation::kAdd, 0, 1));
    }
    shm::FetchAdd(Word(0, 0), 1, std::memory_order_relaxed);  // a rank of the node, by its CPU
  }
  ASSERT_TRUE(Comes(2, 0, kTimes));
  ASSERT_TRUE(Comes(3, 0, kTimes));
  EXPECT_EQ(shm::LoadAcquire(Word(0, 0)), 3 * kTimes);
}

TEST_F(ProgressOneSidedTest, WhatIsOutsideItsRegionFailsByNameAndChangesNothing) {
  Start({1, 1});
  const std::vector<std::byte> data = Pattern(64, 1);
  Wish beyond = About(1, OneSidedOperation::kPut, kHeapBytes - 63, data.size());
  Say(0, beyond, &data);
  EXPECT_EQ(ExpectFailure(0, 1, 1, 1, ErrorCode::kInvalidBuffer), 1U);
  EXPECT_EQ(rank(1).heap()[kHeapBytes - 1], std::byte{});

  Wish far_beyond = InlinePut(1, UINT64_MAX - 3, 1);
  EXPECT_EQ(Ask(0, About(1, OneSidedOperation::kGet, UINT64_MAX - 3, 8), 0),
            ErrorCode::kInvalidBuffer);
  Say(0, far_beyond);
  Wish unknown = InlinePut(1, 0, 1);
  unknown.command.context = 77;
  Say(0, unknown);
  // The signal is looked at before the data are stored.
  Wish no_signal = About(1, OneSidedOperation::kPut, 0, data.size());
  no_signal.words.signal = static_cast<uint8_t>(SignalUpdate::kSet);
  no_signal.words.compare = kHeapBytes;
  no_signal.command.tag = kHeapRegion;
  Say(0, no_signal, &data);
  EXPECT_EQ(ExpectFailure(0, 1, 5, 5, ErrorCode::kInvalidBuffer), 4U);
  EXPECT_EQ(Word(1, 0), 0U);

  EXPECT_EQ(Ask(0, AtomicOn(1, OneSidedOperation::kAdd, 4, 1), 0), ErrorCode::kInvalidArgument);
  Say(0, InlinePut(1, 0, 12));  // and the rank goes on
  ASSERT_TRUE(Comes(0, 1, 7));
  EXPECT_EQ(Word(1, 0), 12U);
  EXPECT_EQ(Failures(0).size(), 4U);  // an answer tells its error alone
}

TEST_F(ProgressOneSidedTest, OnlyStreamsReachDeviceMemory) {
  if (in_own_home) {
    GTEST_SKIP() << "devices are left to ferryd";
  }
  UseDevices(1000, 1000);
  Start({1, 1});
  Wish put = InlinePut(1, 0, 1);
  put.command.context = kDeviceRegion;
  Say(0, put);
  EXPECT_EQ(ExpectFailure(0, 1, 1, 1, ErrorCode::kUnsupported), 1U);
}

TEST_F(ProgressOneSidedTest, ARankThatDiesEndsWhatIsUnderWayWithIt) {
  GiveFaults(1, "send.one_sided_done:1:stall");
  Start({1, 2});
  for (int i = 0; i < 10; ++i) {
    Say(0, InlinePut(1, 0, 1));
  }
  Wish get = About(1, OneSidedOperation::kGet, 0, 8);
  get.words.answer = 5;
  get.words.serial = 1;
  Say(0, get);
  plane(0).RankEnded(kJob, 1, ErrorCode::kPeerDied);
  EXPECT_EQ(ExpectFailure(0, 1, 1, 11, ErrorCode::kPeerDied), 1U);
  const shm::AnswerLayout& answer = rank(0).view().layout->answers[5];
  EXPECT_EQ(shm::LoadAcquire(answer.serial), 1U);
  EXPECT_EQ(static_cast<ErrorCode>(answer.error), ErrorCode::kPeerDied);
  Say(0, InlinePut(1, 0, 1));  // from now on they fail at once
  EXPECT_EQ(ExpectFailure(0, 1, 12, 12, ErrorCode::kPeerDied), 2U);
  EXPECT_EQ(Done(0, 2), 0U);  // the other rank of that node is not concerned
}

TEST_F(ProgressOneSidedTest, ARankThatHasDiedThereAnswersWithItsDeath) {
  Start({1, 2});
  plane(1).RankEnded(kJob, 1, ErrorCode::kPeerDied);  // node 0 may not have heard of it yet
  uint64_t value = 0;
  EXPECT_EQ(Ask(0, AtomicOn(1, OneSidedOperation::kAdd, 0, 1), 0, &value), ErrorCode::kPeerDied);
  Say(0, InlinePut(2, 0, 9));
  ASSERT_TRUE(Comes(0, 2, 1));
  EXPECT_EQ(Word(2, 0), 9U);
}

TEST_F(ProgressOneSidedTest, ACutLinkEndsWhatIsUnderWayAndTheNextLifeCarriesOn) {
  GiveFaults(1, "send.one_sided_done:2:stall");
  Start({1, 1});
  Say(0, InlinePut(1, 0, 1));
  ASSERT_TRUE(Comes(0, 1, 1));
  Say(0, InlinePut(1, 0, 2));
  Say(0, InlinePut(1, 0, 3));
  Cut();
  EXPECT_EQ(ExpectFailure(0, 1, 2, 3, ErrorCode::kLinkDown), 1U);
  ASSERT_NO_FATAL_FAILURE(Reconnect(1));
  ReturnNodes();
  Say(0, InlinePut(1, 0, 4));
  ASSERT_TRUE(Comes(0, 1, 4));
  EXPECT_EQ(Failures(0).size(), 1U);
  EXPECT_EQ(Word(1, 0), 4U);
}

TEST_F(ProgressOneSidedTest, ACommandThatNoRankWritesEndsIt) {
  const auto wrong = [&](auto&& spoil, const std::string& words) {
    Start({1, 1});
    Wish wish = About(1, OneSidedOperation::kGet, 0, 8);
    wish.words.answer = 0;
    spoil(wish);
    ExpectViolation(0, wish, words);
    Stop();
    told_.violations.clear();
  };
  const std::string text = "a one-sided operation ";
  wrong([](Wish& wish) { wish.words.operation = shm::kOneSidedOperations; }, text + "14");
  wrong([](Wish& wish) { wish.words.operation = 0; }, text + "0");
  wrong([](Wish& wish) { wish.command.size_bytes = shm::kCellBytes + 1; }, "of 8193 bytes");
  wrong([](Wish& wish) { wish.words.answer = shm::kAnswers; }, "answer 64");
  wrong([](Wish& wish) { wish.words.answer = shm::kNoAnswer; }, "answer 65535");
  wrong(
      [](Wish& wish) {  // and no cell that says where the bytes lie
        wish.words.operation = static_cast<uint8_t>(OneSidedOperation::kLongGet);
      },
      text + "12");
  wrong([](Wish& wish) { wish.words.signal = 1; }, "signal 1");
  wrong([](Wish& wish) { wish.command.tag = -1; }, text);
  wrong(
      [](Wish& wish) {
        wish.words.operation = static_cast<uint8_t>(OneSidedOperation::kAdd);
        wish.command.size_bytes = 0;
        wish.words.width = 3;
      },
      "width 3");
  wrong(
      [](Wish& wish) {
        wish.words.operation = static_cast<uint8_t>(OneSidedOperation::kPut);
        wish.words.answer = shm::kNoAnswer;
        wish.command.size_bytes = shm::kInlinePutBytes + 1;  // and no cell
      },
      "of 17 bytes");
  wrong(
      [](Wish& wish) {
        wish.words.operation = static_cast<uint8_t>(OneSidedOperation::kPut);
        wish.words.answer = shm::kNoAnswer;
        wish.command.flags = shm::kFlagCell;
        wish.command.cell = shm::kLaneCells;
      },
      text + "1");
  wrong([](Wish& wish) { wish.command.destination = 0; }, "which is on no other node");
}

TEST_F(ProgressOneSidedTest, TwoOperationsCannotWantOneAnswer) {
  GiveFaults(1, "send.one_sided_done:1:stall");
  Start({1, 1});
  Wish get = About(1, OneSidedOperation::kGet, 0, 8);
  get.words.answer = 3;
  Say(0, get);
  ExpectViolation(0, get, "two one-sided operations want answer 3");
}

// ---- Long ones ----------------------------------------------------------------------------------

class LongOneSidedTest : public ProgressOneSidedTest {
 protected:
  static constexpr uint64_t kThere = 4096;  // in the heap of the other rank, or its device memory

  // A command whose bytes lie at `here`; the answer comes into place 7.
  void SayLong(uint32_t from, const Wish& asked, const shm::Location& here) {
    Wish wish = asked;
    wish.words.answer = 7;
    wish.words.serial = ++serial_;
    std::vector<std::byte> cell(sizeof(here));
    std::memcpy(cell.data(), &here, sizeof(here));
    Say(from, wish, &cell);
  }
  // The error of the last one.
  ErrorCode LongEnd(uint32_t of_rank) {
    const shm::AnswerLayout& answer = rank(of_rank).view().layout->answers[7];
    EXPECT_TRUE(Eventually([&] { return shm::LoadAcquire(answer.serial) == serial_; }));
    return static_cast<ErrorCode>(answer.error);
  }
  ErrorCode DoLong(uint32_t from, const Wish& wish, const shm::Location& here) {
    SayLong(from, wish, here);
    return LongEnd(from);
  }

  uint16_t serial_ = 0;
};

TEST_F(LongOneSidedTest, MovesBytesOfAllSizesFromAndToMemoryOfAllKinds) {
  if (in_own_home) {
    GTEST_SKIP() << "devices are left to ferryd";
  }
  UseDevices(100'000, 100'000);
  Start({1, 1});
  const std::vector<std::byte> pattern = Pattern(3 << 20, 8);
  for (const uint64_t size_bytes :
       {uint64_t{1}, uint64_t{64 << 10}, uint64_t{70'001}, uint64_t{3 << 20}}) {
    for (const bool device_there : {false, true}) {
      std::byte* const there = (device_there ? rank(1).device() : rank(1).heap()) + kThere;
      std::vector<std::byte> own(size_bytes);
      const struct {
        shm::Location where;
        std::byte* bytes;
      } heres[] = {{InHeap(64), rank(0).heap() + 64},
                   {Private(own.data()), own.data()},
                   {InDevice(128), rank(0).device() + 128}};
      for (const auto& here : heres) {
        SCOPED_TRACE(std::to_string(size_bytes) + " bytes, region " +
                     std::to_string(here.where.region) + (device_there ? ", to a device" : ""));
        Wish put = About(1, OneSidedOperation::kLongPut, kThere, size_bytes);
        put.command.context = device_there ? kDeviceRegion : kHeapRegion;
        put.words.signal = static_cast<uint8_t>(SignalUpdate::kAdd);
        put.words.operand = 5;
        put.command.tag = kHeapRegion;
        Word(1, 0) = 0;
        std::memset(there, 0, size_bytes);
        std::memcpy(here.bytes, pattern.data(), size_bytes);
        ASSERT_EQ(DoLong(0, put, here.where), ErrorCode::kOk);
        EXPECT_EQ(shm::LoadAcquire(Word(1, 0)), 5U);
        EXPECT_EQ(std::memcmp(there, pattern.data(), size_bytes), 0);

        std::memset(here.bytes, 0, size_bytes);
        Wish get = About(1, OneSidedOperation::kLongGet, kThere, size_bytes);
        get.command.context = put.command.context;
        ASSERT_EQ(DoLong(0, get, here.where), ErrorCode::kOk);
        EXPECT_EQ(std::memcmp(here.bytes, pattern.data(), size_bytes), 0);
      }
    }
  }
  EXPECT_EQ(Done(0, 1), 0U);  // they have no numbers
  ExpectNothingLeft();
}

// As those of a put.
TEST_F(LongOneSidedTest, FewBytesOfAGetComeWithTheirRts) {
  Start({1, 1});
  const std::vector<std::byte> pattern = Pattern(64 << 10, 8);
  std::memcpy(rank(1).heap() + kThere, pattern.data(), pattern.size());
  const uint64_t reads = plane(0).Nic().reads;
  for (int i = 0; i < 40; ++i) {  // more than may be on their way at a time
    std::memset(rank(0).heap() + 64, 0, pattern.size());
    ASSERT_EQ(DoLong(0, About(1, OneSidedOperation::kLongGet, kThere, pattern.size()), InHeap(64)),
              ErrorCode::kOk);
    EXPECT_EQ(std::memcmp(rank(0).heap() + 64, pattern.data(), pattern.size()), 0);
  }
  EXPECT_EQ(plane(0).Nic().reads, reads) << "they were fetched";
  ExpectNothingLeft();
}

TEST_F(LongOneSidedTest, WhatIsOutsideItsRegionFailsByName) {
  Start({1, 1});
  constexpr uint64_t kBytes = 100'000;
  const auto both = [&](uint64_t offset, uint32_t region, const shm::Location& here,
                        ErrorCode error) {
    for (const OneSidedOperation operation :
         {OneSidedOperation::kLongPut, OneSidedOperation::kLongGet}) {
      Wish wish = About(1, operation, offset, kBytes);
      wish.command.context = region;
      EXPECT_EQ(DoLong(0, wish, here), error);
    }
  };
  both(kHeapBytes - kBytes + 1, kHeapRegion, InHeap(0), ErrorCode::kInvalidBuffer);
  both(0, 77, InHeap(0), ErrorCode::kInvalidBuffer);
  both(0, kHeapRegion, InHeap(kHeapBytes - kBytes + 1), ErrorCode::kInvalidBuffer);
  both(0, kHeapRegion, {88, 0, 0}, ErrorCode::kInvalidBuffer);
  Wish put = About(1, OneSidedOperation::kLongPut, 0, kBytes);
  put.words.signal = static_cast<uint8_t>(SignalUpdate::kSet);
  put.words.compare = 4;
  put.command.tag = kHeapRegion;
  std::memset(rank(0).heap(), 1, kBytes);
  EXPECT_EQ(DoLong(0, put, InHeap(0)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Word(1, 0), 0U);  // nothing was changed
  both(0, kHeapRegion, InHeap(0), ErrorCode::kOk);
  ExpectNothingLeft();
}

// The bytes are held back by a slow NIC when the other rank dies.
TEST_F(LongOneSidedTest, ARankThatDiesEndsWhatIsOnItsWay) {
  for (const OneSidedOperation operation :
       {OneSidedOperation::kLongPut, OneSidedOperation::kLongGet}) {
    Start({1, 1});
    serial_ = 0;
    const uint32_t reader = operation == OneSidedOperation::kLongPut ? 1 : 0;
    gate(reader).closed = true;
    SayLong(0, About(1, operation, 0, 1 << 20), InHeap(0));
    ASSERT_TRUE(Eventually([&] { return gate(reader).held != 0; }));
    plane(0).RankEnded(kJob, 1, ErrorCode::kPeerDied);
    (void)plane(0).Inspect(kJob, 0);  // it has heard of it
    gate(reader).closed = false;
    EXPECT_EQ(LongEnd(0), ErrorCode::kPeerDied);
    Stop();
  }
}

TEST_F(LongOneSidedTest, ACutLinkEndsThem) {
  for (const OneSidedOperation operation :
       {OneSidedOperation::kLongPut, OneSidedOperation::kLongGet}) {
    Start({1, 1});
    serial_ = 0;
    const uint32_t reader = operation == OneSidedOperation::kLongPut ? 1 : 0;
    gate(reader).closed = true;
    SayLong(0, About(1, operation, 0, 1 << 20), InHeap(0));
    ASSERT_TRUE(Eventually([&] { return gate(reader).held != 0; }));
    Cut();
    gate(reader).closed = false;
    EXPECT_EQ(LongEnd(0), ErrorCode::kLinkDown);
    ASSERT_NO_FATAL_FAILURE(Reconnect(1));
    ReturnNodes();
    EXPECT_EQ(DoLong(0, About(1, operation, 0, 1 << 20), InHeap(0)), ErrorCode::kOk);
    Stop();
  }
}

// A get waits until the memory is pinned there; then its region goes.
TEST_F(LongOneSidedTest, ARegionThatGoesAnswersTheGetsThatWaitForIt) {
  if (in_own_home) {
    GTEST_SKIP() << "nothing is pinned there";
  }
  Start({1, 1});
  gate(1).pins_slowly = true;
  SayLong(0, About(1, OneSidedOperation::kLongGet, 0, 1 << 20), InHeap(0));
  ASSERT_TRUE(Eventually([&] { return gate(1).pinning != 0; }));
  std::thread remove([&] { RemoveRank(1); });
  EXPECT_NE(LongEnd(0), ErrorCode::kOk);
  gate(1).PinAtOnce();
  remove.join();
}

}  // namespace
}  // namespace ferry::daemon

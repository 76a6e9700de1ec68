// One-sided operations between nodes: what a rank's daemon passes on, what the other one carries
// out, and what comes back. The test pushes the commands that the client library would.
#include <cstring>
#include <string>
#include <thread>

#include "daemon/wire/wire.h"
#include "shm/atomic.h"
#include "shm/layout/one_sided_layout.h"
#include "tests/daemon/forged_packets.h"
#include "tests/daemon/progress_fixture.h"

namespace ferry::daemon {
namespace {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::OneSidedCommand;
using shm::OneSidedOperation;
using shm::SignalUpdate;

class ProgressOneSidedTest : public PlaneTest {
 protected:
  // A command about the heap of `to`. The test says the rest.
  struct Wish {
    Descriptor command{};
    OneSidedCommand words{};
  };
  static Wish About(uint32_t to, OneSidedOperation operation, uint64_t offset,
                    uint64_t size_bytes = 0) {
    Wish wish;
    wish.command.kind = static_cast<uint8_t>(DescriptorKind::kOneSided);
    wish.command.destination = to;
    wish.command.context = kHeapRegion;
    wish.command.size_bytes = size_bytes;
    wish.words.operation = static_cast<uint8_t>(operation);
    wish.words.width = 8;
    wish.words.answer = shm::kNoAnswer;
    wish.words.offset = offset;
    return wish;
  }
  static Wish InlinePut(uint32_t to, uint64_t offset, uint64_t value) {
    Wish wish = About(to, OneSidedOperation::kPut, offset, sizeof(value));
    wish.words.operand = value;
    return wish;
  }
  static Wish AtomicOn(uint32_t to, OneSidedOperation operation, uint64_t offset, uint64_t operand,
                       uint64_t compare = 0) {
    Wish wish = About(to, operation, offset);
    wish.words.operand = operand;
    wish.words.compare = compare;
    return wish;
  }

  void Say(uint32_t from, Wish wish, const std::vector<std::byte>* data = nullptr) {
    shm::LaneProducer producer(&rank(from).session().layout()->to_daemon);
    ASSERT_TRUE(Eventually([&] { return producer.HasRoom(); }));
    if (data != nullptr) {
      uint32_t cell = shm::kNoCell;
      ASSERT_TRUE(Eventually([&] { return (cell = producer.TryTakeCell()) != shm::kNoCell; }));
      std::memcpy(producer.Cell(cell), data->data(), data->size());
      wish.command.flags = shm::kFlagCell;
      wish.command.cell = static_cast<uint16_t>(cell);
    }
    std::memcpy(wish.command.payload, &wish.words, sizeof(wish.words));
    rank(from).PushToDaemon(wish.command);
  }

  shm::OneSidedWords& Words(uint32_t of_rank, uint32_t peer) {
    return rank(of_rank).view().layout->one_sided[peer];
  }
  uint64_t Done(uint32_t of_rank, uint32_t peer) {
    return shm::LoadAcquire(Words(of_rank, peer).done);
  }
  bool Comes(uint32_t of_rank, uint32_t peer, uint64_t number) {
    return Eventually([&] { return Done(of_rank, peer) >= number; });
  }
  // Says it, waits for the answer in that place, and returns its error.
  ErrorCode Ask(uint32_t from, Wish wish, uint16_t answer, uint64_t* value = nullptr) {
    shm::AnswerLayout& words = rank(from).view().layout->answers[answer];
    wish.words.answer = answer;
    wish.words.serial = static_cast<uint16_t>(shm::LoadAcquire(words.serial) + 1);
    Say(from, wish);
    EXPECT_TRUE(Eventually([&] { return shm::LoadAcquire(words.serial) == wish.words.serial; }));
    if (value != nullptr) {
      *value = words.value;
    }
    return static_cast<ErrorCode>(words.error);
  }
  uint64_t& Word(uint32_t of_rank, uint64_t offset) {
    return *reinterpret_cast<uint64_t*>(rank(of_rank).heap() + offset);
  }
  // The error of the operation with that number, the only one that failed.
  void ExpectOneFailure(uint32_t of_rank, uint32_t peer, uint64_t number, ErrorCode error) {
    ASSERT_TRUE(Comes(of_rank, peer, number));
    const shm::OneSidedWords& words = Words(of_rank, peer);
    EXPECT_EQ(static_cast<ErrorCode>(words.error), error);
    EXPECT_EQ(words.first_failed, number);
    EXPECT_EQ(words.last_failed, number);
  }
  void ExpectViolation(uint32_t of_rank, const Wish& wish, const std::string& words) {
    Say(of_rank, wish);
    ASSERT_TRUE(Eventually([&] { return !told_.Get(&Told::violations).empty(); }));
    EXPECT_NE(told_.Get(&Told::violations).front().find(words), std::string::npos)
        << told_.Get(&Told::violations).front();
  }
};

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
  EXPECT_EQ(Words(0, 1).last_failed, 0U);
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

TEST_F(ProgressOneSidedTest, EveryAtomicOperationOfBothWidths) {
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
  for (const uint64_t width : {4, 8}) {
    for (const Case& one : kCases) {
      const uint64_t offset =
          128 + 4 * (8 - width);  // so that four bytes are not eight's lower half
      const uint64_t others = width == 4 ? 0xabcdef00'00000000 : 0;
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
    // Pairs with OneSided::CarryOut.
    ASSERT_TRUE(Eventually([&] { return shm::LoadAcquire(Word(1, 8)) == round; }));
    ASSERT_EQ(std::memcmp(rank(1).heap() + 4096, data.data(), data.size()), 0);
  }
  EXPECT_TRUE(Comes(0, 1, kRounds));
}

// Who sleeps for messages is left alone.
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
  ExpectOneFailure(0, 1, 1, ErrorCode::kInvalidBuffer);
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
  ASSERT_TRUE(Comes(0, 1, 5));
  EXPECT_EQ(static_cast<ErrorCode>(Words(0, 1).error), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(Words(0, 1).first_failed, 1U);
  EXPECT_EQ(Words(0, 1).last_failed, 5U);
  EXPECT_EQ(Word(1, 0), 0U);

  EXPECT_EQ(Ask(0, AtomicOn(1, OneSidedOperation::kAdd, 4, 1), 0), ErrorCode::kInvalidArgument);
  Say(0, InlinePut(1, 0, 12));  // and the rank goes on
  ASSERT_TRUE(Comes(0, 1, 7));
  EXPECT_EQ(Word(1, 0), 12U);
  EXPECT_EQ(Words(0, 1).last_failed, 5U);  // an answer tells its error alone
}

TEST_F(ProgressOneSidedTest, OnlyStreamsReachDeviceMemory) {
  UseDevices(1000, 1000);
  Start({1, 1});
  Wish put = InlinePut(1, 0, 1);
  put.command.context = kDeviceRegion;
  Say(0, put);
  ExpectOneFailure(0, 1, 1, ErrorCode::kUnsupported);
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
  ASSERT_TRUE(Comes(0, 1, 11));
  EXPECT_EQ(static_cast<ErrorCode>(Words(0, 1).error), ErrorCode::kPeerDied);
  EXPECT_EQ(Words(0, 1).first_failed, 1U);
  EXPECT_EQ(Words(0, 1).last_failed, 11U);
  const shm::AnswerLayout& answer = rank(0).view().layout->answers[5];
  EXPECT_EQ(shm::LoadAcquire(answer.serial), 1U);
  EXPECT_EQ(static_cast<ErrorCode>(answer.error), ErrorCode::kPeerDied);
  Say(0, InlinePut(1, 0, 1));  // from now on they fail at once
  ASSERT_TRUE(Comes(0, 1, 12));
  EXPECT_EQ(Words(0, 1).last_failed, 12U);
  EXPECT_EQ(Done(0, 2), 0U);  // the other rank of that node is not concerned
}

TEST_F(ProgressOneSidedTest, ARankThatHasDiedThereAnswersWithItsDeath) {
  Start({1, 2});
  plane(1).RankEnded(kJob, 1, ErrorCode::kPeerDied);  // node 0 has not heard of it yet
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
  ASSERT_TRUE(Comes(0, 1, 3));
  EXPECT_EQ(static_cast<ErrorCode>(Words(0, 1).error), ErrorCode::kLinkDown);
  EXPECT_EQ(Words(0, 1).first_failed, 2U);
  EXPECT_EQ(Words(0, 1).last_failed, 3U);
  ASSERT_NO_FATAL_FAILURE(Reconnect(1));
  ReturnNodes();
  Say(0, InlinePut(1, 0, 4));
  ASSERT_TRUE(Comes(0, 1, 4));
  EXPECT_EQ(Words(0, 1).last_failed, 3U);
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
  wrong([](Wish& wish) { wish.words.operation = shm::kOneSidedOperations; }, text + "13");
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
        wish.words.width = 2;
      },
      "width 2");
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
  void SayLong(uint32_t from, Wish wish, const shm::Location& here) {
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
  Start({1, 1});
  gate(1).pins_slowly = true;
  SayLong(0, About(1, OneSidedOperation::kLongGet, 0, 1 << 20), InHeap(0));
  ASSERT_TRUE(Eventually([&] { return gate(1).pinning != 0; }));
  std::thread remove([&] { RemoveRank(1); });
  EXPECT_NE(LongEnd(0), ErrorCode::kOk);
  gate(1).PinAtOnce();
  remove.join();
}

// What another daemon says is looked at before it is believed.
TEST_F(ProgressOneSidedTest, WrongPacketsAreDroppedAndChangeNothing) {
  Start({1, 1});
  uint64_t errors = plane(1).Nic().errors;
  const auto say = [&](PacketKind kind, const auto& body, uint64_t size_bytes, int32_t tag = 0) {
    PacketHeader header = ForgedHeader(0, 1, kind);
    header.source = 0;
    header.destination = 1;
    header.context = kHeapRegion;
    header.tag = tag;
    header.size_bytes = size_bytes;
    header.body_bytes = sizeof(body);
    SayAsStranger(plane(1), header, BytesOf(body));
  };
  const WireOneSided put{1, static_cast<uint8_t>(OneSidedOperation::kPut), 0, 8, 0, 0, 0, 1, 1};
  const auto expect_dropped = [&] {
    EXPECT_TRUE(Eventually([&] { return plane(1).Nic().errors == errors + 1; }));
    ++errors;
  };
  say(PacketKind::kOneSided, uint32_t{7}, 0);
  expect_dropped();
  say(PacketKind::kOneSidedDone, uint32_t{7}, 0);
  expect_dropped();
  say(PacketKind::kOneSided, put, 17);  // and no data
  expect_dropped();
  say(PacketKind::kOneSided, put, 8, /*tag=*/-1);
  expect_dropped();
  WireOneSided unknown = put;
  unknown.operation = 200;
  say(PacketKind::kOneSided, unknown, 8);
  expect_dropped();
  WireOneSided of_no_stream = put;
  of_no_stream.stream = kOneSidedStreams;
  say(PacketKind::kOneSided, of_no_stream, 8);
  expect_dropped();
  say(PacketKind::kOneSidedDone, WireOneSidedDone{5, 0, 0, kOneSidedStreams}, 0);
  expect_dropped();
  WireOneSided narrow = put;
  narrow.operation = static_cast<uint8_t>(OneSidedOperation::kAdd);
  narrow.width = 3;
  say(PacketKind::kOneSided, narrow, 0);
  expect_dropped();
  EXPECT_EQ(Word(1, 0), 0U);
  // About operations that rank 1 has not begun.
  say(PacketKind::kOneSidedDone, WireOneSidedDone{5, 0, 0, 0}, 0);
  say(PacketKind::kOneSidedDone, WireOneSidedDone{5, 0, 0, 1}, 0);
  EXPECT_EQ(Done(1, 0), 0U);
  EXPECT_TRUE(told_.Get(&Told::failed_jobs).empty());
}

}  // namespace
}  // namespace ferry::daemon

// Operations in the memory of the rank at the other end of a direct link: the cores of the two
// carry them out by themselves.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>
#include <string_view>
#include <thread>
#include <vector>

#include "shm/accumulate.h"
#include "shm/atomic.h"
#include "shm/layout/one_sided_layout.h"
#include "tests/client/direct/links_fixture.h"

namespace ferry::client {
namespace {

using shm::OneSidedOperation;

class LinkOneSidedTest : public LinksTest {
 protected:
  struct Wish {
    shm::Descriptor command{};
    shm::OneSidedCommand words{};
  };

  void SetUp() override { ASSERT_NO_FATAL_FAILURE(StartLinked()); }

  // Of rank 0 in memory of rank 1; the test says the rest.
  static Wish About(OneSidedOperation operation, uint64_t offset, uint64_t size_bytes = 0,
                    uint32_t region = kHeapRegion) {
    Wish wish;
    wish.command.kind = static_cast<uint8_t>(shm::DescriptorKind::kOneSided);
    wish.command.destination = 1;
    wish.command.context = region;
    wish.command.size_bytes = size_bytes;
    wish.words.operation = static_cast<uint8_t>(operation);
    wish.words.width = 8;
    wish.words.answer = shm::kNoAnswer;
    wish.words.offset = offset;
    return wish;
  }
  static Wish InlinePut(uint64_t offset, uint64_t value, uint32_t region = kHeapRegion) {
    Wish wish = About(OneSidedOperation::kPut, offset, sizeof(value), region);
    wish.words.operand = value;
    return wish;
  }
  void Say(const Wish& asked, const void* cell_data = nullptr, size_t cell_bytes = 0) {
    Wish wish = asked;
    rank(0).UnderLease([&] {
      engine::RankEngine& engine = rank(0).engine();
      if (cell_data != nullptr) {
        const uint32_t cell = engine.sends().TryTakeCommandCell(engine::Core::kLink);
        ASSERT_NE(cell, shm::kNoCell);
        std::memcpy(engine.sends().CellBytes(1, cell), cell_data, cell_bytes);
        wish.command.flags = shm::kFlagCell;
        wish.command.cell = static_cast<uint16_t>(cell);
      }
      std::memcpy(wish.command.payload, &wish.words, sizeof(wish.words));
      ASSERT_TRUE(engine.sends().TryCommand(engine::Core::kLink, wish.command));
    });
  }
  uint64_t Done() { return shm::LoadAcquire(rank(0).view().by_rank.one_sided[1].done); }
  bool Comes(uint64_t number) {
    return Meanwhile([&] { return Done() >= number; });
  }
  // The wish, with its answer in that place.
  Wish Answered(const Wish& asked, uint16_t place) {
    Wish wish = asked;
    wish.words.answer = place;
    wish.words.serial =
        static_cast<uint16_t>(shm::LoadAcquire(rank(0).view().layout->answers[place].serial) + 1);
    return wish;
  }
  // Says it, and waits for the answer in that place. Its error.
  ErrorCode Ask(const Wish& asked, uint16_t place, const void* cell_data = nullptr,
                size_t cell_bytes = 0) {
    const Wish wish = Answered(asked, place);
    const shm::AnswerLayout& answer = rank(0).view().layout->answers[place];
    Say(wish, cell_data, cell_bytes);
    EXPECT_TRUE(Meanwhile([&] { return shm::LoadAcquire(answer.serial) == wish.words.serial; }));
    return static_cast<ErrorCode>(answer.error);
  }
  ErrorCode AskLong(OneSidedOperation operation, uint64_t offset, const shm::Location& here,
                    uint64_t size_bytes) {
    return Ask(About(operation, offset, size_bytes), 3, &here, sizeof(here));
  }
  uint64_t& Word(uint64_t offset) { return *reinterpret_cast<uint64_t*>(rank(1).heap() + offset); }
  // The failures that rank 0 was told of by its own core.
  std::vector<shm::OneSidedFailure> Failures() {
    const shm::OneSidedFailures& told = rank(0).view().layout->failures[1];
    EXPECT_EQ(rank(0).view().layout->failures[0].count, 0U) << "ferryd's";
    const uint64_t count = shm::LoadAcquire(told.count);
    return {told.entries, told.entries + std::min<uint64_t>(count, shm::kFailures)};
  }
  void ExpectFailure(const Wish& wish, ErrorCode error) {
    const uint64_t number = Done() + 1;
    Say(wish);
    ASSERT_TRUE(Comes(number));
    const std::vector<shm::OneSidedFailure> failures = Failures();
    ASSERT_FALSE(failures.empty());
    EXPECT_EQ(failures.back().last, number);
    EXPECT_EQ(failures.back().peer, 1U);
    EXPECT_EQ(static_cast<ErrorCode>(failures.back().error), error);
  }
};

TEST_F(LinkOneSidedTest, PutsOfAllSmallSizesAndASignal) {
  Say(InlinePut(64, 0x1122334455667788));
  ASSERT_TRUE(Comes(1));
  EXPECT_EQ(Word(64), 0x1122334455667788U);
  for (const uint64_t size : {17ULL, 1000ULL, 8192ULL}) {
    const std::vector<std::byte> data = Pattern(size, 1);
    Wish put = About(OneSidedOperation::kPut, 4096, size);
    put.words.signal = static_cast<uint8_t>(shm::SignalUpdate::kAdd);
    put.words.operand = 5;
    put.words.compare = 8;
    put.command.tag = kHeapRegion;
    const uint64_t before = Word(8);
    Say(put, data.data(), size);
    ASSERT_TRUE(Meanwhile([&] { return shm::LoadAcquire(Word(8)) == before + 5; }));
    EXPECT_EQ(std::memcmp(rank(1).heap() + 4096, data.data(), size), 0) << size;
  }
  ASSERT_TRUE(Comes(4));
  EXPECT_TRUE(Failures().empty());
  ExpectIdle(0, 1);
}

// The target of a long put frees the memory while it reads the data from the rank that puts, so the
// put is under way for as long as that rank does nothing.
class FreedTargetTest : public LinkOneSidedTest {
 protected:
  static constexpr uint64_t kBytes = 12 << 20;  // more than a socket holds

  void SetUp() override {
    if (link_provider != std::string_view("ferry-tcp")) {
      GTEST_SKIP() << "libfabric takes no read back (docs/known_limits.md)";
    }
    ASSERT_NO_FATAL_FAILURE(StartLinked());
    std::memset(rank(1).heap(), 0, kHeapBytes);
    std::memset(rank(0).heap(), 0x11, kBytes);
    const shm::Location here = InHeap(0);
    put_ = Answered(About(OneSidedOperation::kLongPut, 64, kBytes), 3);
    Say(put_, &here, sizeof(here));
  }
  // The memory must then remain as it is, however late that rank goes on.
  void ExpectNoMoreIsWrittenAfter(const HostRegion& freed) {
    rank(1).UnderLease([&] { rank(1).links().ForgetRegion(freed); });
    std::memset(rank(1).heap(), 0x5a, kHeapBytes);
    const shm::AnswerLayout& answer = rank(0).view().layout->answers[3];
    EXPECT_TRUE(Meanwhile([&] {
      return !rank(0).losses().empty() || shm::LoadAcquire(answer.serial) == put_.words.serial;
    }));
    const std::vector<std::byte> left(kHeapBytes, std::byte{0x5a});
    EXPECT_EQ(std::memcmp(rank(1).heap(), left.data(), left.size()), 0);
    ASSERT_EQ(rank(1).losses().size(), 1U);
    EXPECT_THAT(rank(1).losses()[0].text, testing::HasSubstr("freed"));
    EXPECT_TRUE(rank(1).links().IsIdle(0));
  }

  Wish put_;
};

TEST_F(FreedTargetTest, IsNotWrittenByAPutWhoseDataHasNotCome) {
  ASSERT_TRUE(Eventually([&] {
    if (rank(1).links().IsIdle(0)) {
      rank(0).ProgressLinks();  // until the put has been announced
    }
    rank(1).ProgressLinks();
    return !rank(1).links().IsIdle(0);
  }));
  ASSERT_EQ(rank(1).heap()[64], std::byte{0});
  ExpectNoMoreIsWrittenAfter({rank(1).heap(), kHeapBytes});
}

TEST_F(FreedTargetTest, IsNotWrittenByAPutWhoseDataHasHalfCome) {
  const auto has_begun = [&] { return rank(1).heap()[64] == std::byte{0x11}; };
  ASSERT_TRUE(Eventually([&] {
    if (!has_begun()) {
      rank(0).ProgressLinks();
      rank(1).ProgressLinks();
    }
    return has_begun();
  }));
  ASSERT_EQ(rank(1).heap()[64 + kBytes - 1], std::byte{0}) << "all of the data has come at once";
  rank(0).ProgressLinks();  // more of it lies in the sockets then
  ExpectNoMoreIsWrittenAfter({rank(1).heap() + 64 + kBytes - 1, 1});
}

TEST_F(LinkOneSidedTest, MemoryThatGoesCostsNoLinkWithoutSuchAPut) {
  const std::vector<std::byte> data = Pattern(1 << 20, 3);
  EXPECT_EQ(AskLong(OneSidedOperation::kLongPut, 64, Private(data.data()), data.size()),
            ErrorCode::kOk);
  rank(1).UnderLease([&] { rank(1).links().ForgetRegion({rank(1).heap(), kHeapBytes}); });
  EXPECT_TRUE(rank(1).losses().empty());
  Carry(0, 1);
  ExpectIdle(0, 1);
}

// A rank that rests until its memory changes is woken.
TEST_F(LinkOneSidedTest, TheRankIsToldThatItsMemoryHasChanged) {
  const uint32_t changes = rank(1).view().inbox.wake()->changes;
  Say(InlinePut(64, 1));
  ASSERT_TRUE(Comes(1));
  EXPECT_NE(rank(1).view().inbox.wake()->changes, changes);
}

TEST_F(LinkOneSidedTest, GetsAndAtomicOperationsFindWhatIsThere) {
  const std::vector<std::byte> data = Pattern(8192, 2);
  std::memcpy(rank(1).heap() + 100, data.data(), data.size());
  EXPECT_EQ(Ask(About(OneSidedOperation::kGet, 100, data.size()), 7), ErrorCode::kOk);
  EXPECT_EQ(std::memcmp(rank(0).view().layout->answer_cells[7], data.data(), data.size()), 0);
  Word(24) = 40;
  Wish add = About(OneSidedOperation::kAdd, 24);
  add.words.operand = 2;
  EXPECT_EQ(Ask(add, 8), ErrorCode::kOk);
  EXPECT_EQ(rank(0).view().layout->answers[8].value, 40U);
  EXPECT_EQ(Word(24), 42U);
  ExpectIdle(0, 1);
}

// Elements that no CPU changes at once are ferryd's.
TEST_F(LinkOneSidedTest, AccumulatesCombineAndFind) {
  using reduction::NumberKind;
  using reduction::OpKind;
  std::vector<double> operands(1024);
  std::iota(operands.begin(), operands.end(), 0.5);
  const auto about = [](OpKind operation, uint64_t offset, uint64_t count) {
    Wish wish = About(OneSidedOperation::kAccumulate, offset, count * sizeof(double));
    wish.command.tag =
        static_cast<int32_t>(shm::Accumulation::Of(operation, NumberKind::kFloat64)->packed());
    return wish;
  };
  const uint64_t bytes = operands.size() * sizeof(double);
  Say(about(OpKind::kReplace, 1024, operands.size()), operands.data(), bytes);
  EXPECT_EQ(Ask(about(OpKind::kSum, 1024, operands.size()), 7, operands.data(), bytes),
            ErrorCode::kOk);
  EXPECT_EQ(std::memcmp(rank(0).view().layout->answer_cells[7], operands.data(), bytes), 0);
  for (size_t i = 0; i < operands.size(); ++i) {
    double value = 0;
    std::memcpy(&value, rank(1).heap() + 1024 + i * sizeof(double), sizeof(value));
    EXPECT_EQ(value, 2 * operands[i]);
  }
  ExpectFailure(about(OpKind::kSum, 1028, 1), ErrorCode::kUnsupported);
  ExpectFailure(about(OpKind::kSum, kHeapBytes - 8, 2), ErrorCode::kInvalidBuffer);
  ExpectIdle(0, 1);
}

// From and to memory of every kind, with the data behind the operation and fetched.
TEST_F(LinkOneSidedTest, LongOnesMoveBetweenTheProgramsMemoryAndTheOtherRanks) {
  uint32_t seed = 0;
  for (const uint64_t size : {8193ULL, 65536ULL, 65537ULL, 600'000ULL, 3'000'001ULL}) {
    for (const bool in_heap : {true, false}) {
      SCOPED_TRACE(testing::Message() << size << (in_heap ? " in the heap" : " private"));
      const std::vector<std::byte> data = Pattern(size, ++seed);
      std::vector<std::byte> own(size);
      std::byte* const here = in_heap ? rank(0).heap() + 4096 : own.data();
      const shm::Location where = in_heap ? InHeap(4096) : Private(here);
      std::memcpy(here, data.data(), size);
      EXPECT_EQ(AskLong(OneSidedOperation::kLongPut, 64, where, size), ErrorCode::kOk);
      EXPECT_EQ(std::memcmp(rank(1).heap() + 64, data.data(), size), 0);
      std::memset(here, 0, size);
      EXPECT_EQ(AskLong(OneSidedOperation::kLongGet, 64, where, size), ErrorCode::kOk);
      EXPECT_EQ(std::memcmp(here, data.data(), size), 0);
    }
  }
  EXPECT_EQ(Done(), 0U) << "these have no number";
  ExpectIdle(0, 1);
}

// ---- Memory that the program exposes ------------------------------------------------------------

TEST_F(LinkOneSidedTest, ExposedMemoryIsReachedWhereverItBegins) {
  const std::vector<std::byte> data = Pattern(300'000, 3);
  Say(About(OneSidedOperation::kPut, 63, 1000, kExposedRegion), data.data(), 1000);
  ASSERT_TRUE(Comes(1));
  EXPECT_EQ(std::memcmp(rank(1).heap() + 64, data.data(), 1000), 0);
  EXPECT_EQ(Ask(About(OneSidedOperation::kGet, 63, 1000, kExposedRegion), 7), ErrorCode::kOk);
  EXPECT_EQ(std::memcmp(rank(0).view().layout->answer_cells[7], data.data(), 1000), 0);
  std::vector<std::byte> own = data;
  const shm::Location here = Private(own.data());
  Wish put = About(OneSidedOperation::kLongPut, 9, own.size(), kExposedRegion);
  EXPECT_EQ(Ask(put, 3, &here, sizeof(here)), ErrorCode::kOk);
  EXPECT_EQ(std::memcmp(rank(1).heap() + 10, data.data(), data.size()), 0);
  std::fill(own.begin(), own.end(), std::byte{0});
  Wish get = About(OneSidedOperation::kLongGet, 9, own.size(), kExposedRegion);
  EXPECT_EQ(Ask(get, 3, &here, sizeof(here)), ErrorCode::kOk);
  EXPECT_EQ(own, data);
  ExpectFailure(InlinePut(kHeapBytes - 8, 1, kExposedRegion), ErrorCode::kInvalidBuffer);
  ExpectIdle(0, 1);
}

// All of them, by whoever holds the lock; another process' holder is waited for.
TEST_F(LinkOneSidedTest, ExposedElementsChangeUnderTheirLock) {
  Wish sum = About(OneSidedOperation::kAccumulate, 63, sizeof(double), kExposedRegion);
  sum.command.tag = static_cast<int32_t>(
      shm::Accumulation::Of(reduction::OpKind::kSum, reduction::NumberKind::kFloat64)->packed());
  Wish add = About(OneSidedOperation::kAdd, 7, 0, kExposedRegion);
  const double half = 0.5;
  std::memcpy(&sum.words.operand, &half, sizeof(half));
  add.words.operand = 4;
  for (const uint64_t offset : {63ULL, 4ULL}) {  // the latter where no CPU changes it at once
    sum.words.offset = offset;
    double before = 2;
    std::memcpy(rank(1).heap() + 1 + offset, &before, sizeof(before));
    const uint64_t number = Done() + 1;
    std::unique_lock lock(rank(1).elements());
    Say(sum);
    std::thread other([&] { EXPECT_TRUE(Comes(number)); });
    double seen = 0;
    std::memcpy(&seen, rank(1).heap() + 1 + offset, sizeof(seen));
    EXPECT_EQ(seen, before);
    EXPECT_LT(Done(), number);
    lock.unlock();
    other.join();
    std::memcpy(&seen, rank(1).heap() + 1 + offset, sizeof(seen));
    EXPECT_EQ(seen, 2.5);
  }
  // A word at an address that is no multiple of its size; the offset is.
  add.words.offset = 8;
  EXPECT_EQ(Ask(add, 8), ErrorCode::kUnsupported);
  add.words.offset = 9;
  EXPECT_EQ(Ask(add, 8), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(Failures().empty());
  ExpectIdle(0, 1);
}

// Its holder may have been stopped: what needs the lock waits, and what is behind that in its
// stream; nothing else does.
TEST_F(LinkOneSidedTest, ALockThatIsHeldHoldsUpNothingElse) {
  Wish sum = About(OneSidedOperation::kAccumulate, 64, sizeof(double), kExposedRegion);
  sum.command.tag = static_cast<int32_t>(
      shm::Accumulation::Of(reduction::OpKind::kSum, reduction::NumberKind::kFloat64)->packed());
  const double half = 0.5;
  std::memcpy(&sum.words.operand, &half, sizeof(half));
  double seen = 2;
  std::memcpy(rank(1).heap() + 1 + 64, &seen, sizeof(seen));
  const auto put = [this] {
    uint64_t value = 0;
    std::memcpy(&value, rank(1).heap() + 256, sizeof(value));
    return value;
  };
  const uint64_t before = Done();
  {
    const std::lock_guard lock(rank(1).elements());
    Say(InlinePut(256, 1));
    Say(sum);
    Say(InlinePut(256, 2));
    ASSERT_TRUE(Comes(before + 1));
    Say(sum);
    for (int i = 0; i < 100; ++i) {
      Carry(0, 1);
      Carry(1, 0);
    }
    EXPECT_EQ(put(), 1U) << "the order of the stream stays";
    EXPECT_EQ(Done(), before + 1);
    std::memcpy(&seen, rank(1).heap() + 1 + 64, sizeof(seen));
    EXPECT_EQ(seen, 2);
  }
  EXPECT_TRUE(Comes(before + 4));
  EXPECT_EQ(put(), 2U);
  std::memcpy(&seen, rank(1).heap() + 1 + 64, sizeof(seen));
  EXPECT_EQ(seen, 3);
  EXPECT_TRUE(Failures().empty());
  ExpectIdle(0, 1);
}

// The end of the link is the end of what waits for a lock.
TEST_F(LinkOneSidedTest, WhatWaitsForALockEndsWithItsLink) {
  Wish add = About(OneSidedOperation::kAdd, 63, 0, kExposedRegion);
  add.words.width = 1;
  add.words.operand = 1;
  const std::byte before = *(rank(1).heap() + 1 + 63);
  const uint64_t number = Done() + 1;
  {
    const std::lock_guard lock(rank(1).elements());
    Say(add);
    Carry(0, 1);
    rank(1).End(0, ErrorCode::kLinkDown);
    ASSERT_TRUE(Comes(number));
  }
  EXPECT_EQ(static_cast<ErrorCode>(Failures().back().error), ErrorCode::kLinkDown);
  ProgressAll();
  EXPECT_EQ(*(rank(1).heap() + 1 + 63), before);
}

// A number that names no region would be an address of the other process.
TEST_F(LinkOneSidedTest, OnlyMemoryThatTheRankGivesOutIsReached) {
  uint64_t victim = 7;
  const auto address = reinterpret_cast<uint64_t>(&victim);
  ExpectFailure(InlinePut(address, 1, 0), ErrorCode::kInvalidBuffer);
  ExpectFailure(InlinePut(0, 1, 77), ErrorCode::kInvalidBuffer);
  ExpectFailure(InlinePut(kHeapBytes - 7, 1), ErrorCode::kInvalidBuffer);
  ExpectFailure(InlinePut(0, 1, kStreamRegion), ErrorCode::kUnsupported);
  ExpectFailure(InlinePut(0, 1, kLentRegion), ErrorCode::kInvalidBuffer);
  Wish add = About(OneSidedOperation::kAdd, 12);
  ExpectFailure(add, ErrorCode::kInvalidArgument);
  Wish signal = InlinePut(64, 1);
  signal.command.size_bytes = 0;
  signal.words.signal = static_cast<uint8_t>(shm::SignalUpdate::kSet);
  signal.words.compare = address;
  ExpectFailure(signal, ErrorCode::kInvalidBuffer);
  const std::vector<std::byte> data = Pattern(100'000, 1);
  EXPECT_EQ(AskLong(OneSidedOperation::kLongPut, kHeapBytes - 1, Private(data.data()), data.size()),
            ErrorCode::kInvalidBuffer);
  std::vector<std::byte> got(100'000);
  const shm::Location here = Private(got.data());
  EXPECT_EQ(Ask(About(OneSidedOperation::kLongGet, address, got.size(), 0), 3, &here, sizeof(here)),
            ErrorCode::kInvalidBuffer);
  EXPECT_EQ(victim, 7U);
  ExpectIdle(0, 1);
}

// The daemons have carried some before: the two cores have one numbering.
TEST_F(LinkOneSidedTest, NumbersGoOnWhereTheOtherCoreHasStopped) {
  shm::StoreRelease(rank(0).view().by_rank.one_sided[1].done, 41U);
  Say(InlinePut(0, 1));
  ASSERT_TRUE(Comes(42));
  EXPECT_EQ(Done(), 42U);
  Say(InlinePut(8, 1));
  ASSERT_TRUE(Comes(43));
  shm::StoreRelease(rank(0).view().by_rank.one_sided[1].done, 50U);
  ExpectFailure(InlinePut(0, 1, 77), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(Failures().back().first, 51U);
}

TEST_F(LinkOneSidedTest, WhileSomeAreUnderWayTheLinkIsWanted) {
  EXPECT_FALSE(rank(0).links().WantsOf(1));
  Say(InlinePut(0, 1));
  EXPECT_TRUE(rank(0).links().WantsOf(1)) << "the core has yet to take it";
  (void)rank(0).ProgressLinks();
  EXPECT_TRUE(rank(0).links().WantsOf(1)) << "rank 1 has yet to carry it out";
  EXPECT_FALSE(rank(0).links().IsIdle(1));
  ASSERT_TRUE(Comes(1));
  EXPECT_FALSE(rank(0).links().WantsOf(1));
  // Long ones have no number.
  std::vector<std::byte> got(100'000);
  const shm::Location here = Private(got.data());
  Wish get = About(OneSidedOperation::kLongGet, 0, got.size());
  get.words.answer = 5;
  get.words.serial = 9;
  Say(get, &here, sizeof(here));
  (void)rank(0).ProgressLinks();
  EXPECT_TRUE(rank(0).links().WantsOf(1));
  EXPECT_FALSE(rank(0).links().IsIdle(1));
  ASSERT_TRUE(Meanwhile([&] { return !rank(0).links().WantsOf(1); }));
  EXPECT_EQ(shm::LoadAcquire(rank(0).view().layout->answers[5].serial), 9U);
  EXPECT_FALSE(rank(1).links().WantsOf(0)) << "they were not its own";
}

// Operations under way, and later ones, end at once.
TEST_F(LinkOneSidedTest, ALostLinkEndsThem) {
  Carry(0, 1);  // so there is a connection
  std::vector<std::byte> got(100'000);
  const shm::Location here = Private(got.data());
  Wish get = About(OneSidedOperation::kLongGet, 0, got.size());
  get.words.answer = 5;
  get.words.serial = 9;
  Say(get, &here, sizeof(here));
  Say(InlinePut(0, 1));
  (void)rank(0).ProgressLinks();
  rank(1).End(0, ErrorCode::kLinkDown);
  ASSERT_TRUE(Comes(1));
  EXPECT_EQ(static_cast<ErrorCode>(Failures().back().error), ErrorCode::kLinkDown);
  EXPECT_EQ(shm::LoadAcquire(rank(0).view().layout->answers[5].serial), 9U);
  EXPECT_EQ(static_cast<ErrorCode>(rank(0).view().layout->answers[5].error), ErrorCode::kLinkDown);
  ExpectFailure(InlinePut(0, 1), ErrorCode::kLinkDown);
  EXPECT_FALSE(rank(0).links().WantsOf(1));
}

TEST_F(LinkOneSidedTest, ADeathEndsThemWithItsName) {
  Say(InlinePut(0, 1));
  (void)rank(0).ProgressLinks();
  rank(0).MarkDead(1, ErrorCode::kPeerDied);
  rank(0).End(1, ErrorCode::kPeerDied);
  EXPECT_EQ(Done(), 1U);
  EXPECT_EQ(static_cast<ErrorCode>(Failures().back().error), ErrorCode::kPeerDied);
}

}  // namespace
}  // namespace ferry::client
